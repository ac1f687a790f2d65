"""SIGKILL at any moment: an execution counts whole or not at all."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from warehouse.store import Store

KILLS = 60
WHOLE = 3
"""Commits that nothing kills, to learn how long the quickest takes."""

_WRITER = """
import pathlib, sys
from warehouse.records.claims import Comparison, Measurement
from warehouse.runs import utc_text
from warehouse.store import Store
root, source = map(pathlib.Path, sys.argv[1:])
rows = [
    Measurement(claim="1.1", measure="m", value_count=number, unit="1")
    for number in range(50)
] + [
    Comparison(claim="1.1", measure="m", expected="a", measured="a", expected_from="b")
]
store = Store(root)
print("ready", flush=True)
while True:
    line = sys.stdin.readline()
    if not line:
        break  # the test is over: no child that nobody waits for
    pid = __import__("os").fork()
    if pid == 0:
        source.write_bytes(line.encode() * 5000)
        store.commit(
            stage="train_model", key="key", components={"n": line},
            artifacts=[store.put_artifact(source)], records=rows, reason="",
            started_at=utc_text(0), finished_at=utc_text(0), host="h",
        )
        __import__("os")._exit(0)
    print(pid, flush=True)
    sys.stdin.readline()  # until then the process id stays taken
    __import__("os").waitpid(pid, 0)
    print("over", flush=True)
"""


def test_after_many_kills_every_commit_is_whole_and_the_next_one_works(tmp_path: Path):
    """Each child is killed after another delay, spread over one whole commit."""
    random_delays = random.Random(20_261)
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(_WRITER),
            str(tmp_path / "evidence"),
            str(tmp_path / "source.bin"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    seconds = []
    for number in range(WHOLE):
        started = time.perf_counter()
        parent.stdin.write(f"whole {number}\nreap\n")
        parent.stdin.flush()
        parent.stdout.readline()
        parent.stdout.readline()
        seconds.append(time.perf_counter() - started)
    for number in range(KILLS):
        parent.stdin.write(f"{number}\n")
        parent.stdin.flush()
        child = int(parent.stdout.readline())
        time.sleep(random_delays.uniform(0, 1.2 * min(seconds)))
        os.kill(child, signal.SIGKILL)
        parent.stdin.write("reap\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == "over\n"
    parent.stdin.close()
    assert parent.wait() == 0
    parent.stdout.close()

    store = Store(tmp_path / "evidence")
    commits = store.commits()
    files = list((tmp_path / "evidence/executions").rglob("*.json"))
    assert WHOLE <= len(commits) == len(files)
    # Some were killed in time, or the test would prove nothing.
    assert len(commits) < KILLS + WHOLE
    assert [store.commit_problem(commit) for commit in commits] == [""] * len(commits)
    assert store.find("key", "train_model").nonce == commits[-1].nonce
