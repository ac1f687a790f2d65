"""However a run ends, its programs end with it and the store tells the truth."""

import os
import signal
import sqlite3
import time
from datetime import UTC, datetime

import pytest

from flows.reading import open_run, view_rows
from tasks.program_environment import private_cache
from tests.processes import are_gone, descendants, read_until
from warehouse.store import Store


def _flow_runs_since(started_at):
    """Returns names, states and messages that Prefect's private database shows.

    Tests of other processes use it too.
    """
    database = private_cache("prefect") / "prefect.db"
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        return connection.execute(
            "select flow_run.name, flow_run_state.name, flow_run_state.message "
            "from flow_run join flow_run_state on flow_run.state_id = flow_run_state.id"
            " where flow_run.created >= ?",
            (started_at.strftime("%Y-%m-%d %H:%M:%S"),),
        ).fetchall()


def _runs(root):
    connection = open_run(root, None)
    return view_rows(connection, "runs"), view_rows(connection, "run_stages")


def test_a_failing_stage_is_one_sentence_and_what_is_finished_stays(
    tiny_harness, tmp_path
):
    started_at = datetime.now(UTC)
    process = tiny_harness("refuse")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2, err
    assert out == ""
    assert "harness: misbehave failed: The split is empty." in err.splitlines()
    assert "Traceback" not in err
    sentence = "misbehave failed: The split is empty."
    assert ("qualify fixture", "Failed", sentence) in _flow_runs_since(started_at)
    runs, stages = _runs(tmp_path / "evidence")
    assert [(run["status"], run["message"]) for run in runs] == [("failed", sentence)]
    assert [(row["stage"], row["state"]) for row in stages] == [
        ("scale_number", "executed")
    ]
    assert [commit.stage for commit in Store(tmp_path / "evidence").commits()] == [
        "scale_number"
    ]


@pytest.mark.parametrize(
    ("sent", "codes"),
    [
        (signal.SIGINT, {130}),
        (signal.SIGTERM, {128 + signal.SIGTERM}),
        (signal.SIGKILL, {-signal.SIGKILL}),
    ],
    ids=["ctrl-c", "sigterm", "sigkill"],
)
def test_an_interrupted_run_leaves_no_process_and_a_valid_store(
    sent, codes, tiny_harness, tmp_path
):
    """A Ctrl-C is recorded and told; a SIGKILL can be neither, and harms nothing."""
    process = tiny_harness("hang")
    read_until(process, "ready")
    below = descendants(process.pid)
    assert len(below) >= 2, "the server and the program"
    os.kill(process.pid, sent)
    started = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - started < 15
    assert process.returncode in codes, err
    assert are_gone(below)
    assert "Traceback" not in err
    runs, stages = _runs(tmp_path / "evidence")
    assert [run["status"] for run in runs] == ["interrupted"]
    if sent != signal.SIGKILL:
        assert err.splitlines()[-1].startswith("Interrupted.")
        assert [row["stage"] for row in stages] == ["scale_number"]
    store = Store(tmp_path / "evidence")
    (commit,) = store.commits()
    assert commit.stage == "scale_number"
    assert store.find(commit.key, commit.stage).nonce == commit.nonce


def test_the_next_run_goes_on_from_the_last_finished_stage(tiny_harness, tmp_path):
    process = tiny_harness("hang")
    read_until(process, "ready")
    process.kill()
    process.communicate(timeout=60)
    process = tiny_harness("behave")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "1 stage executed, 1 reused" in out
    assert out.splitlines()[-1].startswith("Next: harness review")
    runs, stages = _runs(tmp_path / "evidence")
    assert {run["status"] for run in runs} == {"interrupted", "completed"}
    last = [row for row in stages if row["run_id"] == runs[0]["run_id"]]
    assert [(row["stage"], row["state"]) for row in last] == [
        ("scale_number", "reused"),
        ("misbehave", "executed"),
    ]
    assert all(row["duration_ns"] > 0 for row in last)
    _assert_times_are_taken(runs[0], *last)


def _assert_times_are_taken(run, reused, executed):
    """Parts lie within the whole, and what a stage did not do took no time."""
    parts = ("program_ns", "recording_ns", "hashing_ns", "key_ns")
    for row in (reused, executed):
        assert row["key_ns"] > 0
        assert row["hashing_ns"] > 0
        assert 0 < sum(row[part] for part in parts) <= row["duration_ns"]
        assert row["waiting_ns"] >= 0
    assert reused["program_ns"] == reused["recording_ns"] == 0
    assert min(executed["program_ns"], executed["recording_ns"]) > 0
    assert run["starting_ns"] > 10**8, "Python, Prefect and a server have to start"
    stages_ns = run["elapsed_ns"] - run["starting_ns"] - run["ending_ns"]
    assert stages_ns >= executed["duration_ns"] > 0
    assert run["elapsed_ns"] > run["duration_ns"]


def test_prefect_has_recorded_every_task_run_when_the_command_ends(
    tiny_harness, tmp_path, project
):
    """Prefect's embedded server would lose some; ours is asked before it may end."""
    process = tiny_harness("behave")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    database = private_cache("prefect") / "prefect.db"
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        states = connection.execute(
            "select task_run.name, task_run.state_name from task_run join flow_run on "
            "task_run.flow_run_id = flow_run.id order by flow_run.created desc limit 2"
        ).fetchall()
    assert set(states) == {("scale_number", "Executed"), ("misbehave", "Executed")}
