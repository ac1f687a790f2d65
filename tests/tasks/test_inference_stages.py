"""The stages of cache, release, timing and target, through the real runner.

They run once on fresh parameters of the fixture model; every requirement of their
claims must then have its rows, so that a misspelled measure cannot read as absent.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.config import fixture_manifest
from model.digests import array_sha256
from model.documents import load_text_manifest
from model.parameters import initial_parameters, save_parameters
from model.presets import fixture
from model.tokenizer import describe, describe_preprocessing, document_tokens
from tasks.export_endpoints import export_endpoints
from tasks.profile_runtime import profile_runtime
from tasks.qualify_tpu import qualify_tpu
from tasks.quantize_cache import quantize_cache
from tasks.run_program import ProgramRun
from tasks.stage import StageTask
from tasks.work import Work
from warehouse.contract import Requirement, read_contract
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.execution import ProgramExecution
from warehouse.records.inference import CacheArray, Generation, TargetStep, Timing
from warehouse.records.targets import TargetAnswer, TargetSign
from warehouse.store import Execution, Store

# Five stages, the last of which trains by several processes.
pytestmark = pytest.mark.timeout(900)
CONFIG = fixture()
MEASURED = (
    *("3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8"),
    *("4.1", "4.2", "4.4", "4.5", "4.6", "4.7", "5.6"),
    *("5.7", "5.9", "5.10", "5.11", "5.12"),
)
# Its row has no value where the compiler is not installed.
COMPILED = "5.8"
SPLITS = ("train", "validation", "heldout")


class _Work(Work):
    """Runs under the settings of the tests, which are another runtime than a run's."""

    def _compare_runtime(self, run: ProgramRun) -> None:
        pass


class _Chain:
    """Runs stages one after another and keeps what each recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(folder / "evidence")
        self.records: dict[str, list[Any]] = {}

    def run(self, task: StageTask, *inputs: Any) -> Execution:
        name = task.definition.name
        folder = self.folder / name
        folder.mkdir()
        work = _Work(task.definition, self.store, {}, folder)
        task.body(work, *inputs)
        self.records[name] = work.records
        return self._execution(name, *work.store_artifacts())

    def given(self, stage: str, *files: Path) -> Execution:
        return self._execution(
            stage, *(self.store.put_artifact(file, file.name) for file in files)
        )

    @staticmethod
    def _execution(stage: str, *artifacts: Any) -> Execution:
        return Execution(
            stage=stage, key="0" * 64, nonce="1" * 32, artifacts=tuple(artifacts)
        )


def _write_inputs(folder: Path) -> None:
    documents = load_text_manifest(fixture_manifest())
    context = CONFIG.model.context_tokens
    tokens, ids = {}, {}
    for split in SPLITS:
        own = [each for each in documents if each.split == split]
        tokens[split] = np.stack([document_tokens(each.data, context) for each in own])
        ids[split] = [each.document_id for each in own]
    np.savez(folder / "tokens.npz", **tokens)
    description = {
        "splits": ids,
        "tokens_sha256": {split: array_sha256(x) for split, x in tokens.items()},
        "split_sha256": "d",
        "tokenizer": describe(),
        "preprocessing": describe_preprocessing(context),
    }
    (folder / "corpus.json").write_text(json.dumps(description))
    save_parameters(folder / "parameters.npz", initial_parameters(CONFIG.model, 11))


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> _Chain:
    folder = tmp_path_factory.mktemp("inference-stages")
    _write_inputs(folder)
    made = _Chain(folder)
    tokens = made.given(
        "tokenize_corpus", folder / "tokens.npz", folder / "corpus.json"
    )
    trained = made.given("train_model", folder / "parameters.npz")
    model, train = CONFIG.model, CONFIG.train
    quantized = made.run(quantize_cache, tokens, trained, model, CONFIG.cache)
    exported = made.run(
        export_endpoints, tokens, trained, quantized, model, CONFIG.export
    )
    made.run(profile_runtime, tokens, trained, exported, model, train, CONFIG.profile)
    made.run(qualify_tpu, tokens, trained, exported, model, train, CONFIG.target)
    return made


def _table(requirement: Requirement) -> type:
    if requirement.relation in ("identical", "different"):
        return Comparison
    return Refusal if requirement.relation == "refused" else Measurement


def _is_met(requirement: Requirement, row: Any) -> bool:
    if isinstance(row, Comparison):
        return bool(row.expected == row.measured)
    if isinstance(row, Refusal):
        return bool(row.expected_reason == row.received_reason)
    value = row.value_real if row.value_count is None else row.value_count
    limit = requirement.limit
    return {
        "equal": lambda: value == limit,
        "at_most": lambda: value <= limit,
        "at_least": lambda: value >= limit,
        "above": lambda: value > limit,
        "reported": lambda: value is not None,
    }[requirement.relation]()


def _required() -> list[tuple[str, Requirement]]:
    return [
        (claim.id, requirement)
        for claim in read_contract()
        if claim.id in MEASURED
        for requirement in claim.requirements
        if not requirement.presets or "fixture" in requirement.presets
        # These are counted by SQL from the rows; tests of the views hold them.
        if not requirement.measure.startswith("recounted_")
        # A proof of its own; tests/tasks/test_rehearse_target.py makes it.
        if requirement.stage != "rehearse_target"
    ]


def test_every_requirement_is_met_in_every_case(chain: _Chain) -> None:
    """Fresh parameters are enough: none of these claims is about quality."""
    absent, unmet = [], []
    for claim, requirement in _required():
        rows = [
            row
            for row in chain.records[requirement.stage]
            if type(row) is _table(requirement)
            and (row.claim, row.measure) == (claim, requirement.measure)
        ]
        for case in requirement.cases or ("",):
            here = [
                row
                for row in rows
                if not case
                or row.case_name == case
                or row.case_name.startswith(f"{case}/")
            ]
            if len(here) < requirement.required_count:
                absent.append((claim, requirement.measure, case, len(here)))
            unmet += [row for row in here if not _is_met(requirement, row)]
    assert absent == []
    assert unmet == []
    assert {claim for claim, _ in _required()} == set(MEASURED) - {"3.8"}


def test_no_row_of_these_claims_is_outside_the_contract(chain: _Chain) -> None:
    known = {(claim, requirement.measure) for claim, requirement in _required()}
    judged = (Measurement, Comparison, Refusal)
    recorded = {
        (row.claim, row.measure)
        for rows in chain.records.values()
        for row in rows
        if isinstance(row, judged)
    }
    compiled = {each for each in recorded if each[0] == COMPILED}
    assert compiled == {(COMPILED, "compiled_instructions")}
    assert recorded - known == compiled


def test_cache_arrays_of_the_fixture_add_up_to_the_published_bytes(
    chain: _Chain,
) -> None:
    rows = [r for r in chain.records["quantize_cache"] if isinstance(r, CacheArray)]
    totals = {
        policy: sum(row.array_bytes for row in rows if row.cache_policy == policy)
        for policy in ("fp32", "bf16", "int8")
    }
    assert totals == {"fp32": 2496, "bf16": 1344, "int8": 768}


def test_endpoints_were_reloaded_in_another_process(chain: _Chain) -> None:
    programs = {
        row.program.rpartition(".")[2]: row.process_id
        for row in chain.records["export_endpoints"]
        if isinstance(row, ProgramExecution)
    }
    assert len({*programs.values(), os.getpid()}) == 3


def test_four_prompts_are_completed_under_each_policy(chain: _Chain) -> None:
    rows = [r for r in chain.records["export_endpoints"] if isinstance(r, Generation)]
    assert len(rows) == 12
    assert all(json.loads(row.token_ids) for row in rows)


def test_every_sample_of_three_processes_is_kept(chain: _Chain) -> None:
    rows = [r for r in chain.records["profile_runtime"] if isinstance(r, Timing)]
    # Three things timed, three policies, three processes: a first and thirty warm.
    assert len(rows) == 3 * 3 * 3 * 31
    assert len({row.process_id for row in rows}) == 3
    first = [row for row in rows if row.phase == "first"]
    assert {row.process for row in first} == {1}


def test_without_the_target_its_claims_have_no_row(chain: _Chain) -> None:
    judged = (Measurement, Comparison, Refusal)
    claims = {
        row.claim for row in chain.records["qualify_tpu"] if isinstance(row, judged)
    }
    # Lowered, compiled and rehearsed on CPUs: none of it is a claim about the target.
    assert claims == {"5.6", "5.7", "5.8", "5.9", "5.10", "5.11", "5.12"}
    answers = [r for r in chain.records["qualify_tpu"] if isinstance(r, TargetAnswer)]
    assert {row.case_name for row in answers} >= {"platform_unset", "platform_expected"}
    assert {len(row.nonce) for row in answers} == {32}
    signs = [r for r in chain.records["qualify_tpu"] if isinstance(r, TargetSign)]
    assert signs and not any(row.is_there for row in signs)
    steps = [r for r in chain.records["qualify_tpu"] if isinstance(r, TargetStep)]
    assert {"5.1", "5.2", "5.3", "5.4", "5.5"} <= {row.claim for row in steps}
    assert [row.step for row in steps] == list(range(1, len(steps) + 1))
    assert all("JAX_PLATFORMS=tpu" in r.command for r in steps if r.claim == "5.1")
