"""Faults planted into a controller, each found by a check of the rehearsal.

One gang of two real processes makes one training a fault; every one of them completes
without an error, which is what makes such faults dangerous.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.checks.controllers import Declared, Trained, agreement, configuration
from model.corpus import load_corpus
from model.parameters import initial_parameters
from model.programs.compare_controllers import _rows, _state, _trained
from tasks.gang import GangRun
from tasks.rehearse_sharded import parts_undigested
from tests.tasks.gangs import PROJECT, Gangs
from warehouse.contract import read_contract

FAULTS = ("exchange_hosts", "overlap", "average_means", "write_by_all")
IN_PARTS = ("parts", "keep_whole", "digest_the_first")
"""Trainings with a state in parts: without a fault, and with one each."""
PLANTED = PROJECT / "tests" / "data" / "faulty_controller"
LIMITS = {
    requirement.measure: requirement.limit
    for claim in read_contract()
    for requirement in claim.requirements
    if claim.id in ("5.10", "5.12", "5.15") and requirement.limit is not None
}


@dataclass
class Found:
    """The gang, and what one process computed."""

    gangs: Gangs
    run: GangRun
    alone: Path

    def rows(self, label: str) -> list[dict[str, Any]]:
        """Returns every row of the rehearsal about one training."""
        outs = [each.out for each in self.run.runs]
        trained = _trained(outs, label)
        program = "sharded" if label in IN_PARTS else "split"
        trained = Trained(**(vars(trained) | {"program": program}))
        asked, config = self.gangs.asked, self.gangs.config
        declared = Declared(
            model=config.model,
            train=config.train,
            corpus=load_corpus(
                Path(asked["tokens"]), Path(asked["corpus"]), config.model
            ),
            last_update=asked["stop_after_update"],
        )
        expected = _rows(self.alone, "controller_updates", "whole")
        ends = _state(self.alone, "whole"), _state(outs[0], label)
        seed = config.train.initialization_seed
        begin = {
            name: np.asarray(x)
            for name, x in initial_parameters(config.model, seed).items()
        }
        return [
            *agreement(label, expected, trained, ends, begin),
            *configuration(label, declared, trained),
        ]

    def unmet(self, label: str) -> set[str]:
        """Returns measures, and parts of the configuration, that are not met."""
        found = set()
        for row in self.rows(label):
            if "expected" in row:
                if row["expected"] != row["measured"]:
                    found.add(row["case_name"].split("/")[0])
            else:
                value = row.get("value_count")
                value = row.get("value_real") if value is None else value
                if value is None or value > LIMITS[row["measure"]]:
                    found.add(row["measure"])
        return found

    def states(self, label: str) -> list[str]:
        rows = _rows(self.run.runs[0].out, "controller_updates", label)
        return [row["state_sha256"] for row in rows]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    folder = tmp_path_factory.mktemp("faults")
    gangs = Gangs(folder)
    gangs.asked["stop_after_update"] = 2
    whole = {"label": "whole", "program": "whole", "suffix": "-whole"}
    alone = gangs.run("alone", 1, whole)
    trainings = [
        {
            "label": label,
            "program": "sharded" if label in IN_PARTS else "split",
            "suffix": f"-{label}",
            "checkpoints": str(folder / label),
            "checkpoint_every_updates": 2,
        }
        for label in ("correct", *FAULTS, *IN_PARTS)
    ]
    run = gangs.run(
        "faulty",
        2,
        *trainings,
        program="faulty_controller",
        environment={"PYTHONPATH": f"{PLANTED}:{PROJECT}"},
    )
    assert run.is_complete, run.cause
    yield Found(gangs, run, alone.runs[0].out)
    shutil.rmtree(folder)


def test_without_a_fault_everything_is_met(found: Found) -> None:
    assert found.unmet("correct") == set()
    assert len(found.rows("correct")) > 15


def test_hosts_in_exchanged_order_give_other_bits(found: Found) -> None:
    """Within every limit, which is why the split program is held to equality."""
    assert found.states("exchange_hosts") != found.states("correct")
    assert found.unmet("exchange_hosts") <= {"rehearsed_parameter_difference"}


def test_overlapping_documents_are_found(found: Found) -> None:
    unmet = found.unmet("overlap")
    assert {"documents", "rehearsed_targets_beyond_reference"} <= unmet
    assert "rehearsed_loss_difference" in unmet


def test_a_mean_of_means_is_found(found: Found) -> None:
    unmet = found.unmet("average_means")
    assert {
        "rehearsed_loss_difference",
        "rehearsed_moment_difference",
        "rehearsed_movement_difference",
    } <= unmet
    assert "rehearsed_targets_beyond_reference" not in unmet


def test_a_checkpoint_that_all_controllers_write_is_found(found: Found) -> None:
    def writers(label: str) -> set[int]:
        told = found.run.events("checkpoint")
        return {event["process"] for event in told if event["label"] == label}

    assert len(writers("correct")) == LIMITS["rehearsed_checkpoint_writers"]
    assert len(writers("write_by_all")) == 2
    assert found.unmet("write_by_all") == set()


def test_a_state_in_parts_is_met_and_one_that_is_whole_everywhere_is_found(
    found: Found,
) -> None:
    assert found.unmet("parts") == set()
    assert found.unmet("keep_whole") == {"placement"}


def test_a_digest_that_stands_for_the_parts_of_all_is_found(found: Found) -> None:
    """Every file is intact, and nobody has said what he held."""

    def undigested(label: str) -> int:
        manifest = found.gangs.folder / label / "update-000002" / "manifest.json"
        return parts_undigested(manifest, 2)

    limit = LIMITS["rehearsed_parts_undigested"]
    assert undigested("parts") == limit
    assert undigested("digest_the_first") == 1
    assert undigested("never committed") == 2


def test_a_controller_that_computed_nothing_is_missed(found: Found) -> None:
    """One host's rows are absent: the updates of all controllers are asked for."""
    file = found.run.runs[1].out / "records" / "controller_updates.json"
    own = file.read_text()
    try:
        file.write_text(json.dumps([]))
        unmet = found.unmet("correct")
    finally:
        file.write_text(own)
    assert {"correct", "documents", "global_batch"} <= unmet
