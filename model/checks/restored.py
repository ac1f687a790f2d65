"""What a restore found, and which updates were made before and after it.

Which checkpoint that had to be, and which updates are owed, follows from the point of
the kill and the cadence; what the programs said of themselves is not asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from model.checks import recovery
from model.checks.rows import Row, comparison, count

STATE_KINDS = ("step", "first_moment", "second_moment", "parameters", "average")
"""What outlives an update, and so is in its checkpoint; causes first."""


def restored_checkpoint(
    expected: recovery.Trace,
    start: recovery.Line | None,
    update: int,
    case: str,
    claim: str,
    refused: str = "",
    places: recovery.Places | None = None,
) -> Row:
    """Returns whether the last committed checkpoint was restored, and was right.

    Args:
        expected: Every line of the uninterrupted trace.
        start: The line of the restored state; None where the restore was refused.
        update: The update that was committed last.
        case: Name of the restore.
        claim: Claim that the row is judged on.
        refused: What a refused restore said.
        places: Where leaves part, if arrays were kept.
    """
    wanted = expected[update]
    source = f"the {recovery.UNINTERRUPTED} after the update that was committed last"
    found = _state(start, wanted) if start else refused or "nothing"
    difference = ""
    if start and start["update"] == update:
        each = (
            recovery.first_difference(wanted, start, kind, places)
            for kind in _state_kinds(wanted)
        )
        difference = next(filter(None, each), "")
    return comparison(
        claim,
        "restored_checkpoint",
        case,
        # Without a kind there is nothing that could part.
        _state(wanted, wanted) if _state_kinds(wanted) else "",
        found,
        source,
        difference,
    )


def _state(line: recovery.Line, like: recovery.Line) -> str:
    digests = recovery.kinds_of(line)
    texts = [f"{kind} {digests.get(kind)}" for kind in _state_kinds(like)]
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    return f"update {line['update']}, arrays {digest}"


def _state_kinds(line: recovery.Line) -> list[str]:
    """Returns the kinds of a line that outlive the update: they are the checkpoint."""
    return [kind for kind in recovery.kinds_of(line) if kind in STATE_KINDS]


def made_updates(
    measure: str, case: str, claim: str, owed: Sequence[int], trace: recovery.Trace
) -> Row:
    """Returns whether a training made exactly the updates that it owed.

    Args:
        measure: Name of the measure.
        case: Name of the training.
        claim: Claim that the row is judged on.
        owed: First and last update that it owed; the last is below the first when it
            owed none.
        trace: Updates of its trace.
    """
    first, last = owed
    return comparison(
        claim,
        measure,
        case,
        _range_text(list(range(first, last + 1))),
        _range_text(sorted(trace)),
        "the point of the kill and the checkpoint cadence",
    )


def counted_updates(
    case: str, claim: str, point: int, trace: recovery.Trace
) -> list[Row]:
    """Returns how many updates were made again, and how many beyond the kill.

    Args:
        case: Name of the restore.
        claim: Claim that the rows are judged on.
        point: Update after which the process was killed.
        trace: Updates of the trace of the restored training.
    """
    replayed = sum(update <= point for update in trace)
    beyond = len(trace) - replayed
    return [
        count(claim, "updates_replayed", case, replayed, "updates"),
        count(claim, "updates_beyond_the_kill", case, beyond, "updates"),
    ]


def _range_text(updates: list[int]) -> str:
    """Returns updates such as "5 to 16", and each of them where one is left out."""
    if not updates:
        return "none"
    if updates == list(range(updates[0], updates[-1] + 1)):
        return f"{updates[0]} to {updates[-1]}"
    return ", ".join(map(str, updates))
