"""An interrupted command ends within a few seconds, whatever still waits.

Prefect tells its server how a run ended, and tries for a minute where the server is
gone; what it has not sent by then keeps the process for minutes more. Whoever typed
Ctrl-C shall not wait for that: what counts is in the store already.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from flows.display import note
from tasks import children, progress

SECONDS_TO_END = 5.0
INTERRUPTED, TERMINATED = 130, 143


@contextmanager
def ending_soon_when_interrupted() -> Iterator[None]:
    """Sees to it that this process ends soon once the block was interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.signal(signal.SIGINT, _interrupt)
    try:
        with progress.listening(_hear):
            yield
    finally:
        signal.signal(signal.SIGINT, earlier)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _end_soon(INTERRUPTED)
    raise KeyboardInterrupt


def _hear(stage: str, event: dict[str, Any]) -> None:
    """Hears of an interruption that reached the run in another way, as by SIGTERM."""
    if event.get("event") == progress.INTERRUPTED:
        _end_soon(TERMINATED)


def _end_soon(code: int) -> None:
    if any(isinstance(thread, _End) for thread in threading.enumerate()):
        return
    _End(SECONDS_TO_END, _end, [code]).start()


class _End(threading.Timer):
    """Ends the process; it does not keep it from ending sooner."""

    daemon = True


def _end(code: int) -> None:
    children.stop_all()
    note(
        "Interrupted. What was finished is kept; the same command goes on from it. "
        "The Prefect server did not answer, so its page may show the run as running."
    )
    os._exit(code)
