"""A run ends in order when the worker that reads its output is gone."""

import os
import subprocess
import sys

import pytest

from flows.worker_watch import UNDER_WORKER

SCRIPT = """
import os, sys, threading
from flows.worker_watch import WorkerGone, ending_with_worker
try:
    with ending_with_worker():
        os.write(1, b"watching\\n")
        threading.Event().wait(float(sys.argv[1]))
except WorkerGone as gone:
    print("nobody reads this", flush=True)
    os.write(int(sys.argv[2]), f"{gone}".encode())
"""


def _run(seconds, *, worker, close):
    """Answers the exit code of a run, and what it said of its worker's death."""
    told, tell = os.pipe()
    environment = {name: os.environ[name] for name in os.environ if name != worker}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(seconds), str(tell)],
        env=environment | ({UNDER_WORKER: worker} if worker else {}),
        stdout=subprocess.PIPE,
        pass_fds=[tell],
    )
    os.close(tell)
    assert process.stdout.readline() == b"watching\n"
    if close:
        process.stdout.close()
    with os.fdopen(told) as text:
        said = text.read()
    code = process.wait(30)
    process.stdout.close()
    return code, said


def test_a_run_whose_worker_dies_ends_and_says_why():
    code, said = _run(99, worker="w", close=True)
    assert code == 0
    assert said.startswith("The worker that started this run has died")
    assert "run again" in said


@pytest.mark.parametrize(
    ("worker", "close"), [("w", False), (None, True)], ids=["alive", "no-worker"]
)
def test_a_run_goes_on_while_its_worker_lives_or_where_it_has_none(worker, close):
    """A command whose output nobody reads any more, such as `| head`, has no worker."""
    assert _run(1, worker=worker, close=close) == (0, "")
