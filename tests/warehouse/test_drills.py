"""The views of a drill: who noticed a fault, and which check never does."""

from typing import Any

import pytest

from tests.warehouse.made_drills import broken, planted, read, stopped

NAMES = (
    "drills",
    "kill_matrix",
    "survivors",
    "false_alarms",
    "idle_checks",
    "limit_calibration",
)


@pytest.fixture
def drilled(made, opened, claim, requirement):
    """Returns the rows of the views of a drill with these records."""

    def drill(*records: Any) -> dict[str, list[dict[str, Any]]]:
        made.execute("drill_system", records)
        made.run("run-1", flow="drill")
        asked = {"stage": "evaluate_heldout", "relation": "at_most", "limit": 10}
        rules = [claim(requirement(name, **asked)) for name in ("1.1", "1.2")]
        connection = opened(*rules, names=NAMES)
        return {name: rows_of(connection, name) for name in NAMES}

    return drill


def rows_of(connection: Any, view: str) -> list[dict[str, Any]]:
    found = connection.execute(f"select * from {view}")
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


SECOND = {"requirement_id": 2}


def test_a_fault_is_killed_by_its_own_claim_alone(drilled):
    views = drilled(
        planted("caught"), planted("missed"), planted("seen-elsewhere"),
        read(""), read("", "1.2", **SECOND),
        broken("caught"), broken("caught", "1.2", **SECOND),
        read("missed"), read("missed", "1.2", **SECOND),
        read("seen-elsewhere"), broken("seen-elsewhere", "1.2", **SECOND),
    )  # fmt: skip
    about = {row["fault"]: row for row in views["drills"]}
    assert {fault: row["outcome"] for fault, row in about.items()} == {
        "caught": "killed",
        "missed": "survived",
        "seen-elsewhere": "survived",
    }
    assert about["caught"]["claims"] == "1.1 1.2"
    assert about["seen-elsewhere"]["first_claim"] == "1.2"
    assert [row["fault"] for row in views["survivors"]] == ["missed", "seen-elsewhere"]
    matrix = {(row["fault"], row["claim"]): row for row in views["kill_matrix"]}
    assert len(matrix) == 3
    assert matrix["caught", "1.1"]["is_own_claim"]
    assert matrix["caught", "1.1"]["is_first"]
    assert matrix["caught", "1.1"]["with_fault"] == "30.0"
    assert matrix["caught", "1.1"]["without_fault"] == "2.0"


def test_a_fault_belongs_to_the_stage_whose_evidence_its_claim_turned_on(drilled):
    later = {"drilled_stage": "export_endpoints", "requirement_id": 3}
    earlier = {"drilled_stage": "train_model", **SECOND}
    views = drilled(
        planted("turned-late"), planted("missed"), planted("stops"),
        planted("of-a-promise", fault_group="store"),
        read(""), read("", **earlier), read("", **later),
        read("turned-late"), read("turned-late", **earlier),
        broken("turned-late", **later),
        read("missed", **later), read("missed", **earlier),
        stopped("stops"),
        broken("of-a-promise", drilled_stage="promises"),
    )  # fmt: skip
    stages = [(row["stage"], row["fault"]) for row in views["drills"]]
    assert stages == [
        ("train_model", "missed"),
        ("evaluate_heldout", "stops"),
        ("export_endpoints", "turned-late"),
        ("store", "of-a-promise"),
    ]


def test_what_the_correct_system_breaks_too_kills_nothing(drilled):
    views = drilled(planted("caught"), broken(""), broken("caught"))
    assert [row["outcome"] for row in views["drills"]] == ["survived"]
    assert views["kill_matrix"] == []


def test_a_stage_that_stops_kills_nothing(drilled):
    views = drilled(planted("diverges"), read(""), stopped("diverges"))
    (row,) = views["survivors"]
    assert (row["outcome"], row["failure"]) == ("stopped", "The loss is not finite.")


def test_a_stage_that_stops_without_a_fault_too_is_not_taken_for_waiting(drilled):
    views = drilled(planted("unread", claim="1.2"), stopped(""), stopped("unread"))
    assert [row["outcome"] for row in views["survivors"]] == ["stopped"]


def test_missing_rows_kill_nothing(drilled):
    absent = read("silent", rows_met=0, rows_missing=1, worst_value=None)
    views = drilled(planted("silent"), read(""), absent)
    assert [row["outcome"] for row in views["drills"]] == ["survived"]


def test_a_fault_of_a_claim_that_nobody_measures_waits(drilled):
    views = drilled(planted("later", claim="1.2"), read(""), read("later"))
    assert [row["outcome"] for row in views["drills"]] == ["waiting"]
    assert views["survivors"] == []


def test_a_fault_of_a_claim_that_the_correct_system_breaks_does_not_wait(drilled):
    """Its one row is broken without the fault too, so nothing could turn it."""
    unmet = {"rows_met": 0}
    views = drilled(planted("hidden"), broken("", **unmet), broken("hidden", **unmet))
    assert [row["outcome"] for row in views["drills"]] == ["survived"]
    assert [row["fault"] for row in views["survivors"]] == ["hidden"]


def test_a_benign_variant_that_is_accused_is_a_false_alarm(drilled):
    views = drilled(
        planted("quiet", is_benign=True), planted("accused", is_benign=True),
        planted("stops", is_benign=True),
        read(""), read("quiet"), broken("accused"), stopped("stops"),
    )  # fmt: skip
    assert {row["fault"] for row in views["false_alarms"]} == {"accused", "stops"}
    assert views["survivors"] == []
    # what is no fault shows nothing about a check
    assert [row["claim"] for row in views["idle_checks"]] == ["1.1"]


def test_a_judged_claim_that_no_fault_turns_is_idle(drilled):
    views = drilled(
        planted("caught"), read(""), read("", "1.2", **SECOND), broken("caught")
    )
    assert [row["claim"] for row in views["idle_checks"]] == ["1.2"]


def test_a_claim_that_nobody_measures_is_not_idle(drilled):
    views = drilled(planted("caught"), read(""), broken("caught"))
    assert views["idle_checks"] == []


def test_a_limit_stands_between_the_noise_and_the_smallest_fault(drilled):
    views = drilled(
        planted("large"), planted("small"), read(""),
        broken("large", value=500.0), broken("small", value=12.0),
    )  # fmt: skip
    (row,) = views["limit_calibration"]
    assert row["noise"] < row["limit_value"] < row["smallest_effect"]
    assert (row["nearest_fault"], row["smallest_effect"]) == ("small", 12.0)
    assert (row["noise_margin"], row["effect_margin"]) == (8.0, 2.0)
    assert row["faults_killed"] == 2


def test_a_store_without_a_drill_has_empty_views(made, opened, claim, requirement):
    made.execute("train_model", [])
    made.run("run-1")
    connection = opened(claim(requirement("1.1")), names=NAMES)
    assert [row for name in NAMES for row in rows_of(connection, name)] == []
