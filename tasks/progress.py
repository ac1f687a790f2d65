"""Lets whoever is watching a run hear what its stages do, while they do it.

The command line prints it; nothing of it is evidence, and with no listener it goes
nowhere.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

ENTERED = "entered"
"""A stage begins: its key is about to be computed. With the task run, and those that it
waited for."""
STARTED = "started"
"""A stage has to be executed; the message is the reason."""
FINISHED = "finished"
"""A stage is done; the message is "executed" or "reused"."""
FAILED = "failed"
"""A stage failed; its error follows when the run ends."""

SPENT = "spent"
"""A stage spent a span of time on one part of its work (`tasks.clock`)."""
INTERRUPTED = "interrupted"
"""A run, not a stage, is being interrupted."""
RECORDED = "recorded"
"""The end of a run, not of a stage, is in the store; with `run_id` and `status`."""
RUN = "run"
"""Stands for the stage in events of a whole run."""

Listener = Callable[[str, dict[str, Any]], None]

_lock = threading.Lock()
_listeners: list[Listener] = []


def tell(stage: str, **event: Any) -> None:
    """Passes one event of a stage to every listener."""
    with _lock:
        listeners = list(_listeners)
    for listener in listeners:
        listener(stage, event)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Has `listener` called with stage name and event while the block runs."""
    with _lock:
        _listeners.append(listener)
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(listener)
