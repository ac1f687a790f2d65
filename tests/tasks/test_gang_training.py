"""Trainings by real controllers: their bits, checkpoints, and what each of them did.

Two processes with one device each against one process; the gang that is killed and the
one that goes on from its commit are the rehearsal's own.
"""

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.controller_answers import answer_rows
from tasks.gang import Disturbance, GangRun
from tests.tasks.gangs import Gangs
from warehouse.records.claims import Comparison, Measurement
from warehouse.records.controllers import ControllerAnswer

SPLIT = {"label": "split", "program": "split", "suffix": "-split"}
CHECKPOINTED = {"checkpoint_every_updates": 2}


@pytest.fixture(scope="module")
def gangs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gangs]:
    folder = tmp_path_factory.mktemp("gangs")
    made = Gangs(folder)
    made.environment["JAX_COMPILATION_CACHE_DIR"] = str(folder / "compiled")
    yield made
    shutil.rmtree(folder)


def updates(run: GangRun, controller: int, label: str) -> list[dict]:
    file = run.runs[controller].out / "records" / "controller_updates.json"
    return [row for row in json.loads(file.read_text()) if row["label"] == label]


def states(run: GangRun, controller: int, label: str) -> dict[int, str]:
    rows = updates(run, controller, label)
    return {row["update"]: row["state_sha256"] for row in rows}


@pytest.fixture(scope="module")
def alone(gangs: Gangs) -> GangRun:
    whole = {"label": "whole", "program": "whole", "suffix": "-whole"}
    return gangs.run("alone", 1, whole, SPLIT)


@pytest.fixture(scope="module")
def pair(gangs: Gangs) -> GangRun:
    """Two controllers, of which the second is killed before the commit of update 4."""
    interrupted = SPLIT | CHECKPOINTED | {"label": "interrupted", "suffix": "-i"}
    interrupted |= {
        "checkpoints": str(gangs.folder / "checkpoints"),
        "pause_before_commit_of": 4,
    }
    return gangs.run(
        "pair",
        2,
        SPLIT,
        interrupted,
        disturbance=Disturbance(
            event="paused", update=4, teller=1, victim=1, number=signal.SIGKILL
        ),
    )


def test_two_controllers_make_the_bits_of_one_process(
    alone: GangRun, pair: GangRun
) -> None:
    expected = states(alone, 0, "split")
    assert sorted(expected) == [1, 2, 3, 4]
    assert states(pair, 0, "split") == expected
    assert states(pair, 1, "split") == expected


def test_controllers_share_a_batch_without_gap_or_overlap(
    alone: GangRun, pair: GangRun
) -> None:
    whole = [json.loads(row["documents"]) for row in updates(alone, 0, "whole")]
    halves = [
        [json.loads(row["documents"]) for row in updates(pair, controller, "split")]
        for controller in (0, 1)
    ]
    assert [first + second for first, second in zip(*halves, strict=True)] == whole
    assert all(len(set(documents)) == 16 for documents in whole)


def test_a_killed_controller_ends_the_gang_and_is_named(pair: GangRun) -> None:
    assert pair.failed == 1
    assert pair.cause == "controller 1: ended by SIGKILL"
    assert pair.runs[1].return_code == -signal.SIGKILL
    assert pair.runs[0].return_code != 0
    assert pair.processes_left == 0


def test_only_the_first_controller_writes_and_the_last_write_is_not_committed(
    gangs: Gangs, pair: GangRun
) -> None:
    written = [(e["process"], e["update"]) for e in pair.events("checkpoint")]
    assert written == [(0, 2)]
    left = gangs.folder / "checkpoints" / "update-000004"
    assert (left / "manifest.json").exists()
    assert not (left / "COMMITTED").exists()
    manifest = json.loads((left / "manifest.json").read_text())
    assert manifest["controllers"]["count"] == 2
    assert len(set(manifest["controllers"]["parts"])) == 1


# With three, documents cannot be shared out evenly.
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_new_gang_goes_on_from_the_commit_bit_by_bit(
    gangs: Gangs, alone: GangRun, pair: GangRun, count: int
) -> None:
    copied = gangs.folder / f"copied-{count}"
    shutil.copytree(gangs.folder / "checkpoints", copied)
    resumed = SPLIT | CHECKPOINTED | {"checkpoints": str(copied), "restore": "latest"}
    run = gangs.run(f"resumed-{count}", count, resumed)
    assert run.is_complete, run.cause
    assert [event["update"] for event in run.events("restored")] == [2] * count
    expected = states(alone, 0, "split")
    for controller in range(count):
        found = states(run, controller, "split")
        assert found == {3: expected[3], 4: expected[4]}
    assert (copied / "update-000004" / "COMMITTED").exists()


def test_every_controller_answers_with_what_its_runtime_says(pair: GangRun) -> None:
    given = [json.loads((r.out.parent / "request.json").read_text()) for r in pair.runs]
    rows = answer_rows("pair", given, pair)
    answers = [row for row in rows if isinstance(row, ControllerAnswer)]
    assert [row.process_index for row in answers] == [0, 1]
    assert {row.process_count for row in answers} == {2}
    assert {row.global_device_count for row in answers} == {2}
    assert [row.process_id for row in answers] == [r.process_id for r in pair.runs]
    assert unmet(rows) == []


def unmet(rows: list) -> list[str]:
    return [
        f"{row.measure} {row.case_name}"
        for row in rows
        if (isinstance(row, Comparison) and row.expected != row.measured)
        or (isinstance(row, Measurement) and row.value_count)
    ]


def test_the_answer_of_one_controller_copied_for_all_is_found(
    pair: GangRun, tmp_path: Path
) -> None:
    given = [json.loads((r.out.parent / "request.json").read_text()) for r in pair.runs]
    answers = [run.out / "artifacts" / "answer.json" for run in pair.runs]
    own = answers[1].read_bytes()
    try:
        shutil.copyfile(answers[0], answers[1])
        found = unmet(answer_rows("pair", given, pair))
    finally:
        answers[1].write_bytes(own)
    assert found == [
        "rehearsed_answer pair/controller-1/nonce",
        "rehearsed_answer pair/controller-1/place",
        "rehearsed_answers_repeated pair",
        "rehearsed_updates_unanswered pair",
    ]


def test_controllers_of_one_machine_find_the_code_that_one_process_compiled(
    gangs: Gangs, alone: GangRun, pair: GangRun
) -> None:
    """JAX would name it by the device, so that each compiles for itself."""
    assert alone.is_complete
    assert pair.events("update")
    for program in ("_initial", "document_gradient", "update_in_order"):
        kept = (gangs.folder / "compiled").glob(f"jit_{program}-*-cache")
        assert len(list(kept)) == 1, program


def test_a_controller_with_other_code_refuses_and_ends_the_gang(gangs: Gangs) -> None:
    run = gangs.run("other-code", 2, SPLIT, changes={1: {"code_sha256": "0" * 64}})
    assert run.failed == 1
    assert "code_mismatch" in run.cause
    assert run.events("update") == []
    assert run.processes_left == 0
