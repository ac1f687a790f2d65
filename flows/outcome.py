"""What came of a run, in the one sentence that stands in the state of its flow run.

The verdicts are those of the views; here they only become words.
"""

from collections.abc import Sequence

from flows.display import shortened
from flows.reading import Connection, Row, selected_run, view_rows

SHOWN_FAILURES = 3
NOT_DEMONSTRATED = "Not demonstrated"
"""State of a run that is done and has not shown what it is for; no failure."""


def outcome(connection: Connection) -> str:
    """Returns what the verdicts of the selected run say, what is wrong first."""
    run = selected_run(connection)
    claims = view_rows(connection, "verdicts")
    accepted = [c for c in claims if c["verdict"].startswith("accept")]
    revised = [c for c in claims if c["verdict"] == "revise"]
    open_claims = [c for c in claims if c["verdict"] == "not demonstrated"]
    parts = [
        _failures(revised),
        f"{len(accepted)} of {len(claims)} claims accepted",
        f"not demonstrated: {_names(open_claims)}" if open_claims else "",
    ]
    sentence = "; ".join(part for part in parts if part)
    return f"Run {run['run_id']}: {sentence}. {_stages(run)}"


def _failures(revised: Sequence[Row]) -> str:
    """Returns which claims failed, and the row that each failed by."""
    if not revised:
        return "nothing failed"
    each = [
        f"{claim['claim']} ({shortened(claim['next_step'].removeprefix('look at '))})"
        for claim in revised[:SHOWN_FAILURES]
    ]
    more = len(revised) - SHOWN_FAILURES
    also = f", and {more} more" if more > 0 else ""
    count = f"{len(revised)} claim{'' if len(revised) == 1 else 's'} to revise"
    return f"{count}: {', '.join(each)}{also}"


def _names(claims: Sequence[Row]) -> str:
    return ", ".join(claim["claim"] for claim in claims)


def _stages(run: Row) -> str:
    count = run["executed_stages"]
    plural = "" if count == 1 else "s"
    return f"{count} stage{plural} executed, {run['reused_stages']} reused."
