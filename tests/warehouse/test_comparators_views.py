"""What compares in SQL, and what it must not take for agreement.

Beside `test_verdicts`, `test_comparison`, `test_baselines` and `test_recounted`, which
hold the relations, the results of a comparison, and the sums one by one.
"""

import pytest

from model.checks.rows import comparison
from tests.comparators import MET, UNMET, statuses
from tests.warehouse.made_rows import (
    OPEN,
    REAL,
    REVISE,
    number,
    refusal,
    rewrite,
    verdict_of,
    with_value,
)
from tests.warehouse.two_runs import AFTER, BEFORE, NAMES, STAGE, rows_of
from warehouse import ledger
from warehouse.baselines import ACCEPTED, newest_baseline
from warehouse.contract import read_contract
from warehouse.reading import read_store
from warehouse.records.refusals import StoppedTraining
from warehouse.sealed import seal, unseal

INF = float("inf")


def test_a_run_of_stages_without_evidence_accepts_no_claim(made, opened):
    """No claim of the real contract is met by the absence of all rows."""
    contract = read_contract()
    for stage in sorted({r.stage for claim in contract for r in claim.requirements}):
        made.execute(stage, [number(0, claim="9.9")])
    made.run("run-1")
    found = opened(*contract, names=["verdicts"]).execute(
        "select verdict, count(*) from verdicts group by all"
    )
    assert found.fetchall() == [(OPEN, len(contract))]


@pytest.mark.parametrize("value", [INF, -INF, float("nan")])
@pytest.mark.parametrize("relation", ["at_least", "at_most", "above", "equal"])
def test_no_relation_is_kept_by_what_is_no_number(
    made, opened, claim, requirement, value, relation
):
    """Infinity is at least every limit, and NaN is above it for DuckDB."""
    execution = made.execute(STAGE, [number(0.5)])
    made.run("run-1")
    rewrite(made, execution, "measurements", with_value("value_real", value, REAL))
    rule = claim(requirement(relation=relation, limit=0.5))
    assert verdict_of(opened(rule, names=["verdicts"])) == REVISE


SIDES = [
    *[(each, "0x40a00000") for each in ("nan", "-NaN", "inf", "-inf", "Infinity")],
    *[("0x40a00000", each) for each in ("nan", "NaN", "+inf", "-inf")],
    *[("nan", "nan"), ("inf", "inf"), ("inf", "-inf"), ("", "nan"), ("", "")],
]


@pytest.mark.parametrize("relation", ["identical", "different"])
def test_no_text_of_what_is_no_number_is_alike_or_different(tmp_path, relation):
    """A loss that broke down differs from every other, and shows nothing by it."""
    rows = [rows_of_text(*sides) for sides in SIDES]
    assert MET not in statuses(tmp_path, rows, relation)


def test_different_texts_are_different_and_equal_ones_are_not(tmp_path):
    rows = [rows_of_text("0x40a00000", "0x40a00001"), rows_of_text("7", "7")]
    assert statuses(tmp_path, rows, "different") == [MET, UNMET]


def test_a_number_that_is_none_is_not_even_reported(made, opened, claim, requirement):
    execution = made.execute(STAGE, [number(0.5)])
    made.run("run-1")
    change = with_value("value_real", float("nan"), REAL)
    rewrite(made, execution, "measurements", change)
    rule = claim(requirement(relation="reported", limit=None))
    assert verdict_of(opened(rule, names=["verdicts"])) == REVISE


@pytest.mark.parametrize("code", [None, "", "nan"])
def test_no_refusal_is_one_without_its_code(made, opened, claim, requirement, code):
    made.execute(STAGE, [refusal("cache_full", code)])
    made.run("run-1")
    rule = claim(requirement(relation="refused", limit=None, unit=""))
    assert verdict_of(opened(rule, names=["verdicts"])) == REVISE


def rows_of_text(expected: str, measured: str) -> dict[str, str]:
    return comparison("1.1", "bits", "", expected, measured, "another computation")


@pytest.mark.parametrize("value", [INF, -INF])
def test_two_runs_with_one_infinity_do_not_agree(
    made, opened, claim, requirement, value
):
    for run in (BEFORE, AFTER):
        execution = made.execute(STAGE, [number(0.5)])
        made.run(run)
        change = with_value("value_real", value, REAL)
        rewrite(made, execution, "measurements", change)
    rule = claim(requirement(relation="at_least", limit=0.5))
    connection = opened(rule, run=AFTER, against=BEFORE, names=NAMES)
    (about,) = rows_of(connection, "comparison")
    assert about["result"] == OPEN, about["sentence"]


def stopped(**changes) -> StoppedTraining:
    fields = {
        "case_name": "loss",
        "stop_reason": "non_finite_loss",
        "message": "stopped",
        "stopped_at_update": 5,
        "last_good_update": 4,
        "traced_updates": 4,
        "run_label": "stopped",
        "process_id": 7,
        "committed_sha256": "d",
        "kept_sha256": "d",
    }
    return StoppedTraining(**{**fields, **changes})


def test_a_checkpoint_that_has_no_digest_was_not_kept(made, opened):
    for committed, found in (("d", "d"), ("d", "e"), ("", ""), (None, None)):
        made.execute(STAGE, [stopped(committed_sha256=committed, kept_sha256=found)])
    counted = opened(names=["recounted_stopped_trainings", "raw.executions"]).execute(
        "select value_count from recounted_stopped_trainings"
        " join raw.executions using (execution_id) order by committed_at"
    )
    assert [count for (count,) in counted.fetchall()] == [1, 0, 0, 0]


def test_two_runs_that_name_no_data_have_no_baseline_in_common(made):
    made.execute(STAGE, [number(0)])
    for run in (BEFORE, AFTER):
        made.run(run)
        path = made.store.root / "runs" / run / "started.json"
        document = unseal(path.read_bytes())
        del document["components"]["data"]
        path.write_bytes(seal(document))
    contents = read_store(made.store.root, AFTER, against=ACCEPTED)
    contents.add(
        ledger.AcceptedBaseline(
            baseline_id="20300101-000000-000000000",
            run_id=BEFORE,
            flow="qualify",
            preset="fixture",
            data_sha256="",
            implementation="",
            accepted_at=made.now(),
            host="host",
            note="",
        )
    )
    assert newest_baseline(contents, AFTER) is None
