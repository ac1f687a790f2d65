"""What a verdict is about: the subject, the executions it rests on, and its task."""

import dataclasses
import json

import pytest

from tests.warehouse.made_rows import OPEN, REVISE, UNDRILLED, number, verdict_of
from warehouse.contract import read_contract
from warehouse.load import open_warehouse


def test_a_verdict_rests_on_the_newest_execution_whichever_run_linked_it(
    made, opened, claim, requirement
):
    made.execute("train_model", [number(1)])
    made.run("run-1")
    newest = made.execute("train_model", [number(0)])
    made.run("run-2")
    connection = opened(claim(requirement()), run="run-1")
    assert verdict_of(connection) == UNDRILLED
    (row,) = connection.execute("select execution_id from claim_rows").fetchall()
    assert row == (newest.nonce,)


def test_rows_of_another_subject_are_never_counted(made, opened, claim, requirement):
    made.execute("train_model", [number(0)])
    made.run("run-1", system="system-1")
    made.executions.clear()
    made.run("run-2", system="system-2")
    assert verdict_of(opened(claim(requirement()), run="run-1")) == UNDRILLED
    assert verdict_of(opened(claim(requirement()), run="run-2")) == OPEN
    assert verdict_of(opened(claim(requirement()))) == OPEN
    both = opened(claim(requirement())).execute(
        "select verdict from subject_verdicts order by all"
    )
    assert both.fetchall() == [(UNDRILLED,), (OPEN,)]


def test_an_execution_that_no_run_linked_is_never_counted(
    made, opened, claim, requirement
):
    made.run("run-1")
    made.execute("train_model", [number(0)])
    connection = opened(claim(requirement()))
    assert verdict_of(connection) == OPEN
    assert connection.execute("from stg_measurements").fetchall() != []


def test_each_row_says_executed_or_reused_when_and_where(
    made, opened, claim, requirement
):
    execution = made.execute("train_model", [number(0)])
    made.run("run-1")
    made.run("run-2", state="reused")
    columns = "value, margin, state, execution_id, host, finished_at, stage"
    for run, state in (("run-1", "executed"), ("run-2", "reused"), (None, "reused")):
        connection = opened(claim(requirement()), run=run)
        (row,) = connection.execute(f"select {columns} from claim_rows").fetchall()
        assert row[:5] == ("0", 0.0, state, execution.nonce, "host")
        assert str(row[1]) == "0.0", "a margin that is used up reads 0, not -0"
        assert row[5].endswith("Z")
        assert row[6] == "train_model"


@pytest.mark.parametrize(
    ("is_finished", "step"),
    [
        (True, "nothing measures it yet: errors of serve_release"),
        (False, "harness run (no run"),
    ],
)
def test_a_stage_that_a_completed_run_does_not_have_is_not_asked_for(
    made, opened, claim, requirement, is_finished, step
):
    made.run("run-1", is_finished=is_finished)
    connection = opened(claim(requirement(stage="serve_release")))
    (found,) = connection.execute("select next_step from verdicts").fetchone()
    assert found.startswith(step)


def test_a_run_with_a_corpus_or_settings_of_its_own_is_asked_for_again_as_it_was(
    made, opened, claim, requirement
):
    """The bare command would be about another subject."""
    made.run("run-1", is_declared=False, is_finished=False)
    rules = [claim(requirement()), claim(requirement("1.2", scope="declared"))]
    steps = opened(*rules).execute("select next_step from verdicts order by claim")
    assert [step for (step,) in steps.fetchall()] == [
        "run the same command again "
        "(no run of this subject has an execution of train_model)",
        "only the corpus and settings that a preset declares can show it",
    ]


def test_a_link_to_an_execution_of_another_stage_or_key_is_no_evidence(
    made, opened, claim, requirement
):
    execution = made.execute("evaluate_heldout", [number(0)])
    made.executions.clear()
    made.executions["x"] = dataclasses.replace(execution, stage="train_model")
    made.run("run-1")
    assert verdict_of(opened(claim(requirement()))) == OPEN
    made.executions["x"] = dataclasses.replace(execution, key="other")
    made.run("run-2")
    rule = requirement(stage="evaluate_heldout")
    assert verdict_of(opened(claim(rule))) == OPEN


def test_a_task_is_open_until_its_last_claim_is_accepted(
    made, opened, claim, requirement
):
    made.execute(
        "train_model", [number(0), number(0, claim="2.1"), number(1, claim="3.1")]
    )
    made.run("run-1")
    connection = opened(
        claim(requirement("1.1")),
        claim(requirement("2.1")),
        claim(requirement("2.2")),
        claim(requirement("3.1")),
        claim(requirement("3.2")),
    )
    found = connection.execute(
        "select review_task, verdict, claims, accepted, undrilled, revised, open"
        " from task_verdicts"
    )
    assert found.fetchall() == [
        (1, UNDRILLED, 1, 1, 1, 0, 0),
        (2, OPEN, 2, 1, 1, 0, 1),
        (3, REVISE, 2, 0, 0, 1, 1),
    ]
    steps = connection.execute("select next_step from task_verdicts").fetchall()
    assert steps[0] == ("",)
    assert steps[1][0].startswith("2.2: nothing measures it yet: errors of train_model")
    assert steps[2][0].startswith(
        "3.1: look at errors of train_model, which is 1 errors and must be equal to 0"
    )


def test_the_committed_contract_has_a_verdict_for_every_claim(made):
    made.run("run-1")
    connection = open_warehouse(made.store.root)
    found = connection.execute("select claim, verdict from verdicts").fetchall()
    assert [claim for claim, _ in found] == [item.id for item in read_contract()]
    assert {verdict for _, verdict in found} == {OPEN}
    assert json.dumps(found)
    connection.close()
