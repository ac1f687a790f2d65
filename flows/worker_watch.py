"""A flow run ends when the worker that started it is gone.

Without its worker nobody could cancel the run, and it would go on where nobody looks.
The worker reads what the run writes; when it dies, for whatever reason, the other end
of that pipe closes, and the run ends in order.
"""

import os
import select
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

UNDER_WORKER = "PREFECT__WORKER_NAME"
"""Variable that Prefect's workers give to the runs they start."""
STANDARD_OUTPUT, STANDARD_ERROR = 1, 2


TERMINATED = (
    "The run was ended by SIGTERM, as by a machine or a worker that goes down; run "
    "again: finished stages are reused."
)


class WorkerGone(BaseException):
    """The worker that started this run has died."""


@contextmanager
def ending_with_worker() -> Iterator[None]:
    """Raises `WorkerGone` in the main thread when the worker of this run dies.

    Does nothing where no worker started this process, or where it keeps no pipe.
    """
    if not _has_worker():
        yield
        return
    earlier = signal.signal(signal.SIGUSR1, _raise)
    ended, end = os.pipe()
    watching = threading.Thread(target=_watch, args=(ended,), daemon=True)
    watching.start()
    try:
        yield
    finally:
        os.close(end)
        watching.join()
        os.close(ended)
        signal.signal(signal.SIGUSR1, earlier)


def is_terminated() -> bool:
    """Returns whether a signal that ends this run is not its worker's cancelling it.

    Prefect tells a cancellation to the run before the signal; the state of a cancelled
    run is its worker's to say. A command that a user has started has no worker.
    """
    from prefect._internal.control_listener import get_intent

    return UNDER_WORKER in os.environ and get_intent() is None


def _has_worker() -> bool:
    return (
        UNDER_WORKER in os.environ
        and threading.current_thread() is threading.main_thread()
        and stat.S_ISFIFO(os.fstat(STANDARD_OUTPUT).st_mode)
    )


def _watch(ended: int) -> None:
    """Waits for the end of the worker, or of the block."""
    poll = select.poll()
    # Without an event asked for, the system tells of the other end's closing only.
    poll.register(STANDARD_OUTPUT, 0)
    poll.register(ended, select.POLLIN)
    if any(descriptor == ended for descriptor, _ in poll.poll()):
        return
    # Prefect's log would end the process at the next line that nobody reads.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (STANDARD_OUTPUT, STANDARD_ERROR):
        os.dup2(nowhere, descriptor)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)


def _raise(number: int, frame: FrameType | None) -> None:
    raise WorkerGone(
        "The worker that started this run has died, and the run ended with it; start "
        "a worker and run again: finished stages are reused."
    )
