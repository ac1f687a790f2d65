"""The rule of the verdicts, row by row: revise, not demonstrated, accept.

Every test here runs the SQL that a review runs, on a store that was really written.
"""

import pytest

from tests.warehouse.made_rows import (
    ACCEPT,
    OPEN,
    REVISE,
    UNDRILLED,
    comparison,
    number,
    refusal,
    verdict_of,
)


@pytest.mark.parametrize(
    ("relation", "limit", "value", "expected"),
    [
        ("equal", 0, 0, UNDRILLED),
        ("equal", 0, 1, REVISE),
        ("equal", 0, -1, REVISE),
        ("equal", 0.5, 0.5, UNDRILLED),
        ("equal", 0.5, 0.5000000000000001, REVISE),
        # 2**53 + 1 is no double: integers are compared as integers
        ("equal", 2**53, 2**53, UNDRILLED),
        ("equal", 2**53, 2**53 + 1, REVISE),
        ("at_most", 2**53, 2**53 + 1, REVISE),
        ("equal", -(2**63), 2**63 - 1, REVISE),
        ("at_most", 0.5, 0.5, UNDRILLED),
        ("at_most", 0.5, 0.5000000000000001, REVISE),
        ("at_most", 1, 0.25, UNDRILLED),
        ("at_most", 0.5, 1, REVISE),
        ("at_least", 30, 30, UNDRILLED),
        ("at_least", 30, 29, REVISE),
        ("above", 0, 1, UNDRILLED),
        ("above", 0, 0, REVISE),
        ("above", 0, 5e-324, UNDRILLED),
        ("above", 0, -0.0, REVISE),
        ("reported", None, 1e9, ACCEPT),
        ("reported", None, 0, ACCEPT),
        ("reported", None, None, OPEN),
        ("equal", 0, None, OPEN),
        ("at_most", 0.5, None, OPEN),
    ],
)
def test_a_number_is_held_against_its_limit(
    made, opened, claim, requirement, relation, limit, value, expected
):
    made.execute("train_model", [number(value)])
    made.run("run-1")
    connection = opened(claim(requirement(relation=relation, limit=limit)))
    assert verdict_of(connection) == expected


@pytest.mark.parametrize(
    ("relation", "expected", "measured", "difference", "verdict"),
    [
        ("identical", "abc", "abc", "", UNDRILLED),
        ("identical", "abc", "abd", "update 3", REVISE),
        ("identical", "abc", "abd", "", REVISE),
        ("identical", "abc", "abc", "update 3", REVISE),
        ("identical", "abc", "", "", REVISE),
        ("identical", "", "abc", "", REVISE),
        ("identical", "", "", "", OPEN),
        ("different", "abc", "abd", "update 3", UNDRILLED),
        ("different", "abc", "abc", "", REVISE),
        ("different", "", "abc", "", REVISE),
        ("different", "", "", "", OPEN),
    ],
)
def test_two_sides_are_compared_and_two_missing_sides_are_not_equal(
    made, opened, claim, requirement, relation, expected, measured, difference, verdict
):
    row = comparison(expected, measured, first_difference=difference)
    made.execute("train_model", [row])
    made.run("run-1")
    rule = requirement(relation=relation, limit=None, unit="")
    assert verdict_of(opened(claim(rule))) == verdict


@pytest.mark.parametrize(
    ("expected", "received", "verdict"),
    [
        ("document_empty", "document_empty", UNDRILLED),
        ("document_empty", "document_overlong", REVISE),
        ("document_empty", None, REVISE),
        ("", None, REVISE),
        ("made_up_code", "made_up_code", REVISE),
    ],
)
def test_a_refusal_needs_the_right_code_of_the_closed_list(
    made, opened, claim, requirement, expected, received, verdict
):
    made.execute("train_model", [refusal(expected, received)])
    made.run("run-1")
    rule = requirement(relation="refused", limit=None, unit="")
    assert verdict_of(opened(claim(rule))) == verdict


@pytest.mark.parametrize(
    ("cases", "count", "found", "verdict"),
    [
        ((), 1, [], OPEN),
        (("a", "b"), 1, ["a", "b"], UNDRILLED),
        (("a", "b"), 1, ["a"], OPEN),
        (("a", "b"), 1, ["a", "b/07"], UNDRILLED),
        (("a", "b"), 1, ["a", "bb"], OPEN),
        (("a",), 3, ["a/1", "a/2", "a/3"], UNDRILLED),
        (("a",), 3, ["a/1", "a/2"], OPEN),
        ((), 3, ["x", "y", "z"], UNDRILLED),
        ((), 3, ["x", "y"], OPEN),
        (("a",), 1, ["", "A"], OPEN),
        # % and _ are no wildcards
        (("a_b",), 1, ["axb/1"], OPEN),
    ],
)
def test_every_required_case_must_be_there_often_enough(
    made, opened, claim, requirement, cases, count, found, verdict
):
    made.execute("train_model", [number(0, case) for case in found])
    made.run("run-1")
    connection = opened(claim(requirement(cases=cases, required_count=count)))
    assert verdict_of(connection) == verdict


def test_an_unmet_row_of_a_case_nobody_asked_for_still_fails(
    made, opened, claim, requirement
):
    made.execute("train_model", [number(0, "a"), number(1, "extra")])
    made.run("run-1")
    connection = opened(claim(requirement(cases=("a",))))
    assert verdict_of(connection) == REVISE
    (step,) = connection.execute("select next_step from verdicts").fetchone()
    assert (
        "errors extra of train_model, which is 1 errors and must be equal to 0" in step
    )


def test_each_case_is_held_against_the_limit_that_lists_it(
    made, opened, claim, requirement
):
    made.execute("train_model", [number(2496, "fp32"), number(1344, "bf16/all")])
    made.run("run-1")
    limits = {"fp32": 2496, "bf16": 1344}
    rules = [requirement(limit=limit, cases=(case,)) for case, limit in limits.items()]
    assert verdict_of(opened(claim(*rules))) == UNDRILLED
    swapped = [
        requirement(limit=1344, cases=("fp32",)),
        requirement(limit=2496, cases=("bf16",)),
    ]
    assert verdict_of(opened(claim(*swapped))) == REVISE


def test_a_case_that_no_limit_lists_has_to_keep_every_limit(
    made, opened, claim, requirement
):
    rows = [number(0, "a"), number(1, "b"), number(1, "c")]
    made.execute("train_model", rows)
    made.run("run-1")
    rules = [requirement(limit=0, cases=("a",)), requirement(limit=1, cases=("b",))]
    connection = opened(claim(*rules))
    assert verdict_of(connection) == REVISE
    found = connection.execute(
        "select case_name, status, limit_text from claim_rows order by all"
    )
    assert found.fetchall() == [
        ("a", "met", "0"),
        ("b", "met", "1"),
        ("c", "met", "1"),
        ("c", "unmet", "0"),
    ]


def test_unmet_wins_over_missing_and_missing_over_met(made, opened, claim, requirement):
    made.execute("train_model", [number(1, "a"), number(None, "b"), number(0, "c")])
    made.run("run-1")
    connection = opened(
        claim(requirement(cases=("a", "b", "c", "d"))),
        claim(requirement("1.2", cases=("a",))),
    )
    assert verdict_of(connection) == REVISE
    statuses = connection.execute(
        "select case_name, status from claim_rows where claim = '1.1' order by all"
    ).fetchall()
    assert statuses == [("a", "unmet"), ("b", "missing"), ("c", "met"), ("d", "absent")]
    assert verdict_of(connection, "1.2") == OPEN


def test_all_requirements_of_a_claim_must_be_met(made, opened, claim, requirement):
    made.execute("train_model", [number(0)])
    made.run("run-1")
    both = claim(requirement(), requirement(measure="warnings", unit="warnings"))
    assert verdict_of(opened(both)) == OPEN


def test_rows_of_another_claim_measure_stage_or_unit_do_not_count(
    made, opened, claim, requirement
):
    made.execute("train_model", [number(0, claim="1.2"), number(0, measure="error")])
    made.execute("evaluate_heldout", [number(0)])
    made.run("run-1")
    assert verdict_of(opened(claim(requirement()))) == OPEN
    made.execute("train_model", [number(0, unit="tokens")], key="other")
    made.run("run-2")
    assert verdict_of(opened(claim(requirement()))) == REVISE


def test_a_comparison_does_not_answer_a_number(made, opened, claim, requirement):
    made.execute("train_model", [comparison("0", "0")])
    made.run("run-1")
    assert verdict_of(opened(claim(requirement()))) == OPEN


def test_a_store_without_runs_demonstrates_nothing_and_says_what_to_do(
    made, opened, claim, requirement
):
    made.execute("train_model", [number(0)])
    connection = opened(claim(requirement()), claim(requirement("2.1")))
    rows = connection.execute("select claim, verdict, next_step from verdicts")
    assert rows.fetchall() == [
        (
            "1.1",
            OPEN,
            "harness run (no run of this subject has an execution of train_model)",
        ),
        (
            "2.1",
            OPEN,
            "harness run (no run of this subject has an execution of train_model)",
        ),
    ]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"presets": ("fixture",)}, UNDRILLED),
        ({"presets": ("prose",)}, OPEN),
        ({"presets": ("prose", "fixture")}, UNDRILLED),
        ({"scope": "declared"}, OPEN),
    ],
)
def test_a_claim_of_which_nothing_applies_is_not_demonstrated(
    made, opened, claim, requirement, changes, verdict
):
    made.execute("train_model", [number(0)])
    made.run("run-1", is_declared=False)
    assert verdict_of(opened(claim(requirement(**changes)))) == verdict


def test_a_declared_scope_is_judged_when_the_subject_is_declared(
    made, opened, claim, requirement
):
    made.execute("train_model", [number(1)])
    made.run("run-1", is_declared=True)
    assert verdict_of(opened(claim(requirement(scope="declared")))) == REVISE


def test_a_relation_that_the_view_does_not_know_is_never_met(
    made, opened, claim, requirement
):
    made.execute("train_model", [number(0)])
    made.run("run-1")
    assert verdict_of(opened(claim(requirement(relation="roughly")))) == REVISE
