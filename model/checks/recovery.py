"""Whether two trainings were the same, update by update and kind by kind.

Works on traces alone (digests and a few readable values), so it compares processes
that are long gone, and needs no JAX.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from model.checks.rows import Row, comparison

CLAIM = "2.1"
UNINTERRUPTED = "uninterrupted training"

Line = Mapping[str, Any]
Trace = Mapping[int, Line]


class Places(Protocol):
    """Knows where leaves part, down to the bits, because it has their arrays."""

    def place(self, line: Line, kind: str, leaf: str) -> str:
        """Returns index and ulp; empty where it does not know."""


def read_lines(path: Path) -> dict[int, dict[str, Any]]:
    """Returns every line of a trace by update; a torn last line is left out.

    Args:
        path: File with one JSON object a line, the first for the state that the
            training starts from; a killed process may have left its last line without
            an end.
    """
    lines = path.read_text("utf-8").split("\n")[:-1]
    return {line["update"]: line for line in map(json.loads, lines)}


def read_trace(path: Path) -> dict[int, dict[str, Any]]:
    """Returns the updates of a trace, as `read_lines` without the start."""
    return updates_of(read_lines(path))


def updates_of(lines: Trace) -> dict[int, Any]:
    """Returns the lines of updates, without the one of the start."""
    return {update: line for update, line in lines.items() if "is_start" not in line}


def digests_of(line: Line) -> dict[tuple[str, str], str]:
    """Returns dtype, shape and digest of everything in a line, by kind and leaf."""
    return {
        (digest["kind"], digest["leaf"]): "{dtype} {shape} {sha256}".format(**digest)
        for digest in line["digests"]
    }


def kinds_of(line: Line) -> dict[str, str]:
    """Returns one digest a kind: its own, or one over the digests of all its leaves."""
    leaves: dict[str, list[str]] = {}
    for digest in line["digests"]:
        text = "{leaf} {dtype} {shape} {sha256}".format(**digest)
        leaves.setdefault(digest["kind"], []).append(text)
    return {
        kind: hashlib.sha256("\n".join(texts).encode()).hexdigest()
        for kind, texts in leaves.items()
    }


def compare_kinds(
    expected: Trace,
    measured: Trace,
    measure: str,
    case: str,
    places: Places | None = None,
) -> list[Row]:
    """Returns a comparison for each update of both traces and kind of either.

    Args:
        expected: Trace of the uninterrupted training.
        measured: Trace of another one.
        measure: Start of the measure's name; the kind follows.
        case: Start of the case's name; the update follows.
        places: Where leaves part, if arrays were kept.
    """
    rows = []
    for update in sorted(expected.keys() & measured.keys()):
        old, new = kinds_of(expected[update]), kinds_of(measured[update])
        # A kind that one of them lacks is a difference, and no reason to be silent.
        for kind in old.keys() | new.keys():
            rows.append(
                comparison(
                    CLAIM,
                    f"{measure}_{kind}",
                    f"{case}/update-{update:02d}",
                    old.get(kind, ""),
                    new.get(kind, ""),
                    UNINTERRUPTED,
                    first_difference(expected[update], measured[update], kind, places),
                )
            )
    return sorted(rows, key=lambda row: (row["measure"], row["case_name"]))


def compare_updates(
    expected: Trace,
    measured: Trace,
    measure: str,
    case: str,
    claim: str = CLAIM,
    places: Places | None = None,
) -> list[Row]:
    """Returns one comparison for each update that both traces hold, over all kinds.

    Args:
        expected: Trace of the uninterrupted training.
        measured: Trace of another one.
        measure: Name of the measure.
        case: Start of the case's name; the update follows.
        claim: Claim that the rows are judged on.
        places: Where leaves part, if arrays were kept.
    """
    rows = []
    for update in sorted(expected.keys() & measured.keys()):
        old, new = kinds_of(expected[update]), kinds_of(measured[update])
        parted = [kind for kind in old if old[kind] != new.get(kind)]
        lines = expected[update], measured[update]
        rows.append(
            comparison(
                claim,
                measure,
                f"{case}/update-{update:02d}",
                _text(old),
                _text(new),
                UNINTERRUPTED,
                first_difference(*lines, parted[0], places) if parted else "",
            )
        )
    return rows


def _text(kinds: Mapping[str, str]) -> str:
    """Returns the digests of a line as text; empty, so that it is missing, for none."""
    return json.dumps(kinds, sort_keys=True) if kinds else ""


def first_difference(
    expected: Line, measured: Line, kind: str, places: Places | None = None
) -> str:
    """Returns the first place where two lines part in a kind, empty when nowhere.

    Readable values show themselves; an array by index and ulp where it was kept, and
    by its digest elsewhere.
    """
    old, new = (
        {leaf: text for (each, leaf), text in digests_of(line).items() if each == kind}
        for line in (expected, measured)
    )
    for leaf in sorted(old.keys() | new.keys()):
        if old.get(leaf) != new.get(leaf):
            place = f"update {expected['update']}, {kind} {leaf}".rstrip()
            known = places.place(expected, kind, leaf) if places else ""
            left, right = old.get(leaf), new.get(leaf)
            values = [line["values"].get(kind) for line in (expected, measured)]
            # Equal values with other digests differ in their type.
            if None not in values and values[0] != values[1]:
                left, right = values
            return f"{place}: {known or _of_values(left, right)}"
    return ""


def _of_values(left: Any, right: Any) -> str:
    """Returns two values that differ, of lists the first two entries that do."""
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        pairs = enumerate(zip(left, right, strict=True))
        place, (left, right) = next(each for each in pairs if each[1][0] != each[1][1])
        return f"index [{place}]: expected {left}, measured {right}"
    return f"expected {left}, measured {right}"


def equal_updates(expected: Trace, measured: Trace, kind: str) -> int:
    """Returns in how many updates of both traces a kind is equal."""
    return sum(
        kinds_of(expected[update])[kind] == kinds_of(measured[update])[kind]
        for update in expected.keys() & measured.keys()
    )


def epochs_crossed(trace: Trace) -> int:
    """Returns how many epoch boundaries lie within a trace."""
    epochs = {line["values"]["epoch"] for line in trace.values()}
    return max(epochs) - min(epochs) if epochs else 0


def state_comparison(update: int, before: str, after: str) -> Row:
    """Returns the comparison of a training state before and after an evaluation."""
    return comparison(
        "2.7",
        "training_state_after_evaluation",
        f"update-{update:03d}",
        before,
        after,
        "digest of the training state before the evaluation",
    )
