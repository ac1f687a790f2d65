"""What becomes of a run whose Prefect server goes away.

The server keeps a view of the run; the run's evidence is in our store. So stages go on
without it, a server that comes back is told what it missed, and one that does not come
back holds nothing up for long.
"""

from typing import Any

from flows.display import note
from flows.local_server import ServerFailed
from tasks import progress
from tasks.errors import StageError

RECONNECTIONS = 2
"""Tries to reach the server for one event; what fails is sent with a later one."""


def give_up_events_soon() -> None:
    """Lets Prefect try an event a few times and not for seconds, one after another.

    It has to be called before the first event of the process.
    """
    from prefect.events.clients import PrefectEventsClient
    from prefect.events.worker import EventsWorker, emit_events_to_cloud

    if not emit_events_to_cloud():
        EventsWorker.set_client_override(
            PrefectEventsClient, reconnection_attempts=RECONNECTIONS
        )


class RunEnd:
    """How a run ended by our store, for when its server cannot say it."""

    def __init__(self) -> None:
        """Has heard of no run yet."""
        self._told: dict[str, Any] = {}

    def hear(self, stage: str, event: dict[str, Any]) -> None:
        """Notes the end of a run."""
        if event.get("event") == progress.RECORDED:
            self._told = event

    def without_server(self) -> str:
        """Returns the id of a run that completed although its server went away.

        Raises:
            ServerFailed: The run had not begun.
            StageError: The run failed, whatever became of its server.
        """
        if not self._told:
            raise ServerFailed(
                "The Prefect server went away before the run could begin; run the "
                "same command again."
            ) from None
        if self._told["status"] != "completed":
            raise StageError(self._told["message"]) from None
        note(
            "The Prefect server went away during the run: its page shows no end. The "
            "evidence is complete."
        )
        return str(self._told["run_id"])
