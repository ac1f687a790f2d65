"""The certificate of recovery for real, at few points: processes die, restore, go on.

Every measure that the contract asks of it has to be there.
"""

import pytest

from flows.proofs import PROOFS
from model.refusal import ReasonCode
from tasks import refused_restores
from tasks.certify_recovery import certify_recovery
from tasks.killed_training import training_request
from tests.tasks.certificates import Certified
from tests.tasks.stage_maker import asked_and_found, of
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.execution import ProgramExecution
from warehouse.records.refusals import CheckpointField, RefusedPair, StoppedTraining

# Some thirty processes, one after another, before the first test can begin.
pytestmark = pytest.mark.timeout(900)
MUST_DIFFER = frozenset({"restoring_process"})


@pytest.fixture(scope="module")
def recovery(certified: Certified) -> list:
    return certified.prove(PROOFS["recovery"][0])


def parted(rows: list) -> list[tuple[str, str, str]]:
    compared = of(rows, Comparison)
    assert len(compared) > 1
    return [
        (row.measure, row.case_name, row.first_difference)
        for row in compared
        if (row.expected != row.measured) != (row.measure in MUST_DIFFER)
    ]


def test_every_measure_that_the_contract_asks_of_a_recovery_is_there(
    recovery: list,
) -> None:
    asked, found = asked_and_found("certify_recovery", recovery)
    assert len(asked) > 20
    assert asked - found == set()


def test_a_recovery_parts_nowhere_and_refuses_what_it_has_to(recovery: list) -> None:
    assert parted(recovery) == []
    refusals = of(recovery, Refusal)
    assert [r for r in refusals if r.expected_reason != r.received_reason] == []
    assert len(refusals) > 40


def test_each_point_is_killed_alone_and_restored_by_a_process_that_never_trained_it(
    recovery: list,
) -> None:
    def values(measure: str) -> dict[str, int]:
        rows = of(recovery, Measurement, measure=measure, claim="2.2")
        return {row.case_name: row.value_count for row in rows}

    killed, restored = values("interrupted_process_id"), values("resumed_process_id")
    assert set(killed) == {"point-00", "point-05", "chain-01", "chain-03"}
    assert len(set(killed.values())) == 4
    assert restored["point-00"] == restored["point-05"] == restored["chain-03"]
    assert restored["chain-01"] == killed["chain-03"]
    assert restored["point-05"] not in killed.values()
    assert values("killed_by_signal") == dict.fromkeys(killed, 9)
    assert values("restored_update")["point-05"] == 5


def test_a_training_that_left_the_real_line_is_kept_as_evidence(
    recovery: list,
) -> None:
    programs = of(recovery, ProgramExecution, label="non-finite gradient")
    assert [program.return_code for program in programs] == [2]
    (refused,) = of(
        recovery, Refusal, measure="non_finite_update", case_name="gradient"
    )
    assert "in update 2 is not finite" in refused.message
    kept = of(recovery, Comparison, measure="last_good_checkpoint")
    assert {row.measured for row in kept} == {"update 1"}
    for row in of(recovery, StoppedTraining):
        assert (row.stopped_at_update, row.last_good_update) == (2, 1)
        assert row.stop_reason == f"non_finite_{row.case_name}"
        assert row.traced_updates == 1
        assert row.kept_sha256
        assert row.kept_sha256 == row.committed_sha256
    assert len(of(recovery, StoppedTraining)) == 2


def test_every_refusal_leaves_the_folder_and_names_what_was_changed(
    recovery: list,
) -> None:
    """The program's own cases, those of other runtimes and of trainings that stop."""
    untouched = of(recovery, Comparison, measure="checkpoint_after_refusal")
    named = of(recovery, Comparison, measure="refused_field_named")
    cases = {row.case_name for row in untouched}
    assert cases >= {row.case_name for row in named}
    refused = of(recovery, Refusal)
    assert {f"{row.measure}/{row.case_name}" for row in refused} <= cases
    runtimes = [row for row in named if "another_runtime/nproc" in row.case_name]
    assert [row.measured for row in runtimes] == ['["numerics.nproc"]']
    again = [case for case in cases if case.startswith("non_finite_update_again/")]
    assert len(again) == 2


def test_of_two_changes_both_are_named_and_every_pair_is_there(recovery: list) -> None:
    pairs = of(recovery, RefusedPair)
    assert [
        (row.first_change, row.second_change)
        for row in pairs
        if row.expected_fields != row.received_fields
        or row.expected_reason != row.received_reason
        or row.sha256_before != row.sha256_after
    ] == []
    fields = len(of(recovery, CheckpointField))
    two = [row for row in pairs if row.measure == "checkpoint_under_another_setting"]
    assert len(two) == fields * (fields - 1) // 2 > 1000


@pytest.mark.parametrize("spoil", ["committed", "written"])
def test_a_checkpoint_that_is_touched_after_the_stop_is_seen(
    certified: Certified, monkeypatch: pytest.MonkeyPatch, spoil: str
) -> None:
    """The comparison can fail: here a byte changes when the training has stopped."""
    work = certified.work(certify_recovery, f"touched-{spoil}")
    folder = work.scratch("non-finite-loss")
    run_training = refused_restores._run

    def run_and_touch(*arguments: object) -> refused_restores.Stopped:
        stopped = run_training(*arguments)  # type: ignore[arg-type]
        if spoil == "committed" and arguments[2] == "non-finite loss":
            last = folder / stopped.told("checkpoint")[-1]["folder"]
            (last / "more").touch()
        if spoil == "written" and arguments[2] == "non-finite loss again":
            (folder / "update-000000" / "more").touch()
        return stopped

    monkeypatch.setattr(refused_restores, "_run", run_and_touch)
    config = certified.config
    request = training_request(work, certified.tokens, config.model, config.train)
    only_loss = refused_restores.NonFinite(
        case="loss",
        rate=config.certify.diverging_learning_rate,
        code=ReasonCode.NON_FINITE_LOSS,
    )
    refused_restores.stop_at(work, request, config.train, only_loss)
    touched = {
        row.case_name
        for row in of(work.records, Comparison, measure="checkpoint_after_refusal")
        if row.first_difference
    }
    case = "non_finite_update" + ("" if spoil == "committed" else "_again")
    assert touched == {f"{case}/loss"}
    (kept,) = of(work.records, StoppedTraining)
    assert (kept.kept_sha256 == kept.committed_sha256) == (spoil == "written")


def test_the_last_commit_and_every_update_after_it_follow_from_the_cadence(
    recovery: list,
) -> None:
    """Point 5 committed every update, the chain every second one."""

    def texts(measure: str) -> dict[str, tuple[str, str]]:
        rows = of(recovery, Comparison, measure=measure)
        return {row.case_name: (row.expected, row.measured) for row in rows}

    assert texts("committed_checkpoints") == {
        "point-00": ("0", "0"),
        "point-05": ("0, 1, 2, 3, 4, 5", "0, 1, 2, 3, 4, 5"),
        "chain-01": ("0", "0"),
        "chain-03": ("0, 2", "0, 2"),
    }
    assert texts("updates_after_the_restore") == {
        "point-00": ("1 to 10", "1 to 10"),
        "point-05": ("6 to 10", "6 to 10"),
        "chain-01": ("1 to 3", "1 to 3"),
        "chain-03": ("3 to 10", "3 to 10"),
    }
    assert texts("updates_before_the_kill") == {
        "point-00": ("none", "none"),
        "point-05": ("1 to 5", "1 to 5"),
        "chain-01": ("1 to 1", "1 to 1"),
    }
    assert texts("restored_checkpoint")["chain-03"][0].startswith("update 2, arrays ")
