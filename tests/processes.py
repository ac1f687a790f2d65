"""Processes that tests start and end: which are there, and waiting for them."""

import subprocess
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

PATIENCE = 900.0
"""Seconds to wait for what a busy machine delays; no test judges by it."""


def wait_until(
    happened: Callable[[], Any], what: str, seconds: float = PATIENCE
) -> Any:
    """Returns the first true answer; says what did not happen in time otherwise.

    A server that is too busy to answer has not said anything yet.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(httpx.HTTPError):
            if answer := happened():
                return answer
        time.sleep(0.25)
    raise AssertionError(f"not within {seconds:g} s: {what}")


def is_running(process_id: int) -> bool:
    """Returns False for a process that has ended but that nobody has waited for."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def are_gone(process_ids: Collection[int], seconds: float = 60.0) -> bool:
    """Returns whether processes end, which may take them a moment."""
    with suppress(AssertionError):
        wait_until(
            lambda: not any(map(is_running, process_ids)), "they have ended", seconds
        )
        return True
    return False


def descendants(process_id: int, command: str = "") -> list[int]:
    """Returns what a process started, and so on, by a part of their commands."""
    children: dict[int, list[tuple[int, str]]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            line = (folder / "cmdline").read_bytes().decode()
        except OSError:
            continue
        children.setdefault(int(parent), []).append((int(folder.name), line))
    found: list[tuple[int, str]] = []
    waiting = [process_id]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [child for child, _ in below]
    return [child for child, line in found if command in line]


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """Returns what a process says on standard error up to a line with some text."""
    assert process.stderr is not None
    read = []
    for line in process.stderr:
        read.append(line)
        if text in line:
            return "".join(read)
    raise AssertionError("".join(read))
