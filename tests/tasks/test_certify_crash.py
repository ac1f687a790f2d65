"""The certificate of crashes for real: a write that is killed, and one with no room.

A checkpoint that is written wrongly has to be found.
"""

from pathlib import Path

import pytest

from tasks import certify_crash as crash
from tasks.compared_trainings import compare_trainings
from tasks.killed_training import training_request
from tasks.resumed_training import Resumption, resume_trainings
from tasks.work import Work
from tests.judged import OPEN, REVISE, judged_records
from tests.tasks.certificates import Certified, Plant
from tests.tasks.stage_maker import of
from warehouse.records.claims import Comparison, Measurement, Refusal

# Some thirty processes, one after another, before the first test can begin.
pytestmark = pytest.mark.timeout(900)
STEP = "manifest.json/before_rename"


def kill_at(work: Work, certified: Certified, step: str) -> list:
    """Kills a write at one step and restores what it left; returns the rows."""
    config = certified.config
    request = training_request(work, certified.tokens, config.model, config.train)
    request["stop_after_update"] = config.certify.written_update
    steps = crash._steps_of_a_write(work, request, config.certify)
    left = crash._kill_at(work, request, config.certify, steps, step)
    run = resume_trainings(work, request, [left], label="resumed")
    compared = crash.compared_writes(run, request, [left])
    compare_trainings(work, request, certified.trace(work), compared)
    return work.records


def test_a_write_that_is_killed_half_way_leaves_the_checkpoint_before_it(
    certified: Certified,
) -> None:
    rows = kill_at(certified.work(crash.certify_crash, "killed-write"), certified, STEP)
    (row,) = of(rows, Comparison, measure="restored_checkpoint")
    assert row.expected == row.measured
    assert row.expected.startswith("update 1, arrays ")


def test_a_write_that_commits_too_early_is_found(
    certified: Certified, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate can fail: here the mark is written before the manifest."""
    right = "{ARRAYS: content, MANIFEST: manifest, MARK: mark}"
    wrong = "{ARRAYS: content, MARK: mark, MANIFEST: manifest}"
    plant("checkpoint.py", right, wrong)
    # by the order that the wrong write tells, it commits after the step of the kill
    monkeypatch.setattr(crash, "COMMITTING_STEP", "manifest.json/renamed")
    rows = kill_at(certified.work(crash.certify_crash, "early-mark"), certified, STEP)
    (row,) = of(rows, Comparison, measure="restored_checkpoint")
    assert row.expected.startswith("update 1, arrays ")
    assert row.measured.startswith("checkpoint_damaged: ")
    assert row.first_difference


def fail_to_write(work: Work, certified: Certified, source: Path) -> list[Resumption]:
    """Trains one update, then on where no byte can be written; returns what is left."""
    config = certified.config
    request = training_request(work, certified.tokens, config.model, config.train)
    first = {"label": "first", "checkpoint_folder": str(source)}
    work.run(crash.TRAIN, request | first | {"stop_after_update": 1}, gather=False)
    left = crash._fail_to_write(work, request, config.certify, source)
    mounted = of(work.records, Measurement, measure="faulty_folder_mounted")
    assert len(mounted) == 2
    if not left:
        assert {row.reason for row in mounted} == {"not_supported"}
        pytest.skip("this machine makes no mount namespace")
    return left


def test_a_full_disk_and_a_read_only_folder_keep_the_last_checkpoint(
    certified: Certified, tmp_path: Path
) -> None:
    work = certified.work(crash.certify_crash, "no-room")
    left = fail_to_write(work, certified, tmp_path / "checkpoints")
    refused = of(work.records, Refusal)
    assert {row.received_reason for row in refused} == {"checkpoint_not_written"}
    assert "No space left" in refused[0].message
    assert "Read-only" in refused[1].message
    for resumption in left:
        names = {path.name for path in resumption.folder.rglob("*")}
        assert names == {
            *("update-000000", "update-000001"),
            *("arrays.npz", "manifest.json", "COMMITTED"),
        }
    untouched = of(work.records, Comparison, measure="checkpoints_after_failed_write")
    assert [row.first_difference for row in untouched] == ["", ""]
    assert judged_records(tmp_path, "certify_crash", work.records)["2.3"] == OPEN


def test_a_full_disk_that_leaves_a_half_of_a_checkpoint_is_revised(
    certified: Certified, plant: Plant, tmp_path: Path
) -> None:
    plant("checkpoint.py", "shutil.rmtree(absent, ignore_errors=True)", "pass")
    work = certified.work(crash.certify_crash, "half-left")
    fail_to_write(work, certified, tmp_path / "checkpoints")
    untouched = of(work.records, Comparison, measure="checkpoints_after_failed_write")
    parts = [row.case_name for row in untouched if row.first_difference]
    assert parts == ["full_disk"]
    assert judged_records(tmp_path, "certify_crash", work.records)["2.3"] == REVISE


def test_where_nothing_can_be_mounted_nothing_is_shown(
    certified: Certified, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A null with its reason reads as not demonstrated, never as passed."""
    monkeypatch.setattr(crash, "enter_namespace", lambda: None)
    work = certified.work(crash.certify_crash, "no-namespace")
    assert crash._fail_to_write(work, {}, certified.config.certify, Path("none")) == []
    assert [(row.value_count, row.reason) for row in work.records] == [
        (None, "not_supported"),
        (None, "not_supported"),
    ]
