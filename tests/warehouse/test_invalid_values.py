"""Values that no table may hold make the review fail, whatever wrote them."""

import pytest

from tests.warehouse.made_rows import (
    ACCEPT,
    OPEN,
    REAL,
    REVISE,
    TEXT,
    UNDRILLED,
    WHOLE,
    number,
    rewrite,
    verdict_of,
    with_value,
)
from warehouse.records.execution import ProgramExecution


@pytest.mark.parametrize(
    ("column", "value", "kind"),
    [
        ("value_real", float("nan"), REAL),
        ("value_real", float("inf"), REAL),
        ("value_real", float("-inf"), REAL),
        ("value_real", None, REAL),
        ("value_count", 3, WHOLE),
        ("claim", None, TEXT),
        ("unit", None, TEXT),
        ("detail", None, TEXT),
        ("reason", "made_up_code", TEXT),
        ("reason", "not_measured", TEXT),
    ],
)
@pytest.mark.parametrize("relation", ["at_most", "reported"])
def test_a_hand_written_value_that_may_not_be_makes_the_review_fail(
    made, opened, claim, requirement, column, value, kind, relation
):
    execution = made.execute("train_model", [number(0.25), number(0, claim="1.2")])
    made.run("run-1")
    limit = 1 if relation == "at_most" else None
    rules = [claim(requirement(relation=relation, limit=limit))]
    rules.append(claim(requirement("1.2")))
    assert verdict_of(opened(*rules)) in (UNDRILLED, ACCEPT)
    rewrite(made, execution, "measurements", with_value(column, value, kind))
    connection = opened(*rules)
    assert connection.execute("from damage").fetchall() == []
    assert len(connection.execute("from invalid_values").fetchall()) >= 1
    assert verdict_of(connection) == REVISE
    assert verdict_of(connection, "1.2") == REVISE
    (step,) = connection.execute(
        "select next_step from verdicts where claim = '1.1'"
    ).fetchone()
    assert execution.nonce[:8] in step


def test_an_invalid_value_in_a_table_no_claim_names_fails_the_stage_that_wrote_it(
    made, opened, claim, requirement
):
    program = ProgramExecution(
        program="model.programs.train_model",
        label="",
        process_id=2,
        host="host",
        started_at=made.now(),
        duration_ns=1,
        peak_memory_bytes=1,
        return_code=0,
    )
    bad = made.execute("train_model", [number(0), program])
    made.execute("evaluate_heldout", [number(0, claim="1.2")])
    made.run("run-1")
    rules = [claim(requirement()), claim(requirement("1.2", stage="evaluate_heldout"))]
    rewrite(made, bad, "program_executions", with_value("label", None, TEXT))
    connection = opened(*rules)
    assert verdict_of(connection, "1.1") == REVISE
    assert verdict_of(connection, "1.2") == UNDRILLED


def test_an_empty_table_is_absent_evidence_and_not_success(
    made, opened, claim, requirement
):
    execution = made.execute("train_model", [number(0)])
    made.run("run-1")
    rewrite(made, execution, "measurements", lambda rows: rows.slice(0, 0))
    assert verdict_of(opened(claim(requirement()))) == OPEN
