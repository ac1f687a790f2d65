"""What the views say of recoveries, refusals and planted faults, good and bad."""

from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.training import NegativeControl


def measured(measure: str, case: str, value: int) -> Measurement:
    return Measurement(
        claim="2.2", measure=measure, case_name=case, value_count=value, unit="1"
    )


def update(case: str, number: int, measured: str = "a") -> Comparison:
    place = f"update {number}, parameters wpe.weight"
    return Comparison(
        claim="2.2",
        measure="resumed_update",
        case_name=f"{case}/update-{number:02d}",
        expected="a",
        measured=measured,
        expected_from="uninterrupted training",
        first_difference="" if measured == "a" else place,
    )


def point(case: str, killed: int) -> list[Measurement | Comparison]:
    return [
        # Differs as it must, and is no divergence.
        Comparison(
            claim="2.2",
            measure="restoring_process",
            case_name=case,
            expected=f"process {killed}",
            measured="process 77",
            expected_from="the process that was killed",
            first_difference="",
        ),
        measured("killed_by_signal", case, 9),
        measured("interrupted_process_id", case, killed),
        measured("resumed_process_id", case, 77),
        measured("restored_update", case, 3),
    ]


def test_a_point_is_one_row_with_its_first_divergence(made, opened):
    rows = [
        *point("point-03", 31),
        *(update("point-03", number) for number in (4, 5, 6, 7)),
        *point("point-04", 32),
        update("point-04", 5),
        update("point-04", 6, "b"),
        update("point-04", 7, "c"),
        *point("point-05", 33),
        measured("write_steps", "", 14),
    ]
    made.execute("certify_recovery", rows)
    made.run("run-1")
    found = opened().execute(
        "select case_name, killed_process_id, restored_process_id, restored_update,"
        " updates_compared, first_divergence from recovery_certificates"
    )
    assert found.fetchall() == [
        ("point-03", 31, 77, 3, 4, ""),
        ("point-04", 32, 77, 3, 3, "update 6, parameters wpe.weight"),
        ("point-05", 33, 77, 3, 0, "nothing was compared"),
    ]


def test_several_kills_of_one_training_are_told_from_one_kill_of_several(made, opened):
    """The process that is killed second is the one that restored after the first."""

    def killed(case: str, process: int, restored_by: int) -> list[Measurement]:
        return [
            measured("interrupted_process_id", case, process),
            measured("resumed_process_id", case, restored_by),
        ]

    rows = [
        *(*killed("point-03", 31, 77), *killed("point-05", 32, 77)),
        *killed("chain-03", 41, 42),
        *(*killed("chain-07", 42, 43), *killed("chain-12", 43, 77)),
        # Restored, and nothing was killed before.
        measured("resumed_process_id", "full_disk", 77),
    ]
    made.execute("certify_recovery", rows)
    made.run("run-1")
    found = opened().execute(
        "select case_name, kills_of_training from recovery_certificates"
    )
    assert dict(found.fetchall()) == {
        "point-03": 1,
        "point-05": 1,
        "chain-03": 1,
        "chain-07": 2,
        "chain-12": 3,
        "full_disk": 0,
    }


def test_a_refusal_for_another_reason_or_none_is_listed(made, opened):
    rows = [
        Refusal(
            claim="2.4",
            measure="damaged_checkpoint",
            case_name=case,
            expected_reason="checkpoint_truncated",
            received_reason=received,
            message="",
        )
        for case, received in (
            ("right", "checkpoint_truncated"),
            ("wrong", "checkpoint_checksum"),
            ("accepted", None),
        )
    ]
    made.execute("certify_recovery", rows)
    made.run("run-1")
    found = opened().execute(
        "select case_name from refusals where received is distinct from expected"
    )
    assert {name for (name,) in found.fetchall()} == {"wrong", "accepted"}


def test_a_planted_fault_is_summed_up_by_where_it_first_parts(made, opened):
    rows = [
        NegativeControl(
            control="moments_rounded",
            update=number,
            first_kind=kind,
            first_leaf=kind and "wpe.weight",
            first_difference=kind and f"index [0] of {number}",
            differing_leaves=len(kind),
            loss_nats=loss,
            uninterrupted_loss_nats=4.0,
        )
        for number, kind, loss in ((6, "", 4.0), (7, "first_moment", 4.25))
    ]
    made.execute("drill_recovery", rows)
    made.run("run-1")
    found = opened().execute(
        "select updates_detected, found_at, first_difference, first_loss_nats,"
        " first_planted_loss_nats, second_loss_change_nats from negative_controls"
    )
    assert found.fetchall() == [
        (1, "update 7, first_moment wpe.weight", "index [0] of 7", 4.0, 4.0, 0.25)
    ]


def test_a_proof_that_nobody_made_asks_for_its_own_command(
    made, opened, claim, requirement
):
    made.execute("train_model", [])
    made.run("run-1")
    connection = opened(
        claim(requirement("2.3", stage="certify_crash")),
        claim(requirement("2.5", stage="drill_recovery")),
    )
    rows = connection.execute("select verdict, next_step from verdicts").fetchall()
    assert [verdict for verdict, _ in rows] == ["not demonstrated"] * 2
    assert rows[0][1].startswith("harness certify crash (no proof of this subject")
    assert rows[1][1].startswith("harness drill (no proof of this subject")
