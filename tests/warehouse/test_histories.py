"""Views over many runs: what fills the disk, and how long a verdict has held."""

from dataclasses import replace
from pathlib import Path

from tests.warehouse.counted import errors
from warehouse.store import Store

# --- disk ---


def test_a_shared_file_fills_the_disk_once_and_an_unused_one_is_told(
    made, ask, tmp_path: Path
):
    """The same bytes made by three executions are one file of the first stage."""
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.write_bytes(b"x" * 1000)
    own.write_bytes(b"y" * 10)
    made.execute("train_model", [errors(1)], key="a", artifacts=[shared])
    made.run("run-1")
    made.run("run-2", state="reused")
    made.execute("train_model", [errors(1)], key="b", artifacts=[shared, own])
    made.execute("export_endpoints", [], key="a", artifacts=[shared])
    found = ask(
        "stage, kind, files, stored_bytes, made_bytes, unused_bytes", "store_usage"
    )
    on_disk = sum(
        path.stat().st_size
        for folder in ("artifacts", "records")
        for path in (made.store.root / folder).rglob("*")
        if path.is_file()
    )
    assert [row for row in found if row[1] == "artifact"] == [
        ("train_model", "artifact", 2, 1010, 3010, 10)
    ]
    (evidence,) = [row for row in found if row[1] == "evidence"]
    assert evidence[2] == 2
    assert evidence[5] == evidence[3] / 2
    assert sum(row[3] for row in found) == on_disk


# --- verdicts over time ---


def test_runs_are_counted_since_the_last_one_with_nothing_to_revise(made, ask):
    """A run that failed and one of another corpus do not end the count."""
    made.execute("train_model", [errors(0)], key="a")
    made.run("run-1")
    made.executions.clear()
    made.run("run-2", system="system-2", status="failed")
    made.execute("train_model", [errors(3)], key="b")
    made.run("run-3", system="system-3")
    made.execute("train_model", [errors(0)], key="c")
    made.run("run-4", data="other")
    found = ask(
        "data_sha256, runs, newest_run_id, last_clean_run_id, runs_since_clean, "
        "last_accepted_run_id, runs_since_accepted",
        "accepted_runs",
    )
    assert found == [
        ("d", 3, "run-3", "run-1", 2, "run-1", 2),
        ("other", 1, "run-4", "run-4", 0, "run-4", 0),
    ]
    found = ask(
        "newest_run_id, runs, accepted, revised, open, is_accepted", "subject_results"
    )
    assert found == [
        ("run-1", 1, 1, 0, 0, True),
        ("run-2", 1, 0, 0, 1, False),
        ("run-3", 1, 0, 1, 0, False),
        ("run-4", 1, 1, 0, 0, True),
    ]


def test_a_run_of_a_user_s_file_is_none_since_the_last_of_the_built_in_system(
    made, ask
):
    made.execute("train_model", [errors(0)], key="a")
    made.run("run-1")
    made.execute("train_model", [errors(3)], key="b")
    made.run("run-2", system="system-2", implementation="my_model.py")
    found = ask(
        "implementation, runs, last_clean_run_id, runs_since_clean", "accepted_runs"
    )
    assert sorted(found) == [("", 1, "run-1", 0), ("my_model.py", 1, None, 1)]


def test_a_link_to_the_execution_of_another_stage_is_no_value_of_this_one(made, ask):
    """Whoever writes a run record could otherwise borrow the rows of another stage."""
    execution = made.execute("train_model", [errors(0)], key="a")
    made.executions = {"tokenize_corpus": replace(execution, stage="tokenize_corpus")}
    made.run("run-1")
    assert ask("run_id", "claim_trends") == []
    assert Store(made.store.root).find("a", "train_model").nonce == execution.nonce
