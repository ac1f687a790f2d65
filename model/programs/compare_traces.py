"""Compares traces of interrupted, resumed and repeated trainings with one that ran on.

A program of its own, without JAX, because the trainings it compares have ended.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model.checks import recovery
from model.checks.parted_arrays import read_parted
from model.checks.restored import counted_updates, made_updates, restored_checkpoint
from model.checks.rows import Row, count
from model.programs import entry
from model.refusal import ReasonCode, Refused

WHOLE_UPDATES = {
    "interrupted": "interrupted_update",
    "repeated": "repeated_update",
    "certified": "resumed_update",
    "rewritten": "update_after_killed_write",
}
OWED = {
    "killed": "updates_before_the_kill",
    "restored": "updates_after_the_restore",
}


def main(request: dict[str, Any], out: Path) -> None:
    """Writes comparisons and measurements of the claims about recovery.

    Args:
        request: `expected` (path of the uninterrupted trace) and `measured`, a list of
            `trace` (path; absent where a restore was refused), `role`, `case` and
            optionally `claim`, and `arrays` and `expected_arrays` (paths), what both
            trainings kept where they part. Roles: `resumed`, those of `WHOLE_UPDATES`,
            which compare all kinds of an update at once, and `other_dropout_seed` or
            `other_order_seed`, which must part. `owed` (first and last update) is what
            a training that was killed or restored had to make; one that was restored
            has `committed_update`, `point` and, where it was refused, `refused` too.
        out: Result folder.

    Raises:
        Refused: `request_malformed` for an unknown role.
    """
    expected = recovery.read_lines(Path(request["expected"]))
    comparisons: list[Row] = []
    measurements: list[Row] = []
    for item in request["measured"]:
        lines = recovery.read_lines(Path(item["trace"])) if "trace" in item else {}
        trace = recovery.updates_of(lines)
        role, case = item["role"], item["case"]
        claim = item.get("claim", recovery.CLAIM)
        places = read_parted(item.get("expected_arrays"), item.get("arrays"))
        if role == "resumed":
            comparisons += recovery.compare_kinds(expected, trace, role, case, places)
            crossed = recovery.epochs_crossed(trace)
            measurements += [count(claim, "epochs_crossed", case, crossed, "epochs")]
        elif role in WHOLE_UPDATES:
            measure = WHOLE_UPDATES[role]
            comparisons += recovery.compare_updates(
                expected, trace, measure, case, claim, places
            )
        elif role in ("other_dropout_seed", "other_order_seed"):
            measurements += _other_seed(expected, trace, role, case)
        else:
            raise Refused(
                ReasonCode.REQUEST_MALFORMED,
                f"Role {role!r} of a trace is unknown; see this program's help.",
            )
        if "point" in item:
            row = _restored(expected, lines, item, claim, places)
            comparisons.append(row)
            measurements += counted_updates(case, claim, item["point"], trace)
        if "owed" in item:
            measure = OWED["restored" if "point" in item else "killed"]
            comparisons.append(made_updates(measure, case, claim, item["owed"], trace))
    entry.write_rows(out, "comparisons", comparisons)
    entry.write_rows(out, "measurements", measurements)


def _restored(
    expected: recovery.Trace,
    lines: recovery.Trace,
    item: dict[str, Any],
    claim: str,
    places: recovery.Places | None,
) -> Row:
    """Which checkpoint was restored, by the state that the training started from."""
    return restored_checkpoint(
        expected,
        lines[min(lines)] if lines else None,
        item["committed_update"],
        item["case"],
        claim,
        item.get("refused", ""),
        places,
    )


def _other_seed(
    expected: recovery.Trace, trace: recovery.Trace, role: str, case: str
) -> list[Row]:
    """Another seed has to change what it seeds, and the parameters with it."""
    seeded = "dropout_key" if role == "other_dropout_seed" else "order"
    claim, rows = recovery.CLAIM, []
    for kind in (seeded, "loss_bits", "parameters"):
        equal = recovery.equal_updates(expected, trace, kind)
        measure = f"{role}_equal_updates"
        rows.append(count(claim, measure, f"{case}/{kind}", equal, "updates"))
    compared = len(expected.keys() & trace.keys())
    rows.append(count(claim, f"{role}_compared_updates", case, compared, "updates"))
    return rows


if __name__ == "__main__":
    entry.run(main)
