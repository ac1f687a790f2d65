"""Start one program of the training system, watch it, and bring back what it left.

JAX never runs in the orchestrator: its distributed runtime ends a process by
SIGABRT, one process alone may hold a TPU, and a "fresh process" must really be one.
The child has its own session and pipes, a deadline, and dies with its parent: it
holds the other end of its standard input, which closes when we go away.
"""

import dataclasses
import errno
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tasks import children
from tasks.errors import ProgramFailed, ProgramRefused, ProgramTimedOut
from tasks.forked_programs import ForkServer
from tasks.program_environment import program_environment, root_of
from tasks.unfinished_calls import unfinished_call

KILLED = -9
REFUSED = 2
QUOTED_LINES = 8
PROBE_BYTES = 1 << 16

Event = dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramRun:
    """One program that has ended."""

    program: str
    label: str
    process_id: int
    return_code: int
    duration_ns: int
    peak_memory_bytes: int | None
    out: Path
    events: list[Event]
    runtime: dict[str, str] | None
    started_at_ns: int

    @property
    def signal(self) -> int:
        """Number of the signal that ended it; 0 when it ended by itself."""
        return max(0, -self.return_code)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramCall:
    """A program to start: module, request and the conditions it runs under."""

    program: str
    request: Mapping[str, Any]
    folder: Path
    label: str = ""
    kill_when: Callable[[Event], bool] | None = None
    on_event: Callable[[Event], None] | None = None
    on_start: Callable[[children.Process], None] | None = None
    environment: Mapping[str, str] | None = None
    module_root: Path | None = None
    prefix: tuple[str, ...] = ()
    deadline_seconds: float = 1800.0
    fork_server: ForkServer | None = None


def run_program(call: ProgramCall) -> ProgramRun:
    """Runs one program to its end and return what is known about it.

    Args:
        call: The program; `folder` must exist and be empty.

    Raises:
        ProgramRefused: The program refused its input (exit code 2).
        ProgramFailed: It ended in any other way but success or a wanted kill.
        ProgramTimedOut: It ran past its deadline.
        ProgramsStopped: The run is being interrupted.
    """
    out = call.folder / "out"
    request = call.folder / "request.json"
    text = json.dumps({**call.request, "out": str(out)}, allow_nan=False)
    try:
        out.mkdir()
        request.write_text(text)
    except OSError as error:
        raise ProgramFailed(
            f"{call.program} cannot be started: {_refusal_of_system(error, out)}"
        ) from None
    errors = call.folder / "stderr.txt"
    started_at_ns, started_ns = time.time_ns(), time.monotonic_ns()
    with errors.open("wb") as stderr:
        process = _start(call, request, stderr)
    if call.on_start is not None:
        call.on_start(process)
    watch = _Watch(process, call)
    try:
        events = list(watch.events())
        return_code = process.wait()
    finally:
        watch.deadline.cancel()
        children.end(process)
    report = _read_json(out / "program.json")
    run = ProgramRun(
        program=call.program,
        label=call.label,
        process_id=process.pid,
        return_code=return_code,
        duration_ns=time.monotonic_ns() - started_ns,
        peak_memory_bytes=report.get("peak_memory_bytes"),
        out=out,
        events=events,
        runtime=report.get("runtime"),
        started_at_ns=started_at_ns,
    )
    # A program that ended before the signal reached it is the stage's to judge.
    if not (watch.was_killed_on_purpose and return_code in (KILLED, 0)):
        _raise_unless_done(call, run, watch.has_timed_out, errors)
    return run


def _start(call: ProgramCall, request: Path, errors: BinaryIO) -> children.Process:
    """Starts the program as a command, or forks it where that comes to the same."""
    environment = program_environment(
        call.module_root or root_of(call.program), call.environment
    )
    server = call.fork_server
    # JAX reads its settings when it is imported, which the server has done.
    if server is None or call.environment != server.changes or call.prefix:
        return children.start(
            [*call.prefix, sys.executable, "-m", call.program, str(request)],
            folder=call.folder,
            environment=environment,
            errors=errors,
        )
    return children.fork(
        server,
        call.program,
        request,
        folder=call.folder,
        environment=environment,
        errors=errors,
    )


class _Watch:
    """The progress of one child: its events, its deadline, its wanted death."""

    def __init__(self, process: children.Process, call: ProgramCall) -> None:
        self.process = process
        self.call = call
        self.has_timed_out = False
        self.was_killed_on_purpose = False
        self.deadline = threading.Timer(call.deadline_seconds, self._time_out)
        self.deadline.daemon = True
        self.deadline.start()
        threading.Thread(target=self._end_what_it_left, daemon=True).start()

    def _time_out(self) -> None:
        self.has_timed_out = True
        children.kill(self.process)

    def _end_what_it_left(self) -> None:
        """Kills what still runs when the child has ended: it may hold the child's
        standard output open, which would be read until the deadline.
        """
        try:
            # WNOWAIT: whoever waits for the child has to find it.
            os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            return  # It was waited for.
        children.kill(self.process)

    def events(self) -> Iterator[Event]:
        """Yields each progress event; kills the child at the one waited for."""
        for line in self.process.stdout or ():
            event = _parse_event(self.call.program, line)
            yield event
            if self.call.on_event is not None:
                self.call.on_event(event)
            if self.call.kill_when is not None and self.call.kill_when(event):
                self.was_killed_on_purpose = True
                children.kill(self.process)


def _parse_event(program: str, line: str) -> Event:
    try:
        event = json.loads(line)
    except json.JSONDecodeError:
        event = None
    if not isinstance(event, dict):
        raise ProgramFailed(
            f"{program} wrote {line[:80]!r} to its standard output, which carries "
            "progress events only (one JSON object a line)."
        )
    return event


def _raise_unless_done(
    call: ProgramCall, run: ProgramRun, has_timed_out: bool, errors: Path
) -> None:
    if has_timed_out:
        raise ProgramTimedOut(
            f"{call.program} ran past its deadline of {call.deadline_seconds:g} s and "
            "was killed."
        )
    ended = run.return_code
    if ended == 0 and (run.out / "program.json").is_file():
        return
    if ended == REFUSED and (run.out / "refused.json").is_file():
        refusal = _read_json(run.out / "refused.json")
        code, message = str(refusal["code"]), str(refusal["message"])
        raise ProgramRefused(code, message, run, refusal.get("fields", ()))
    how = _signal_name(-ended) if ended < 0 else f"exit code {ended}"
    called = unfinished_call(run.out, ended, how)
    if ended == KILLED:
        within = f" in a call of `{called.function}`" if called else ""
        raise ProgramFailed(
            f"{call.program} was killed by SIGKILL{within}, by hand or because memory "
            "was short; run again: finished stages are reused."
        )
    if called is not None:
        raise ProgramRefused(called.code, called.message, run, called.fields)
    raise ProgramFailed(f"{call.program} ended with {how}: {_last_lines(errors)}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _read_json(file: Path) -> dict[str, Any]:
    """Returns what a program reported, or nothing where it was killed before."""
    try:
        report = json.loads(file.read_bytes())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return report if isinstance(report, dict) else {}


def _last_lines(errors: Path) -> str:
    lines = errors.read_text(errors="replace").strip().splitlines()
    if not lines:
        # What it had to say may have found no place on a full disk.
        try:
            errors.with_name("probe").write_bytes(bytes(PROBE_BYTES))
        except OSError as error:
            return _refusal_of_system(error, errors)
    return "\n".join(lines[-QUOTED_LINES:]) or "it wrote nothing to standard error."


def _refusal_of_system(error: OSError, path: Path) -> str:
    if error.errno == errno.ENOSPC:
        return (
            f"the temporary folder {str(path.parent)!r} is full; free some space, or "
            "set TMPDIR to another folder."
        )
    return f"{error.strerror or error} ({str(path)!r})."
