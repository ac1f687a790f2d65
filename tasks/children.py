"""The programs that run right now, so that an interrupted run can end them.

A task waits for its program in a thread, and a thread cannot be interrupted: only
ending the program ends the wait. The flow calls `stop_all` when it is interrupted.
A program whose parent dies without a word notices through its standard input.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from tasks.errors import ProgramsStopped

WATCHES_PARENT = "HARNESS_WATCHES_PARENT"
"""Variable that tells a program to end when its standard input does."""

_lock = threading.Lock()
_running: set[subprocess.Popen[str]] = set()
_stopping = False


def start(
    command: list[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    errors: BinaryIO,
) -> subprocess.Popen[str]:
    """Starts a program in a session and with pipes of its own, and remembers it.

    Args:
        command: What to run.
        folder: The folder it starts in.
        environment: Its whole environment.
        errors: The file its standard error goes to.

    Raises:
        ProgramsStopped: `stop_all` was called and `allow` was not since.
    """
    with _lock:
        if _stopping:
            raise ProgramsStopped("The run is being interrupted.")
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env={**environment, WATCHES_PARENT: "1"},
            start_new_session=True,
            text=True,
        )
        _running.add(process)
        return process


def end(process: subprocess.Popen[str]) -> None:
    """Kills a program with all it started, waits for it and forgets it."""
    kill(process)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    with _lock:
        _running.discard(process)


def kill(process: subprocess.Popen[str]) -> None:
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
