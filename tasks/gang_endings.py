"""How a gang ended after something was done to it, and how soon, as rows.

A gang fails as a whole or leaves as a whole; whatever lies between is a difference, and
so is a gang that fails for a reason of its own.
"""

from model.target_result import KILLED_CODE
from tasks.errors import StageError
from tasks.gang import FOLLOWS, SILENT, GangRun
from warehouse.records.claims import Comparison, Measurement

CLAIM = "5.13"
FAILED, LEFT = "failed as a whole", "left as a whole"


class GangFailed(StageError):
    """A gang ended otherwise than it was meant to."""


def require_as_meant(is_as_meant: bool, gang: GangRun) -> None:
    """Refuses to compare what a gang left that ended otherwise than it was meant to.

    Raises:
        GangFailed: It did; its cause is told.
    """
    if not is_as_meant:
        cause = gang.cause.removesuffix(".")
        raise GangFailed(f"A gang of controllers ended: {cause}.")


def ending_rows(
    case: str, gang: GangRun, expected: str, victim: int | None
) -> list[Comparison | Measurement]:
    """Returns the rows about the end of a gang after a failure or a notice.

    Args:
        case: What was done to it.
        gang: The gang that ended.
        expected: `FAILED` or `LEFT`.
        victim: Controller that it was done to; None where one was never started.
    """
    since = gang.disturbed_at_ns or gang.started_at_ns
    return [
        compared(
            *("rehearsed_end", case, expected, _ending(gang, victim)),
            "what was done to the gang",
        ),
        Measurement(
            claim=CLAIM,
            measure="rehearsed_end_seconds",
            case_name=case,
            value_real=(gang.ended_at_ns - since) / 1e9,
            unit="s",
            detail=gang.cause,
        ),
        Measurement(
            claim=CLAIM,
            measure="rehearsed_processes_left",
            case_name=case,
            value_count=gang.processes_left,
            unit="processes",
        ),
    ]


def _ending(gang: GangRun, victim: int | None) -> str:
    """Returns how it ended: as a whole, and for no other reason than what was done."""
    codes = [run.return_code for run in gang.runs]
    if gang.is_complete:
        left = {event["process"] for event in gang.events("preempted")}
        is_whole = len(left) == len(codes) and gang.disturbed_at_ns is not None
        return LEFT if is_whole else "completed"
    if not all(codes):
        return f"ended with {codes}"
    other = _other_reason(gang, victim)
    return f"failed for another reason: {other}" if other else FAILED


def _other_reason(gang: GangRun, victim: int | None) -> str:
    """Returns why a gang did not fail by what was done to it; empty where it did.

    It was at work until then. The first to fail is the one that it was done to, or one
    that waited for it: silent, or ended by the runtime for the loss of another. A gang
    that waits for one that never comes makes no update, and loses it by waiting.
    """
    at_work = {event["process"] for event in gang.events("update")}
    if victim is None:
        failed = [run for run in gang.runs if run.return_code in FOLLOWS]
        return gang.cause if at_work or not failed else ""
    if gang.disturbed_at_ns is None:
        return f"nothing was done to it; {gang.cause}"
    if len(at_work) < len(gang.runs):
        return f"{len(at_work)} of {len(gang.runs)} controllers were at work"
    first = gang.runs[gang.failed or 0]
    waited = SILENT in gang.cause or first.return_code in FOLLOWS
    is_by_it = gang.failed == victim or waited
    if not is_by_it or gang.runs[victim].return_code != KILLED_CODE:
        return f"not that of controller {victim}; {gang.cause}"
    return ""


def compared(
    measure: str, case: str, expected: str, measured: str, source: str
) -> Comparison:
    """Returns a row of claim 5.13 that holds two texts against each other."""
    return Comparison(
        claim=CLAIM,
        measure=measure,
        case_name=case,
        expected=expected,
        measured=measured,
        expected_from=source,
        first_difference=""
        if expected == measured
        else f"expected {expected}, found {measured}",
    )
