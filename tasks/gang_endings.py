"""How a gang ended after something was done to it, and how soon, as rows.

A gang fails as a whole or leaves as a whole; whatever lies between is a difference.
"""

from tasks.errors import StageError
from tasks.gang import GangRun
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
    case: str, gang: GangRun, expected: str
) -> list[Comparison | Measurement]:
    """Returns the rows about the end of a gang after a failure or a notice.

    Args:
        case: What was done to it.
        gang: The gang that ended.
        expected: `FAILED` or `LEFT`.
    """
    since = gang.disturbed_at_ns or gang.started_at_ns
    return [
        compared(
            "rehearsed_end", case, expected, _ending(gang), "what was done to the gang"
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


def _ending(gang: GangRun) -> str:
    codes = [run.return_code for run in gang.runs]
    if gang.is_complete:
        left = {event["process"] for event in gang.events("preempted")}
        return LEFT if len(left) == len(codes) else "completed"
    return FAILED if all(code != 0 for code in codes) else f"ended with {codes}"


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
