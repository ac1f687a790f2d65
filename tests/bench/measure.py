"""Starts a command and says how long it took and how much memory it held."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One command that ended well."""

    seconds: float
    work_seconds: float
    """Time that processors spent on the command and on all that it waited for."""
    peak_memory_bytes: int
    """Largest resident memory of the command or of any process that it waited for."""
    output: str


class BenchFailed(RuntimeError):
    """A measured command ended badly, so there is nothing to report."""


def measure(
    command: Sequence[str],
    environment: Mapping[str, str],
    exit_codes: tuple[int, ...] = (0,),
) -> Measured:
    """Returns wall-clock time and peak memory of a command.

    Args:
        command: what to run.
        environment: its whole environment.
        exit_codes: the exit codes that count as done.

    Raises:
        BenchFailed: it ended with another exit code; the text ends with what it wrote.
    """
    started = time.monotonic()
    process = subprocess.Popen(
        list(command), env=dict(environment), stdout=subprocess.PIPE, text=True
    )
    try:
        output = process.stdout.read() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    except BaseException:
        # Whoever interrupts the bench must not leave the measured command running.
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    finally:
        if process.stdout:
            process.stdout.close()
    if process.returncode not in exit_codes:
        raise BenchFailed(
            f"{' '.join(command)} ended with {process.returncode}:\n{output[-2000:]}"
        )
    unit = 1 if sys.platform == "darwin" else 1024
    return Measured(
        seconds=time.monotonic() - started,
        work_seconds=usage.ru_utime + usage.ru_stime,
        peak_memory_bytes=usage.ru_maxrss * unit,
        output=output,
    )


def peak_of_process(process_id: int) -> int | None:
    """Returns the peak memory of a running process in bytes, where Linux tells it."""
    status = Path("/proc", str(process_id), "status")
    if not status.is_file():
        return None
    for line in status.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None
