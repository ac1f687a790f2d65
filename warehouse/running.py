"""Whether a run that has recorded no end is still going on.

A process that was killed writes nothing, so the record alone cannot tell it from one
that is at work. Its own host can.
"""

import os
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

RUNNING = "running"
"""Status of a run without a recorded end whose process is still there."""


def is_running(started: Mapping[str, Any]) -> bool:
    """Returns whether the process that started a run is still there, on this host."""
    if started["host"] != platform.node():
        return False
    try:
        os.kill(started["process_id"], 0)
    except PermissionError:
        pass
    except (OSError, OverflowError):
        return False
    # Linux gives the number of an ended process to a later one.
    with suppress(OSError, ValueError, IndexError):
        return _process_start(started["process_id"]) <= _seconds(started["started_at"])
    return True


def may_be_at_work(process_id: str) -> bool:
    """Returns whether a process is there, or cannot be asked for.

    Args:
        process_id: Its number, as a file is named by it.
    """
    try:
        os.kill(int(process_id), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def process_age_ns() -> int | None:
    """Returns how long ago this process started; None where the system does not tell.

    Exact to a tick of the system, a hundredth of a second.
    """
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        started_ns = int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - started_ns
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def _process_start(process_id: int) -> float:
    """Returns when a process started, in seconds since 1970, up to one too few."""
    booted = Path("/proc/stat").read_text().partition("btime ")[2].split()[0]
    # The command's name before it may hold blanks.
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return int(booted) + int(fields[19]) / os.sysconf("SC_CLK_TCK") - 1


def _seconds(instant: str) -> float:
    return datetime.fromisoformat(instant[:19] + "+00:00").timestamp()
