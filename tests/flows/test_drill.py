"""The drill as a flow of its own, as it is scheduled and as a user starts it."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

FAULT = "causal-mask-leaks-one"
OWN_CLAIM = "1.8"


@pytest.mark.timeout(600)
def test_a_drill_of_one_fault_tells_who_noticed_it(
    harness: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    done = harness("drill", "--fault", FAULT, "--json", "--root", tmp_path, timeout=580)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (row,) = document["drills"]
    assert (row["fault"], row["outcome"], row["claim"]) == (FAULT, "killed", OWN_CLAIM)
    # without the fault nothing is found, or it would not count
    assert row["claims_turned"] > 1
    assert OWN_CLAIM in row["claims"].split()
    asked = "select flow, stage from run_stages join runs using (run_id)"
    rows = harness("sql", asked, "--format", "json", "--root", tmp_path)
    assert json.loads(rows.stdout) == [{"flow": "drill", "stage": "drill_system"}]


def test_an_unknown_fault_is_refused_before_anything_starts(
    harness: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    done = harness(
        "drill", "--fault", "causal-mask-leak-one", "--root", tmp_path / "new"
    )
    assert done.returncode == 2
    assert f"Did you mean {FAULT!r}?" in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_drill_of_some_faults_calibrates_nothing(
    harness: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    done = harness("drill", "--accept", "--fault", FAULT, "--root", tmp_path / "new")
    assert done.returncode == 2
    assert "a drill of all faults" in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_training_that_ends_before_the_drill_is_refused_before_it_starts(
    harness: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    done = harness("drill", "--set", "train.updates=9", "--root", tmp_path / "new")
    assert done.returncode == 2
    assert "drill.restored_update plus drill.updates (10)" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()
