"""The drill as a flow of its own, as it is scheduled and as a user starts it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from flows.proofs import proof_stages
from flows.qualify import STAGES
from warehouse.view_files import FOLDER

OWN_CLAIMS = {"newline-translation-on-read": "1.1", "bos-doubled": "1.3"}
FAULT = "bos-doubled"


def test_a_drill_of_two_faults_tells_who_noticed_them(
    harness: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    done = harness("drill", "--fault", *OWN_CLAIMS, "--json", "--root", tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert {row["fault"]: row["claim"] for row in document["drills"]} == OWN_CLAIMS
    for row in document["drills"]:
        assert row["outcome"] == "killed"
        assert row["claim"] in row["claims"].split()
    asked = "select flow, stage from run_stages join runs using (run_id)"
    rows = harness("sql", asked, "--format", "json", "--root", tmp_path)
    assert json.loads(rows.stdout) == [{"flow": "drill", "stage": "drill_system"}]


def test_an_unknown_fault_is_refused_before_anything_starts(
    harness: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    done = harness("drill", "--fault", "bos-double", "--root", tmp_path / "new")
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


def test_faults_are_grouped_in_the_order_of_the_stages() -> None:
    """The view cannot ask the flow, so the order stands in both."""
    text = (FOLDER / "review" / "fault_stages.sql").read_text()
    listed = re.findall(r"'(\w+)'", text)
    stages = (*STAGES, *proof_stages())
    assert listed == [stage.definition.name for stage in stages]
