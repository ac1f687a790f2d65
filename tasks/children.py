"""The programs that run right now, so that an interrupted run can end them.

A task waits for its program in a thread, and a thread cannot be interrupted: only
ending the program ends the wait. The flow calls `stop_all` when it is interrupted.
A program whose parent dies without a word notices through its standard input.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol

from tasks.errors import ProgramsStopped
from tasks.forked_programs import ForkServer

WATCHES_PARENT = "HARNESS_WATCHES_PARENT"
"""Variable that tells a program to end when its standard input does."""


class Process(Protocol):
    """What is asked of a running program; `subprocess.Popen` has it."""

    pid: int
    returncode: int | Any

    @property
    def stdin(self) -> IO[str] | None:
        """Its standard input, which it watches."""

    @property
    def stdout(self) -> IO[str] | None:
        """Its standard output, one progress event a line."""

    def wait(self) -> int:
        """Waits for its end and returns its return code, minus a signal's number."""


_lock = threading.Lock()
_running: set[Process] = set()
_stopping = False


def start(
    command: list[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    errors: BinaryIO,
) -> Process:
    """Starts a program in a session and with pipes of its own, and remembers it.

    Args:
        command: What to run.
        folder: The folder it starts in.
        environment: Its whole environment.
        errors: The file its standard error goes to.

    Raises:
        ProgramsStopped: `stop_all` was called and `allow` was not since.
    """
    return _remember(
        lambda: subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env={**environment, WATCHES_PARENT: "1"},
            start_new_session=True,
            text=True,
        )
    )


def fork(
    server: ForkServer,
    program: str,
    request: Path,
    *,
    folder: Path,
    environment: Mapping[str, str],
    errors: BinaryIO,
) -> Process:
    """Forks a program from a process that has imported JAX, and remembers it.

    Args:
        server: That process.
        program: Module name.
        request: Its only argument.
        folder: The folder it starts in.
        environment: Its whole environment.
        errors: The file its standard error goes to.

    Raises:
        ProgramsStopped: `stop_all` was called and `allow` was not since.
        ProgramFailed: It cannot be forked.
    """
    watched = {**environment, WATCHES_PARENT: "1"}
    return _remember(
        lambda: server.start(
            program, request, folder=folder, environment=watched, errors=errors
        )
    )


def _remember(start_process: Callable[[], Process]) -> Process:
    with _lock:
        if _stopping:
            raise ProgramsStopped("The run is being interrupted.")
        process = start_process()
        _running.add(process)
        return process


def end(process: Process) -> None:
    """Kills a program with all it started, waits for it and forgets it."""
    kill(process)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    with _lock:
        _running.discard(process)


def kill(process: Process) -> None:
    """Sends SIGKILL to a program's whole session; it may have ended already."""
    # Its number cannot belong to anyone else before wait() has collected it.
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def stop_all() -> None:
    """Kills every running program and lets no other start."""
    global _stopping
    with _lock:
        _stopping = True
        for process in _running:
            kill(process)


def are_stopping() -> bool:
    """Returns whether the run is being interrupted, for whoever waits for others."""
    with _lock:
        return _stopping


def allow() -> None:
    """Lets programs start (again): a new run begins."""
    global _stopping
    with _lock:
        _stopping = False
