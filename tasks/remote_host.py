"""What one host of a remote gang does: it runs its controller and sends what is left.

The host gets all from its order and the storage: nothing of the launcher's machine is
read. It holds its own controller to the step deadline, as a gang of one, and sends the
end of it last, so that an end that is there vouches for the files it names.
"""

import dataclasses
import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from tasks.errors import StageError
from tasks.gang import Disturbance, GangRun, Patience, run_gang
from tasks.launcher_watch import LauncherWatch
from tasks.meeting_place import meeting_place
from tasks.program_environment import controller_environment
from tasks.run_program import ProgramCall
from tasks.storage import Storage
from tasks.target_challenge import code_sha256
from tasks.target_platforms import STARTS_AS
from tasks.temporary_folders import temporary_folder

END = "end.json"
RESULTS = ("records", "artifacts", "program.json", "refused.json")
TERMINATED = "was told to end"
NEVER_RAN = -998
"""Return code of a controller whose host refused to start it."""


class OtherCode(StageError):
    """A host has other code than its launcher demands."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Order:
    """What a host is asked to do, as plain values that travel through the server."""

    gang: str
    """Nonce of the gang."""
    storage: str
    """URL of the folder of this gang, which launcher and hosts share."""
    program: str
    """Module of the controller."""
    inputs: dict[str, str]
    """Files that it reads: field of the request, and SHA-256."""
    request: dict[str, Any]
    """What the controller is asked, its seat among it."""
    patience: dict[str, float]
    """How long the host waits for signs of progress."""
    disturbance: dict[str, Any] | None
    """What is done to the controller of this host; None for nothing."""
    deadline_seconds: float
    """After so many seconds the controller is killed."""

    @property
    def process(self) -> int:
        """Number of the controller."""
        return int(self.request["process"])


class ToldToEnd(StageError):
    """A host was told to end, or has lost its launcher, which can tell it nothing."""


def run_host(order: Order) -> str:
    """Runs one controller to its end and sends what it left.

    Returns:
        What became of it, in one sentence; empty when it completed.

    Raises:
        ToldToEnd: This process was, or lost its launcher, and ended its controller.
        StageError: It could not be run.
    """
    place = Storage(order.storage).within(f"controller-{order.process}")
    try:
        _refuse_other_code(order)
        watch = LauncherWatch(Storage(order.storage))
        with temporary_folder("controller") as folder, _told_to_end() as told_to:

            def ending() -> str:
                return told_to() or watch.silent()

            gang = run_gang(
                [_call(order, folder, ending)],
                Patience(**order.patience),
                Disturbance(**order.disturbance) if order.disturbance else None,
                first=order.process,
                ending=ending,
            )
            told = ending()
            _send(place, gang, told)
    except StageError as error:
        _send_refusal(place, str(error))
        raise
    if told:
        raise ToldToEnd(f"{gang.cause}.")
    return gang.cause


def _refuse_other_code(order: Order) -> None:
    demanded, found = order.request["code_sha256"], code_sha256()
    if found != demanded:
        raise OtherCode(
            f"The host of controller {order.process} has code {found} where the "
            f"launcher demands {demanded}; bring the same code to every host."
        )


def _call(order: Order, folder: Path, ending: Callable[[], str]) -> ProgramCall:
    """Returns the call of the controller, with its inputs on this machine."""
    shared = Storage(order.storage.rpartition("/")[0])
    files = {}
    for name, sha256 in order.inputs.items():
        files[name] = folder / name
        files[name].write_bytes(shared.get(name, sha256))
    platform = order.request["platform"]
    work = folder / "work"
    work.mkdir()
    request = order.request | {name: str(path) for name, path in files.items()}
    if order.request["processes"] > 1:
        request["coordinator"] = meeting_place(
            order.gang, order.process, order.patience["start_seconds"], ending
        )
    return ProgramCall(
        program=order.program,
        request=request,
        folder=work,
        label=f"controller {order.process}",
        environment=controller_environment(STARTS_AS.get(platform, platform)),
        deadline_seconds=order.deadline_seconds,
    )


@contextmanager
def _told_to_end() -> Iterator[Callable[[], str]]:
    """Yields a question: was this process sent a SIGTERM? Empty as long as it was not.

    The worker sends one to cancel, and waits half a minute: until then the controller
    has to be ended and its files sent, so the signal must not end this process at once.
    """
    told: list[str] = []

    def hear(number: int, frame: FrameType | None) -> None:
        told.append(TERMINATED)

    earlier = signal.signal(signal.SIGTERM, hear)
    try:
        yield lambda: told[-1] if told else ""
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _send(place: Storage, gang: GangRun, was_told: str) -> None:
    run = gang.runs[0]
    digests = place.put_folder(run.out, RESULTS)
    disturbed_at_ns = None
    if gang.disturbed_at_ns is not None:
        # A monotonic clock is one of this machine alone.
        since_ns = time.monotonic_ns() - gang.disturbed_at_ns
        disturbed_at_ns = time.time_ns() - since_ns
    end = {
        "cause": gang.cause,
        # It did not fail, whatever signal ended its controller.
        "was_told_to_end": bool(was_told),
        "process_id": run.process_id,
        "return_code": run.return_code,
        "duration_ns": run.duration_ns,
        "peak_memory_bytes": run.peak_memory_bytes,
        "events": run.events,
        "runtime": run.runtime,
        "started_at_ns": run.started_at_ns,
        "disturbed_at_ns": disturbed_at_ns,
        "processes_left": gang.processes_left,
        "files": digests,
    }
    _send_end(place, end)


def _send_refusal(place: Storage, cause: str) -> None:
    end = {
        "cause": cause,
        "was_told_to_end": False,
        "process_id": 0,
        "return_code": NEVER_RAN,
        "duration_ns": 0,
        "peak_memory_bytes": None,
        "events": [],
        "runtime": None,
        "started_at_ns": time.time_ns(),
        "disturbed_at_ns": None,
        "processes_left": 0,
        "files": {},
    }
    _send_end(place, end)


def _send_end(place: Storage, end: Mapping[str, Any]) -> None:
    place.put(END, json.dumps(end, allow_nan=False).encode())
