"""One line on stderr when a stage starts, goes on, and ends.

There is no animation: the lines read the same in a terminal, in a log of a build
server, and in a pipe.
"""

import threading
import time
from typing import Any

from flows.display import note, seconds, shortened
from tasks import progress

SECONDS_BETWEEN_LINES = 2.0
OFTEN = ("update", "checkpoint")
"""Events of which a line now and then is enough."""
UNSEEN = (progress.ENTERED, progress.SPENT)
"""Events that tell a record where the time goes, and people nothing."""
SHOWN_REASONS = 2
_STAGE_WIDTH = 18


class ProgressLines:
    """Prints what the stages of a run do."""

    def __init__(self) -> None:
        """Starts its clock."""
        self._started = time.monotonic()
        self._shown: dict[str, float] = {}
        self._lock = threading.Lock()

    def hear(self, stage: str, event: dict[str, Any]) -> None:
        """Prints an event of a stage if it is worth a line now."""
        kind = event.get("event")
        if kind in UNSEEN or stage == progress.RUN:
            return
        if kind == progress.STARTED:
            text = f"executing: {_reasons(str(event.get('message')))}"
        elif kind == progress.FINISHED:
            took = seconds(event["duration_ns"])
            text = f"{event.get('message')} in {took}"
        elif kind == progress.FAILED:
            text = f"failed after {seconds(event['duration_ns'])}"
        else:
            text = "  " + _describe(event)
            is_last = event.get("of") == event.get("update", 0)
            if kind in OFTEN and not self._is_due(stage) and not is_last:
                return
        elapsed = time.monotonic() - self._started
        note(f"{elapsed:7.1f} s  {stage:<{_STAGE_WIDTH}}  {text}")

    def _is_due(self, stage: str) -> bool:
        now = time.monotonic()
        with self._lock:
            if now - self._shown.get(stage, 0.0) < SECONDS_BETWEEN_LINES:
                return False
            self._shown[stage] = now
            return True


def _reasons(text: str) -> str:
    """Returns the first reasons; `harness why` has them all."""
    reasons = shortened(text).split("; ")
    if len(reasons) > SHOWN_REASONS:
        reasons[SHOWN_REASONS:] = ["…; see `harness why`"]
    return "; ".join(reasons)


def _describe(event: dict[str, Any]) -> str:
    """Returns a program's event as words, after the label of a program that has one."""
    label = event.get("label")
    return f"{label}: {_words(event)}" if label else _words(event)


def _words(event: dict[str, Any]) -> str:
    """Returns the message of an event, else words such as "update 60 of 300"."""
    if isinstance(event.get("message"), str):
        return str(event["message"])
    kind = str(event.get("event", ""))
    number = event.get(kind)
    if number is not None and "of" in event:
        return f"{kind} {number} of {event['of']}"
    return kind if number is None else f"{kind} {number}"
