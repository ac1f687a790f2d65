"""Starts processes that outlive the command, and ends those that carry its mark."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from flows.operator_state import MARK
from tasks.errors import StageError

SECONDS_TO_END = 15.0


class PortTaken(StageError):
    """Somebody else holds the port."""


def start(arguments: list[str], environment: Mapping[str, str], log: Path) -> int:
    """Starts a Python module in a session of its own and returns its process id.

    Args:
        arguments: Name of the module and what it is called with.
        environment: The whole environment.
        log: File that takes what it writes, after what is there.
    """
    if threading.current_thread() is threading.main_thread():
        # A shell that starts us in the background has Ctrl-C ignored, and a child
        # that inherits this could not be ended in order.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with log.open("ab") as file:
        log.chmod(0o600)
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=dict(environment),
            cwd=log.parent,
            start_new_session=True,
        )
    return process.pid


def is_ours(process_id: int | None, mark: str) -> bool:
    """Returns whether a process runs and carries the mark."""
    if process_id is None:
        return False
    with suppress(psutil.Error):
        process = psutil.Process(process_id)
        environment = process.environ()
        # A process that was started a moment ago has no environment to read yet.
        return environment.get(MARK) == mark or not environment
    return False


def marked(mark: str) -> list[psutil.Process]:
    """Returns every process that carries the mark, except this one."""
    return [
        process
        for process in psutil.process_iter()
        if process.pid != os.getpid() and _has_mark(process, mark)
    ]


def _has_mark(process: psutil.Process, mark: str) -> bool:
    with suppress(psutil.Error):
        return bool(process.environ().get(MARK) == mark)
    return False


def value_of(process: psutil.Process, name: str) -> str | None:
    """Returns a variable of a process's environment."""
    with suppress(psutil.Error):
        return process.environ().get(name)
    return None


def end(processes: Iterable[psutil.Process], seconds: float = SECONDS_TO_END) -> int:
    """Ends processes in order, by force what is left; returns how many had to be."""
    processes = list(processes)
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    _, left = psutil.wait_procs(processes, timeout=seconds)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=seconds)
    return len(left)


def refuse_taken_port(host: str, port: int) -> None:
    """Refuses a port on which somebody listens.

    Raises:
        PortTaken: With who it is, where the system tells.
    """
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return  # The server itself then says that the port is taken.
    for connection in connections:
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            raise PortTaken(
                f"Port {port} of {host} is held by {_description(connection.pid)}; end "
                "it, or choose another port with --port."
            )


def _description(process_id: int | None) -> str:
    if process_id is None:
        return "another user's process"
    with suppress(psutil.Error):
        words = psutil.Process(process_id).cmdline()
        line = " ".join(words)
        return f"process {process_id} ({line if len(line) < 80 else line[:79] + '…'})"
    return f"process {process_id}"
