"""A run without a recorded end is running only where its process still is."""

import os
import platform
import subprocess
import sys
import time

import pytest

from warehouse.running import is_running
from warehouse.runs import utc_text

PAST = "2020-01-02T03:04:05.000000006Z"


def started(**changes: object) -> dict[str, object]:
    """Returns the record of a run that this process starts now."""
    now = utc_text(time.time_ns())
    own = {"host": platform.node(), "process_id": os.getpid(), "started_at": now}
    return {**own, **changes}


def test_the_run_of_a_process_that_is_there_is_running() -> None:
    assert is_running(started())


@pytest.mark.parametrize(
    "changes",
    [{"host": "elsewhere"}, {"process_id": 2**62}, {"started_at": PAST}],
    ids=["another host", "no process", "a later process of the same number"],
)
def test_any_other_run_is_not(changes: dict[str, object]) -> None:
    assert not is_running(started(**changes))


def test_an_ended_process_is_not_running() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        assert not is_running(started(process_id=process.pid))


def test_the_age_of_a_process_counts_from_its_start() -> None:
    """Sleeping first makes a process older, by as much; it counts hundredths."""
    code = (
        "import time; time.sleep(0.5); from warehouse.running import process_age_ns; "
        "print(process_age_ns())"
    )
    before_ns = time.monotonic_ns()
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    most_ns = time.monotonic_ns() - before_ns
    if sys.platform == "linux":
        assert 490_000_000 <= int(told) <= most_ns + 20_000_000
    else:
        assert told == "None\n"
