"""Several controllers that are one: they start together, and one failure ends them all.

JAX notices a dead controller late, a hung one never, and swallows a SIGTERM; whoever
waits for a lost one waits for ever. So each controller has a session of its own, every
one has to tell of progress in time, and when one fails the rest are killed at once. A
training then goes on from its last committed checkpoint, in a new gang at a new port.
"""

import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import psutil

from tasks import children
from tasks.errors import ProgramRefused, ProgramsStopped, StageError
from tasks.run_program import Event, ProgramCall, ProgramRun, run_program

EXIT_LOST = 17
"""How a controller ends that has lost another one."""
FOLLOWS = (EXIT_LOST, -signal.SIGABRT)
"""Ends that follow from another controller's end, by our program or by JAX."""
SILENT = "was silent for"
"""How a cause tells of a controller that told of no progress in time."""
NO_END = -999
LOOK_SECONDS, LAST_SECONDS = 0.1, 10.0

Request = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a gang waits before it counts as failed."""

    start_seconds: float = 300.0
    """From the start of a controller to its first update."""
    step_seconds: float = 60.0
    """From one sign of progress of a controller to its next, after that."""
    follow_seconds: float = 1.0
    """From the first failure to the end of all, if the failed one cannot be told apart
    from those that it took along."""


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """A signal that one controller is sent, to see what the gang makes of it."""

    event: str
    """The event at which it is sent."""
    update: int
    """Update of that event."""
    teller: int
    """Controller whose event it is."""
    victim: int
    """Controller that gets the signal."""
    number: int
    """The signal; 0 sends none and marks the moment."""


@dataclass(frozen=True, kw_only=True)
class GangRun:
    """A gang that has ended, as a whole."""

    runs: tuple[ProgramRun, ...]
    """Each controller as it ended, in order."""
    failed: int | None
    """The controller that failed first; None when all completed."""
    cause: str
    """What became of it, in one sentence; empty when all completed."""
    disturbed_at_ns: int | None
    """Monotonic time of the disturbance; None where there was none."""
    started_at_ns: int
    """Monotonic time at which it was started."""
    ended_at_ns: int
    """Monotonic time at which no controller was left."""
    processes_left: int
    """Processes that still lived in a session of the gang."""

    @property
    def is_complete(self) -> bool:
        """Whether every controller completed."""
        return self.failed is None

    def events(self, kind: str) -> list[Event]:
        """Returns the events of a kind, controller after controller."""
        return [e for run in self.runs for e in run.events if e.get("event") == kind]


@dataclass(kw_only=True)
class _Controller:
    """What the launcher knows of one controller while it runs."""

    call: ProgramCall
    process: children.Process | None = None
    events: list[Event] = field(default_factory=list)
    started_ns: int = 0
    told_ns: int = 0
    """When it last told of anything."""
    is_training: bool = False
    run: ProgramRun | None = None
    error: StageError | None = None
    is_over: bool = False


def free_address() -> str:
    """Returns an address of this machine that nobody listens at right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def seats(count: int, platform: str, code_sha256: str) -> list[Request]:
    """Returns what each controller of a new gang on this machine is asked first.

    Args:
        count: Controllers.
        platform: JAX platform that all of them must have.
        code_sha256: Digest of the code that all of them must run.

    Returns:
        One request each, with a coordinator of its own time and a nonce of its own.
    """
    coordinator = free_address()
    return [
        {
            "process": process,
            "processes": count,
            "coordinator": coordinator,
            "platform": platform,
            "nonce": secrets.token_hex(16),
            "code_sha256": code_sha256,
        }
        for process in range(count)
    ]


def run_gang(
    calls: Sequence[ProgramCall],
    patience: Patience,
    disturbance: Disturbance | None = None,
    *,
    first: int = 0,
    ending: Callable[[], str] = str,
) -> GangRun:
    """Runs all controllers to their common end.

    Args:
        calls: One a controller; each `folder` exists and is empty.
        patience: How long it waits.
        disturbance: What is done to one of them; None for nothing.
        first: Number of the first controller, where others run on other hosts.
        ending: Says why all shall end now; empty as long as they shall not.

    Raises:
        ProgramsStopped: The run is being interrupted.
    """
    return _Gang(calls, patience, disturbance, first, ending).run()


class _Gang:
    """Controllers that run right now."""

    def __init__(
        self,
        calls: Sequence[ProgramCall],
        patience: Patience,
        disturbance: Disturbance | None,
        first: int,
        ending: Callable[[], str],
    ) -> None:
        self.controllers = [_Controller(call=call) for call in calls]
        self.first = first
        self.ending = ending
        self.patience = patience
        self.disturbance = disturbance
        self.disturbed_at_ns: int | None = None
        self.first_failure: tuple[int, str] | None = None
        self.is_ending = False
        self.lock = threading.Lock()

    def run(self) -> GangRun:
        started_at_ns = time.monotonic_ns()
        with ThreadPoolExecutor(max_workers=len(self.controllers)) as pool:
            watched = [
                pool.submit(self._run_one, number)
                for number in range(len(self.controllers))
            ]
            try:
                self._wait_for_the_end()
            finally:
                self._end_all()
        processes_left = self._end_sessions()
        ended_at_ns = time.monotonic_ns()
        for each in watched:
            each.result()  # a mistake of ours, which no controller made
        for controller in self.controllers:
            if isinstance(controller.error, ProgramsStopped):
                raise controller.error
        failed, cause = self.first_failure or (None, "")
        return GangRun(
            runs=tuple(map(_as_run, self.controllers)),
            failed=failed,
            cause=cause,
            disturbed_at_ns=self.disturbed_at_ns,
            started_at_ns=started_at_ns,
            ended_at_ns=ended_at_ns,
            processes_left=processes_left,
        )

    def _run_one(self, number: int) -> None:
        controller = self.controllers[number]
        controller.started_ns = controller.told_ns = time.monotonic_ns()

        def started(process: children.Process) -> None:
            with self.lock:
                controller.process = process
                if self.is_ending:
                    children.kill(process)

        call = replace(
            controller.call,
            on_start=started,
            on_event=lambda event: self._hear(number, event),
        )
        try:
            controller.run = run_program(call)
        except StageError as error:
            controller.error = error
        finally:
            controller.is_over = True

    def _hear(self, number: int, event: Event) -> None:
        controller, kind = self.controllers[number], event.get("event")
        controller.told_ns = time.monotonic_ns()
        controller.events.append(event)
        controller.is_training |= kind == "update"
        wanted = self.disturbance
        if wanted is not None and self.disturbed_at_ns is None:
            place = (kind, event.get("update"), self.first + number)
            if place == (wanted.event, wanted.update, wanted.teller):
                self._disturb(wanted)
        if controller.call.on_event is not None:
            controller.call.on_event(event)

    def _disturb(self, wanted: Disturbance) -> None:
        victim = self.controllers[wanted.victim - self.first].process
        self.disturbed_at_ns = time.monotonic_ns()
        if victim is not None and victim.returncode is None:
            os.kill(victim.pid, wanted.number)

    def _wait_for_the_end(self) -> None:
        """Returns when all are over, or the first failure can be told."""
        while not all(each.is_over for each in self.controllers):
            if any(each.error for each in self.controllers):
                self._wait_until_told_apart()
                break
            ended = self._told_to_end() or self._silent()
            if ended:
                self.first_failure = ended
                return
            time.sleep(LOOK_SECONDS)
        self.first_failure = self._failure()

    def _wait_until_told_apart(self) -> None:
        """Waits for the failure of the one that took the others along."""
        patient_until = time.monotonic() + self.patience.follow_seconds
        while not self._own_failures() and time.monotonic() < patient_until:
            time.sleep(LOOK_SECONDS)

    def _told_to_end(self) -> tuple[int, str] | None:
        why = self.ending()
        return (self.first, f"controller {self.first}: {why}") if why else None

    def _silent(self) -> tuple[int, str] | None:
        """Returns the controller that has been silent too long for longest."""
        now = time.monotonic_ns()
        late: list[tuple[int, int, float]] = []
        for number, each in enumerate(self.controllers):
            training, starting = self.patience.step_seconds, self.patience.start_seconds
            allowed = training if each.is_training else starting
            if not each.is_over and each.told_ns and now - each.told_ns > allowed * 1e9:
                late.append((each.told_ns, number, allowed))
        if not late:
            return None
        _, place, allowed = min(late)
        number = self.first + place
        return number, f"controller {number} {SILENT} {allowed:g} s"

    def _failure(self) -> tuple[int, str] | None:
        """Returns the failed controller, one that no other took along if there is."""
        failed = [(i, c) for i, c in enumerate(self.controllers) if c.error is not None]
        for place, controller in self._own_failures() or failed:
            number = self.first + place
            return number, f"controller {number}: {_how(controller)}"
        return None

    def _own_failures(self) -> list[tuple[int, _Controller]]:
        """Returns those that failed and that no other took along, with their places."""
        return [
            (place, controller)
            for place, controller in enumerate(self.controllers)
            if controller.error is not None and _return_code(controller) not in FOLLOWS
        ]

    def _end_all(self) -> None:
        with self.lock:
            self.is_ending = True
            for controller in self.controllers:
                if controller.process is not None:
                    children.kill(controller.process)

    def _end_sessions(self) -> int:
        """Ends what a controller has started and left; returns what would not end."""
        sessions = {c.process.pid for c in self.controllers if c.process is not None}
        patient_until = time.monotonic() + LAST_SECONDS
        while True:
            left = [n for n in psutil.pids() if _session_of(n) in sessions]
            if not left or time.monotonic() > patient_until:
                return len(left)
            for number in left:
                # A session's number is nobody else's as long as one of it lives.
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            time.sleep(LOOK_SECONDS)


def _session_of(number: int) -> int | None:
    try:
        return os.getsid(number)
    except (ProcessLookupError, PermissionError):
        return None


def _return_code(controller: _Controller) -> int:
    process = controller.process
    if process is None or process.returncode is None:
        return NO_END
    return int(process.returncode)


def _how(controller: _Controller) -> str:
    if isinstance(controller.error, ProgramRefused):
        return f"refused ({controller.error.code}): {controller.error}"
    code = _return_code(controller)
    if code < 0 and code != NO_END:
        return f"ended by {signal.Signals(-code).name}"
    for event in reversed(controller.events):
        if event.get("event") == "lost":
            return f"lost another one ({event['message']})"
    return str(controller.error)


def _as_run(controller: _Controller) -> ProgramRun:
    """Returns what is known of a controller, however it ended."""
    if controller.run is not None:
        return controller.run
    process, call = controller.process, controller.call
    return ProgramRun(
        program=call.program,
        label=call.label,
        process_id=process.pid if process is not None else 0,
        return_code=_return_code(controller),
        duration_ns=time.monotonic_ns() - controller.started_ns,
        peak_memory_bytes=None,
        out=call.folder / "out",
        events=controller.events,
        runtime=None,
        started_at_ns=time.time_ns() - (time.monotonic_ns() - controller.started_ns),
    )


def run_until_done(start: Callable[[int], GangRun], restarts: int) -> list[GangRun]:
    """Returns every gang that was needed until one completed.

    Args:
        start: Runs a new gang; takes how many there were before it, and restores from
            the last committed checkpoint where there were any.
        restarts: Most gangs after the first.
    """
    gangs: list[GangRun] = []
    while not gangs or (not gangs[-1].is_complete and len(gangs) <= restarts):
        gangs.append(start(len(gangs)))
    return gangs
