"""Views give no ratio of perplexities that are means over different things."""

from dataclasses import asdict

import pytest

from model.checks.perplexities import stated_rows
from warehouse.records.refusals import StatedRow
from warehouse.records.training import Perplexity


def perplexity(name: str, loss: float = 10.0, **changes: object) -> Perplexity:
    fields: dict[str, object] = {
        "split": "heldout",
        "text_sha256": "t",
        "tokenizer": "bytes-1",
        "vocabulary_tokens": 259,
        "mask_policy": "PAD never",
        "loss_sum_nats": loss,
        "counted_targets": 10,
        "expected_reason": None,
    }
    return Perplexity(name=name, **{**fields, **changes})


def compared(connection) -> dict[str, tuple]:
    found = connection.execute(
        "select name, perplexity_ratio, reason, differs_in from perplexity_comparisons"
    ).fetchall()
    return {name: rest for name, *rest in found}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tokenizer": "words-1"}, "tokenizer_changed"),
        ({"vocabulary_tokens": 260}, "vocabulary_changed"),
        ({"mask_policy": "PAD too"}, "mask_policy_changed"),
        ({"text_sha256": "u"}, "text_changed"),
    ],
)
def test_each_single_difference_gives_null_and_its_reason(
    made, opened, changes: dict, reason: str
):
    made.execute(
        "evaluate_heldout", [perplexity("release"), perplexity("x", **changes)]
    )
    assert compared(opened()) == {"x": [None, reason, reason.removesuffix("_changed")]}


def test_two_differences_are_both_named(made, opened):
    other = perplexity("x", tokenizer="words-1", mask_policy="PAD too")
    made.execute("evaluate_heldout", [perplexity("release"), other])
    assert compared(opened())["x"][1:] == [
        "tokenizer_changed",
        "tokenizer, mask_policy",
    ]


def test_equal_kinds_are_compared(made, opened):
    made.execute("evaluate_heldout", [perplexity("release"), perplexity("x", 20.0)])
    ratio, reason, differs = compared(opened())["x"]
    assert ratio == pytest.approx(2.718281828459045)
    assert (reason, differs) == (None, "")


def test_another_run_is_compared_with_the_selected_one_by_the_same_rule(made, opened):
    made.execute("evaluate_heldout", [perplexity("release", tokenizer="words-1")])
    made.run("run-1", system="other")
    made.execute("evaluate_heldout", [perplexity("release")], key="key-2")
    made.run("run-2", system="selected")
    assert compared(opened())["release"] == [None, "tokenizer_changed", "tokenizer"]


@pytest.mark.parametrize(
    ("expected", "verdict"),
    [("mask_policy_changed", "accept (undrilled)"), ("tokenizer_changed", "revise")],
)
def test_the_claim_rests_on_what_the_view_said(
    made, opened, claim, requirement, expected: str, verdict: str
):
    other = perplexity("mask_policy", mask_policy="PAD too", expected_reason=expected)
    made.execute(
        "evaluate_heldout", [perplexity("release"), perplexity("counting"), other]
    )
    made.run("run-1")
    rule = requirement(
        "1.13",
        stage="evaluate_heldout",
        measure="incomparable_perplexity",
        relation="refused",
        limit=None,
        unit="",
        cases=("mask_policy",),
    )
    connection = opened(claim(rule))
    assert connection.execute("select verdict from verdicts").fetchall() == [(verdict,)]
    found = connection.execute(
        "select measure, value_count from derived_measurements order by measure"
    ).fetchall()
    assert found == [
        ("recounted_comparable_perplexities", 1),
        ("recounted_perplexities_wrongly_treated", int(verdict == "revise")),
    ]
    unexpected = connection.execute(
        "select case_name from refusals where received is distinct from expected"
    ).fetchall()
    assert unexpected == ([("mask_policy",)] if verdict == "revise" else [])


def judged(made, opened, claim, requirement, measure: str, records: list) -> str:
    made.execute("evaluate_heldout", records)
    made.run("run-1")
    rule = requirement(
        "1.13",
        stage="evaluate_heldout",
        measure=measure,
        relation="identical",
        limit=None,
        unit="",
        cases=("incomparable_perplexity/mask_policy",),
    )
    ((verdict,),) = (
        opened(claim(rule)).execute("select verdict from verdicts").fetchall()
    )
    return verdict


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "accept (undrilled)"),
        ({"tokenizer": "words-1"}, "revise"),
        ({"mask_policy": "PAD never", "text_sha256": "u"}, "revise"),
    ],
    ids=["exact", "one-too-many", "another"],
)
def test_what_a_view_refuses_is_named_exactly(
    made, opened, claim, requirement, changes: dict, verdict: str
):
    fields = {"mask_policy": "PAD too", "expected_reason": "mask_policy_changed"}
    other = perplexity("mask_policy", **{**fields, **changes})
    found = judged(
        *(made, opened, claim, requirement),
        "refused_field_named",
        [perplexity("release"), other],
    )
    assert found == verdict


@pytest.mark.parametrize(
    ("stated", "verdict"),
    [
        ((10.0,), "accept (undrilled)"),
        ((10.000000000000002,), "revise"),
        ((), "revise"),
    ],
    ids=["as-written", "one-ulp", "never-stated"],
)
def test_what_a_view_refuses_is_the_row_that_its_program_wrote(
    made, opened, claim, requirement, stated: tuple, verdict: str
):
    other = perplexity(
        "mask_policy", mask_policy="PAD too", expected_reason="mask_policy_changed"
    )
    digests = [
        StatedRow(**row)
        for loss in stated
        for row in stated_rows([asdict(other) | {"loss_sum_nats": loss}])
    ]
    found = judged(
        *(made, opened, claim, requirement),
        "perplexity_after_refusal",
        [perplexity("release"), other, *digests],
    )
    assert found == verdict
