"""What becomes of two runs that are held against each other, result by result.

Every store here is really written and every result comes from the views; what must not
count as agreement (the same execution, an empty table, NaN, nothing on both sides) is
shown not to.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.warehouse.made_rows import REAL, number, rewrite, with_value
from tests.warehouse.two_runs import AFTER, BEFORE, NAMES, STAGE, TIMED, rows_of
from warehouse.records.claims import Comparison, Measurement, Refusal


def digests(measured: str, expected: str | None = None, place: str = "") -> Comparison:
    return Comparison(
        claim="1.1",
        measure="errors",
        expected=measured if expected is None else expected,
        measured=measured,
        expected_from="the uninterrupted run",
        first_difference=place,
    )


def refused(received: str | None) -> Refusal:
    return Refusal(
        claim="1.1",
        measure="errors",
        expected_reason="document_empty",
        received_reason=received,
        message=f"in {received}, of another folder each time",
    )


@pytest.mark.parametrize(
    ("asked", "before", "after", "row", "result"),
    [
        ({}, number(0), number(0), "equal", "agrees"),
        # unmet before and after, and yet not the same
        ({}, number(2), number(3), "differs", "worse"),
        ({}, number(0), number(3), "worse", "worse"),
        ({}, number(3), number(0), "better", "not demonstrated"),
        ({"limit": 0.5}, number(0.5), number(0.5000000000000001), "worse", "worse"),
        ({}, number(0), number(None), "missing after", "worse"),
        ({}, number(None), number(0), "missing before", "not demonstrated"),
        # nothing on both sides is no agreement
        ({}, number(None), number(None), "no value", "not demonstrated"),
        # limited values are held by their limit
        (
            {"relation": "at_most", "limit": 4},
            number(1),
            number(3),
            "drifted",
            "agrees",
        ),
        ({"relation": "at_most", "limit": 4}, number(1), number(5), "worse", "worse"),
        ({"relation": "at_most", "limit": 4}, number(5), number(4), "better", None),
        ({"relation": "above"}, number(1e-9), number(0.0), "worse", "worse"),
        ({"relation": "at_least"}, number(1), number(1), "equal", "agrees"),
        # reported values are shown, and are no proof of anything
        ({"relation": "reported"}, number(1), number(7), "shown", "not demonstrated"),
        # comparisons: met on both sides, and still other digests
        ({"relation": "identical"}, digests("ab"), digests("ab"), "equal", "agrees"),
        ({"relation": "identical"}, digests("ab"), digests("ac"), "differs", "worse"),
        (
            {"relation": "identical"},
            digests("ab"),
            digests("ab", "cd", "update 3"),
            "worse",
            "worse",
        ),
        # two processes: they have to be different, not the same as last time
        (
            {"relation": "different"},
            digests("7", "8"),
            digests("9", "6"),
            "shown",
            None,
        ),
        ({"relation": "different"}, digests("7", "8"), digests("9"), "worse", "worse"),
        # the reason of a refusal counts, its words name other folders
        (
            {"relation": "refused"},
            refused("document_empty"),
            refused("document_empty"),
            "equal",
            "agrees",
        ),
        (
            {"relation": "refused"},
            refused("document_empty"),
            refused(None),
            "worse",
            "worse",
        ),
        (
            {"relation": "refused"},
            refused(None),
            refused("document_missing"),
            "differs",
            "worse",
        ),
    ],
)
def test_a_row_is_compared_as_the_contract_looks_at_it(
    compared, asked, before, after, row, result
):
    if asked.get("relation") in ("identical", "refused", "different"):
        asked = {**asked, "unit": ""}
    connection, about = compared([before], [after], **asked)
    assert [found["result"] for found in rows_of(connection, "comparison_rows")] == [
        row
    ]
    assert about["result"] == (result or "not demonstrated")
    assert about["sentence"].startswith("not demonstrated") == (
        about["result"] == "not demonstrated"
    )


def test_drift_is_told_in_the_unit_of_the_value_and_as_a_share_of_the_limit(compared):
    connection, about = compared(
        [number(0.5)], [number(1.5)], relation="at_most", limit=4
    )
    (row,) = rows_of(connection, "comparison_rows")
    assert (row["drift"], row["drift_share"]) == (1.0, 0.25)
    assert about["drifted_rows"] == 1


@pytest.mark.parametrize(
    ("unit", "value", "components"),
    [("nanoseconds", 5, None), ("1", 0.5, TIMED)],
)
def test_times_are_shown_and_not_judged_even_beyond_their_limit(
    compared, unit, value, components
):
    kept = Measurement(claim="1.1", measure="kept", value_count=0, unit="errors")
    connection, about = compared(
        [number(value, unit=unit), kept],
        [number(value * 10, unit=unit), kept],
        components=components,
        relation="at_most",
        limit=1 if unit == "1" else 10,
        unit=unit,
    )
    results = {row["measure"]: row for row in rows_of(connection, "comparison_rows")}
    assert results["errors"]["result"] == "worse timing"
    (verdict,) = rows_of(connection, "comparison_verdicts")
    assert (verdict["after_verdict"], verdict["result"]) == ("revise", "worse timing")
    assert (about["findings"], about["worse_timings"]) == (0, 1)


def test_a_verdict_gets_worse_with_a_count_of_a_stage_that_measures_time(compared):
    _, about = compared([number(0)], [number(1)], components=TIMED)
    assert (about["worse_verdicts"], about["result"]) == (1, "worse")


def test_rows_of_one_name_are_compared_in_their_order(compared):
    connection, _ = compared([number(1), number(2)], [number(1), number(3)])
    results = [row["result"] for row in rows_of(connection, "comparison_rows")]
    assert results == ["equal", "differs"]


def test_a_row_that_disappeared_is_missing_and_a_new_one_is_no_agreement(compared):
    _, about = compared([number(0), number(0)], [number(0)])
    assert (about["missing_after"], about["result"]) == (1, "worse")


def test_a_run_is_not_compared_with_itself(made, opened, claim, requirement):
    made.execute(STAGE, [number(0)])
    made.run(BEFORE)
    (about,) = rows_of(
        opened(claim(requirement()), run=BEFORE, against=BEFORE, names=NAMES),
        "comparison",
    )
    assert about["result"] == "refused"
    assert "itself" in about["sentence"]


def test_a_run_on_the_same_executions_shows_nothing(made, opened, claim, requirement):
    made.execute(STAGE, [number(0)])
    made.run(BEFORE)
    made.run(AFTER, state="reused")
    connection = opened(claim(requirement()), run=AFTER, against=BEFORE, names=NAMES)
    (about,) = rows_of(connection, "comparison")
    assert (about["result"], about["cause"]) == ("not demonstrated", "not recomputed")
    assert about["agreeing_values"] == about["equal_verdicts"] == 0
    for view in ("comparison_stages", "comparison_rows", "comparison_verdicts"):
        assert {row["result"] for row in rows_of(connection, view)} == {
            "not recomputed"
        }


def test_one_recomputed_stage_is_all_that_agrees(made, opened, claim, requirement):
    made.execute("evaluate_heldout", [number(0, claim="1.2")])
    for name in (BEFORE, AFTER):
        made.execute(STAGE, [number(0)])
        made.run(name)
    rules = [claim(requirement()), claim(requirement("1.2", stage="evaluate_heldout"))]
    connection = opened(*rules, run=AFTER, against=BEFORE, names=NAMES)
    (about,) = rows_of(connection, "comparison")
    assert about["result"] == "agrees"
    assert "stages recomputed 1, not recomputed 1;" in about["sentence"]
    verdicts = {
        row["claim"]: row["result"]
        for row in rows_of(connection, "comparison_verdicts")
    }
    assert verdicts == {"1.1": "equal", "1.2": "not recomputed"}


@pytest.mark.parametrize("emptied", [(BEFORE,), (AFTER,), (BEFORE, AFTER)])
def test_a_table_without_rows_never_agrees(
    made, opened, claim, requirement, emptied: tuple[str, ...]
):
    for name in (BEFORE, AFTER):
        execution = made.execute(STAGE, [number(0)])
        made.run(name)
        if name in emptied:
            rewrite(made, execution, "measurements", lambda rows: rows.slice(0, 0))
    (about,) = rows_of(
        opened(claim(requirement()), run=AFTER, against=BEFORE, names=NAMES),
        "comparison",
    )
    expected = "worse" if emptied == (AFTER,) else "not demonstrated"
    assert about["result"] == expected, about["sentence"]


@pytest.mark.parametrize("spoiled", [(BEFORE,), (AFTER,), (BEFORE, AFTER)])
@pytest.mark.parametrize("relation", ["at_most", "reported"])
def test_a_value_that_is_no_number_never_agrees(
    made, opened, claim, requirement, spoiled: tuple[str, ...], relation: str
):
    for name in (BEFORE, AFTER):
        execution = made.execute(
            STAGE, [number(0.5), number(0, measure="sound", claim="1.2")]
        )
        made.run(name)
        if name in spoiled:
            change = with_value("value_real", float("nan"), REAL)
            rewrite(made, execution, "measurements", change)
    limit = None if relation == "reported" else 0.5
    rules = [
        claim(requirement(relation=relation, limit=limit)),
        claim(requirement("1.2", measure="sound")),
    ]
    connection = opened(*rules, run=AFTER, against=BEFORE, names=NAMES)
    (about,) = rows_of(connection, "comparison")
    expected = "worse" if spoiled == (AFTER,) else "not demonstrated"
    assert about["result"] == expected, about["sentence"]
    assert rows_of(connection, "comparison_stages")[0]["result"] == "invalid"


@pytest.mark.parametrize("side", [BEFORE, AFTER])
def test_a_damaged_side_is_no_agreement(made, opened, claim, requirement, side: str):
    for name in (BEFORE, AFTER):
        execution = made.execute(STAGE, [number(0)])
        made.run(name)
        if name == side:
            made.store.evidence_file(execution.nonce, "measurements").write_bytes(b"x")
    connection = opened(claim(requirement()), run=AFTER, against=BEFORE, names=NAMES)
    (about,) = rows_of(connection, "comparison")
    assert about["damaged_stages"] == 1
    assert about["result"] == ("worse" if side == AFTER else "not demonstrated")


def test_a_stage_that_is_not_there_any_more_is_one_finding(
    made, opened, claim, requirement, tmp_path: Path
):
    (tmp_path / "file").write_bytes(b"1")
    made.execute(STAGE, [number(0)], artifacts=[tmp_path / "file"])
    made.execute("evaluate_heldout", [number(0, claim="1.2")])
    made.run(BEFORE)
    made.executions.clear()
    made.execute("evaluate_heldout", [number(0, claim="1.2")])
    made.run(AFTER)
    rules = [claim(requirement("1.2", stage="evaluate_heldout"))]
    connection = opened(*rules, run=AFTER, against=BEFORE, names=NAMES)
    findings = rows_of(connection, "comparison_findings")
    assert [(row["kind"], row["place"], row["result"]) for row in findings] == [
        ("stage", STAGE, "missing after")
    ]
    assert rows_of(connection, "comparison")[0]["result"] == "worse"


def test_what_only_a_declared_system_shows_is_asked_of_both_runs_or_none(
    made, opened, claim, requirement
):
    for name, is_declared in ((BEFORE, True), (AFTER, False)):
        made.execute(STAGE, [number(0), number(276, measure="targets", unit="targets")])
        made.run(name, is_declared=is_declared)
    figure = requirement(
        "1.2", measure="targets", limit=276, unit="targets", scope="declared"
    )
    connection = opened(
        claim(requirement()), claim(figure), run=AFTER, against=BEFORE, names=NAMES
    )
    verdicts = {
        row["claim"]: row["result"]
        for row in rows_of(connection, "comparison_verdicts")
    }
    assert verdicts == {"1.1": "equal", "1.2": "no value"}
    assert rows_of(connection, "comparison")[0]["result"] == "agrees"


def test_nothing_is_compared_unless_it_is_asked_for(made, opened, claim, requirement):
    for name in (BEFORE, AFTER):
        made.execute(STAGE, [number(0)])
        made.run(name)
    connection = opened(claim(requirement()))
    views = (
        "comparison",
        "comparison_stages",
        "comparison_rows",
        "comparison_verdicts",
    )
    for view in (*views, "comparison_findings", "comparison_changes"):
        assert rows_of(connection, view) == []
    (subject,) = rows_of(connection, "subjects")
    assert subject["run_count"] == 2
