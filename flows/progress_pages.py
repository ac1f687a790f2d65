"""How far a stage is, on Prefect's pages: a share while it trains, lines while it runs.

It hears what the programs say, as the command line does; no program knows Prefect.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.context import TaskRunContext
from prefect.logging import get_run_logger

from flows.published import NOT_PUBLISHED, is_watched, key_of
from tasks import progress

SECONDS_BETWEEN_UPDATES = 3.0
OWN_EVENTS = (
    progress.ENTERED,
    progress.STARTED,
    progress.FINISHED,
    progress.FAILED,
    progress.SPENT,
)

_is_shown = ContextVar("is_shown", default=False)


class ProgressPages:
    """Publishes what programs say: updates as a share, the rest as log lines."""

    def __init__(self, preset: str) -> None:
        """Starts with nothing published; keys begin with the preset."""
        self._preset = preset
        self._artifacts: dict[str, UUID] = {}
        self._published: dict[str, float] = {}
        self._is_broken = False

    def hear(self, stage: str, event: dict[str, Any]) -> None:
        """Publishes an event if it is worth a request now; called in the task's thread.

        A server that takes nothing stops this and nothing else.
        """
        kind = event.get("event")
        if self._is_broken or kind in OWN_EVENTS or TaskRunContext.get() is None:
            return
        try:
            if kind == "update":
                self._show_share(stage, event)
            elif kind != "checkpoint" and isinstance(event.get("message"), str):
                get_run_logger().info("%s", _words(event))
        except NOT_PUBLISHED as error:
            self._is_broken = True
            get_run_logger().warning("Progress is no longer published: %s", error)

    def _show_share(self, stage: str, event: dict[str, Any]) -> None:
        now, is_last = time.monotonic(), event["update"] >= event["of"]
        is_due = now - self._published.get(stage, -1e9) >= SECONDS_BETWEEN_UPDATES
        if not (is_due or is_last):
            return
        self._published[stage] = now
        share = 100.0 * event["update"] / max(event["of"], 1)
        words = f"{stage}: {_words(event)}"
        known = self._artifacts.get(stage)
        if known is not None:
            update_progress_artifact(known, share, description=words)
            return
        made = create_progress_artifact(
            share, key=key_of(self._preset, f"{stage}-progress"), description=words
        )
        self._artifacts[stage] = made  # type: ignore[assignment]


def _words(event: dict[str, Any]) -> str:
    label = event.get("label")
    return f"{label}: {event['message']}" if label else str(event["message"])


@contextmanager
def progress_shown(preset: str) -> Iterator[None]:
    """Has the progress of stages on the pages of the server while the block runs.

    A flow inside another one is shown by the outer one.
    """
    if not is_watched() or _is_shown.get():
        yield
        return
    token = _is_shown.set(True)
    try:
        with progress.listening(ProgressPages(preset).hear):
            yield
    finally:
        _is_shown.reset(token)
