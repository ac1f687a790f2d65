"""Digests and bits: what every comparator of them must not take for agreement.

Two sides that are empty, missing or no numbers are equal to each other in every bit,
and show nothing. All statuses are those of the views.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from model import digests
from model.checks import recovery
from model.checks.endpoints import check_outputs
from model.checks.restored import restored_checkpoint
from model.checks.rows import array_comparison
from tests.comparators import INVALID, MET, MISSING, UNMET, statuses
from tests.model.checks.test_check_recovery import EXPECTED, planted

NAN, INF = float("nan"), float("inf")
ONES = [1.0, 2.0]


def compared(expected: Any, measured: Any, dtype: Any = np.float32) -> dict[str, Any]:
    arrays = np.array(expected, dtype), np.array(measured, dtype)
    return array_comparison("1.1", "bits", "", *arrays, "another computation")


BITS = [
    (ONES, ONES, MET),
    ([1.0, NAN], [1.0, NAN], UNMET),
    ([1.0, INF], [1.0, INF], UNMET),
    ([1.0, -INF], [1.0, -INF], UNMET),
    ([1.0, NAN], ONES, UNMET),
    (ONES, [1.0, NAN], UNMET),
    ([0.0], [-0.0], UNMET),
    (ONES, [2.0, 1.0], UNMET),
    (ONES, [1.0], UNMET),
    ([], ONES, UNMET),
    (ONES, [], UNMET),
]


def test_arrays_agree_in_every_bit_or_not_at_all(tmp_path: Path) -> None:
    rows = [compared(expected, measured) for expected, measured, _ in BITS]
    zeros = np.zeros(4, np.float32)
    for other in (zeros.view(np.int32), zeros.reshape(2, 2)):
        rows.append(array_comparison("1.1", "bits", "", zeros, other.copy(), "another"))
    owed = [status for *_, status in BITS]
    assert statuses(tmp_path, rows) == [*owed, UNMET, UNMET]


def test_arrays_without_entries_and_an_array_with_itself_are_no_comparison() -> None:
    with pytest.raises(ValueError, match="without entries"):
        compared([], [])
    one = np.ones(3)
    for other in (one, one[:2], one[::-1]):
        with pytest.raises(ValueError, match="with itself"):
            array_comparison("1.1", "bits", "", one, other, "itself")


def test_endpoints_whose_outputs_are_no_numbers_are_not_their_source(
    tmp_path: Path,
) -> None:
    rows = []
    for value in (1.0, NAN, INF):
        output = np.full(2, value, np.float32)

        class Reloaded:
            inputs = ("float32[2]",)

            def __call__(self, given: np.ndarray, output: Any = output) -> Any:
                return [output.copy()]

        release: Any = SimpleNamespace(endpoints={"decode": Reloaded()})
        source = {"decode/normal/in/0": np.ones(2), "decode/normal/out/0": output}
        rows += check_outputs(release, source)
    assert statuses(tmp_path, rows) == [MET, UNMET, UNMET]


def test_a_mapping_without_arrays_has_no_digest_to_agree_with() -> None:
    with pytest.raises(ValueError, match="no digest"):
        digests.tree_sha256({})


def emptied(update: int) -> dict[int, dict]:
    """The trace of which one update holds no digest."""
    return {**EXPECTED, update: {**EXPECTED[update], "digests": []}}


def without(kind: str) -> dict[int, dict]:
    """The trace in which no update has digests of one kind."""
    return {
        update: {**line, "digests": [d for d in line["digests"] if d["kind"] != kind]}
        for update, line in EXPECTED.items()
    }


TRACES = [
    (EXPECTED, EXPECTED, MET),
    (EXPECTED, planted("parameters", 3), UNMET),
    (emptied(3), emptied(3), MISSING),
    (emptied(3), EXPECTED, INVALID),
    (EXPECTED, emptied(3), INVALID),
    (without("parameters"), EXPECTED, UNMET),
    (EXPECTED, without("parameters"), UNMET),
]


def test_updates_without_digests_are_not_the_same(tmp_path: Path) -> None:
    rows = []
    for expected, measured, _ in TRACES:
        made = recovery.compare_updates(expected, measured, "updates", "whole")
        assert len(made) == len(EXPECTED)
        rows.append(made[2])
    assert statuses(tmp_path, rows) == [status for *_, status in TRACES]
    for expected, measured in (({}, {}), (EXPECTED, {}), ({}, EXPECTED)):
        assert not recovery.compare_updates(expected, measured, "updates", "whole")


def test_a_kind_that_one_trace_lacks_is_a_difference(tmp_path: Path) -> None:
    rows = []
    for traces in ((EXPECTED, without("order")), (without("order"), EXPECTED)):
        made = recovery.compare_kinds(*traces, measure="resumed", case="point-05")
        rows += [row for row in made if row["measure"] == "resumed_order"]
    assert len(rows) == 2 * len(EXPECTED)
    assert set(statuses(tmp_path, rows)) == {INVALID}


STATES = [
    (EXPECTED, EXPECTED[5], MET),
    (EXPECTED, EXPECTED[4], UNMET),
    (EXPECTED, None, UNMET),
    (emptied(5), emptied(5)[5], INVALID),
    (emptied(5), EXPECTED[5], INVALID),
    (EXPECTED, emptied(5)[5], UNMET),
]


def test_a_restored_state_without_arrays_is_not_the_committed_one(
    tmp_path: Path,
) -> None:
    rows = [
        restored_checkpoint(wanted, start, 5, "point-05", "2.1")
        for wanted, start, _ in STATES
    ]
    assert statuses(tmp_path, rows) == [status for *_, status in STATES]


def test_a_trace_of_no_line_and_of_a_torn_line_has_no_update(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    for text in ("", json.dumps(EXPECTED[1])[:-5]):
        path.write_text(text)
        assert recovery.read_trace(path) == {}
