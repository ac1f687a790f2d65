"""A gang that fails shows something only where it fails by what was done to it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.gang import GangRun
from tasks.gang_endings import FAILED, LEFT, ending_rows
from tests.faults.gang_scenes import as_gang
from warehouse.records.claims import Comparison

AT_WORK = [{"event": "update", "process": number, "update": 1} for number in range(2)]
NOTICED = [{"event": "preempted", "process": number} for number in range(2)]


def ended(events: list[Any], *codes: int, **fields: Any) -> GangRun:
    gang = as_gang([Path(), Path()], events)
    runs = [
        replace(run, return_code=code)
        for run, code in zip(gang.runs, codes, strict=True)
    ]
    return replace(gang, runs=tuple(runs), **fields)


def measured(gang: GangRun, expected: str, victim: int | None) -> str:
    rows = ending_rows("case", gang, expected, victim)
    (row,) = [row for row in rows if isinstance(row, Comparison)]
    assert row.expected == expected
    return row.measured


@pytest.mark.parametrize("codes", [(-9, -9), (17, -9), (-6, -9)])
def test_one_that_was_killed_at_work_fails_them_as_a_whole(codes: Any) -> None:
    gang = ended(AT_WORK, *codes, failed=1, disturbed_at_ns=1)
    assert measured(gang, FAILED, 1) == FAILED


@pytest.mark.parametrize(
    ("codes", "cause"),
    [((-9, -9), "controller 0 was silent for 20 s"), ((17, -9), "controller 0: lost")],
)
def test_the_other_may_be_the_first_that_is_missed_for_waiting(
    codes: Any, cause: str
) -> None:
    """Both wait for one that is stopped, and who told of anything last is chance."""
    gang = ended(AT_WORK, *codes, failed=0, disturbed_at_ns=1, cause=cause)
    assert measured(gang, FAILED, 1) == FAILED


@pytest.mark.parametrize(
    ("gang", "why"),
    [
        (ended([], 1, 1, failed=0, cause="no module jax"), "nothing was done to it"),
        (ended(AT_WORK, -9, -9, failed=1), "nothing was done to it"),
        (ended(AT_WORK[:1], -9, -9, failed=1, disturbed_at_ns=1), "1 of 2"),
        (ended(AT_WORK, 1, -9, failed=0, disturbed_at_ns=1), "not that of"),
        (ended(AT_WORK, 17, 1, failed=1, disturbed_at_ns=1), "not that of"),
        (ended(AT_WORK, 0, -9, failed=1, disturbed_at_ns=1), "ended with [0, -9]"),
    ],
    ids=["crashed", "no signal", "one at work", "another", "by itself", "went on"],
)
def test_a_gang_that_failed_for_another_reason_shows_nothing(
    gang: GangRun, why: str
) -> None:
    found = measured(gang, FAILED, 1)
    assert found != FAILED and why in found


def test_one_that_never_starts_is_waited_for_and_then_lost() -> None:
    assert measured(ended([], -6, -9, failed=0), FAILED, None) == FAILED
    crashed = ended([], 1, 1, failed=0, cause="no module jax")
    assert "no module jax" in measured(crashed, FAILED, None)
    trained = ended(AT_WORK, 17, -9, failed=0, cause="lost")
    assert measured(trained, FAILED, None) != FAILED


def test_all_leave_on_a_notice_that_one_of_them_got() -> None:
    assert measured(ended(NOTICED, 0, 0, disturbed_at_ns=1), LEFT, 1) == LEFT
    assert measured(ended(NOTICED, 0, 0), LEFT, 1) == "completed"
    assert measured(ended(NOTICED[:1], 0, 0, disturbed_at_ns=1), LEFT, 1) == "completed"
