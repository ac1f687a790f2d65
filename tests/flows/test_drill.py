"""The drill as a flow of its own, as it is scheduled and as a user starts it."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

SMALL = ("--set", "train.updates=10", "--set", "train.overfit_updates=2")


@pytest.mark.timeout(600)
def test_a_drill_runs_its_own_stages_and_finds_every_fault(
    harness: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    done = harness("drill", *SMALL, "--json", "--root", tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    nowhere = [row["control"] for row in document["faults"] if not row["first_kind"]]
    assert nowhere == ["none"]
    assert {row["claim"]: row["rows_missing"] for row in document["claims"]} == {
        "2.5": 0
    }
    asked = "select flow, stage from run_stages join runs using (run_id)"
    rows = harness("sql", asked, "--format", "json", "--root", tmp_path)
    assert {(row["flow"], row["stage"]) for row in json.loads(rows.stdout)} == {
        ("drill", "tokenize_corpus"),
        ("drill", "train_model"),
        ("drill", "drill_recovery"),
    }


def test_a_training_that_ends_before_the_drill_is_refused_before_it_starts(
    harness: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    done = harness("drill", "--set", "train.updates=9", "--root", tmp_path / "new")
    assert done.returncode == 2
    assert "drill.restored_update plus drill.updates (10)" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()
