"""The stages of cache, release, timing and target, in a run that a user made.

Every requirement of their claims must have its rows, so that a misspelled measure
cannot read as absent.
"""

import json
import os
from typing import Any

import pytest

from warehouse.contract import Requirement, read_contract
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.execution import ProgramExecution
from warehouse.records.inference import CacheArray, Generation, TargetStep, Timing
from warehouse.records.targets import TargetAnswer, TargetSign

pytestmark = pytest.mark.timeout(600)
MEASURED = (
    *("3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8"),
    *("4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "5.6"),
    *("5.7", "5.9", "5.10", "5.11", "5.12"),
)
# Its row has no value where the compiler is not installed.
COMPILED = "5.8"
Recorded = dict[str, list[Any]]
STAGES = ("quantize_cache", "export_endpoints", "profile_runtime", "qualify_tpu")


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


def test_every_requirement_is_met_in_every_case(recorded: Recorded) -> None:
    absent, unmet = [], []
    for claim, requirement in _required():
        rows = [
            row
            for row in recorded[requirement.stage]
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


def test_no_row_of_these_claims_is_outside_the_contract(
    recorded: Recorded,
) -> None:
    known = {(claim, requirement.measure) for claim, requirement in _required()}
    judged = (Measurement, Comparison, Refusal)
    recorded = {
        (row.claim, row.measure)
        for stage in STAGES
        for row in recorded[stage]
        if isinstance(row, judged)
    }
    compiled = {each for each in recorded if each[0] == COMPILED}
    assert compiled == {(COMPILED, "compiled_instructions")}
    assert recorded - known == compiled


def test_cache_arrays_of_the_fixture_add_up_to_the_published_bytes(
    recorded: Recorded,
) -> None:
    rows = [r for r in recorded["quantize_cache"] if isinstance(r, CacheArray)]
    totals = {
        policy: sum(row.array_bytes for row in rows if row.cache_policy == policy)
        for policy in ("fp32", "bf16", "int8")
    }
    assert totals == {"fp32": 2496, "bf16": 1344, "int8": 768}


def test_endpoints_were_reloaded_in_another_process(
    recorded: Recorded,
) -> None:
    programs = {
        row.program.rpartition(".")[2]: row.process_id
        for row in recorded["export_endpoints"]
        if isinstance(row, ProgramExecution)
    }
    assert len({*programs.values(), os.getpid()}) == 3


def test_four_prompts_are_completed_under_each_policy(
    recorded: Recorded,
) -> None:
    rows = [r for r in recorded["export_endpoints"] if isinstance(r, Generation)]
    assert len(rows) == 12
    assert all(json.loads(row.token_ids) for row in rows)


def test_every_sample_of_three_processes_is_kept(
    recorded: Recorded,
) -> None:
    rows = [r for r in recorded["profile_runtime"] if isinstance(r, Timing)]
    # Three things timed, three policies, three processes: a first and thirty warm.
    assert len(rows) == 3 * 3 * 3 * 31
    assert len({row.process_id for row in rows}) == 3
    first = [row for row in rows if row.phase == "first"]
    assert {row.process for row in first} == {1}


def test_without_the_target_its_claims_have_no_row(
    recorded: Recorded,
) -> None:
    judged = (Measurement, Comparison, Refusal)
    claims = {row.claim for row in recorded["qualify_tpu"] if isinstance(row, judged)}
    # Lowered, compiled and rehearsed on CPUs: none of it is a claim about the target.
    assert claims == {"5.6", "5.7", "5.8", "5.9", "5.10", "5.11", "5.12"}
    answers = [r for r in recorded["qualify_tpu"] if isinstance(r, TargetAnswer)]
    assert {row.case_name for row in answers} >= {"platform_unset", "platform_expected"}
    assert {len(row.nonce) for row in answers} == {32}
    signs = [r for r in recorded["qualify_tpu"] if isinstance(r, TargetSign)]
    assert signs and not any(row.is_there for row in signs)
    steps = [r for r in recorded["qualify_tpu"] if isinstance(r, TargetStep)]
    assert {"5.1", "5.2", "5.3", "5.4", "5.5"} <= {row.claim for row in steps}
    assert [row.step for row in steps] == list(range(1, len(steps) + 1))
    asked = [row.command for row in steps if row.claim == "5.1"]
    assert all("--expect-platform tpu" in command for command in asked)
