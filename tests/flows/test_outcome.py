"""What came of a run reads as one sentence, and says what failed before the rest."""

import pytest

from flows import outcome as module
from flows.outcome import outcome
from flows.reading import open_run, view_rows

CLAIMS = [
    {"claim": "1.1", "verdict": "accept", "next_step": ""},
    {"claim": "1.2", "verdict": "accept (undrilled)", "next_step": ""},
    {"claim": "2.2", "verdict": "not demonstrated", "next_step": "harness run"},
]
FAILED = {
    "claim": "1.12",
    "verdict": "revise",
    "next_step": "look at loss of train_model, which is 2.5 nats and must be at most 1",
}
RUN = {"run_id": "20260102-030405-abcdef", "executed_stages": 1, "reused_stages": 8}


def _of(monkeypatch, *failed):
    rows = {"verdicts": [*CLAIMS, *failed]}
    monkeypatch.setattr(module, "selected_run", lambda _: RUN)
    monkeypatch.setattr(module, "view_rows", lambda _, view: rows[view])
    return outcome(None)


def test_without_a_failed_claim_it_says_so_and_what_is_missing(monkeypatch):
    assert _of(monkeypatch) == (
        "Run 20260102-030405-abcdef: nothing failed; 2 of 3 claims accepted; "
        "not demonstrated: 2.2. 1 stage executed, 8 reused."
    )


def test_a_failed_claim_is_told_with_its_measure_value_and_limit(monkeypatch):
    assert _of(monkeypatch, FAILED).startswith(
        "Run 20260102-030405-abcdef: 1 claim to revise: 1.12 (loss of train_model, "
        "which is 2.5 nats and must be at most 1); 2 of 4 claims accepted"
    )


def test_of_many_failures_the_first_are_told_and_the_others_counted(monkeypatch):
    told = _of(monkeypatch, *([FAILED] * 5))
    assert "5 claims to revise" in told
    assert told.count("1.12") == module.SHOWN_FAILURES
    assert ", and 2 more;" in told


def test_it_agrees_with_the_verdicts_of_a_real_store(small_store):
    connection = open_run(small_store, "latest")
    told = outcome(connection)
    claims = view_rows(connection, "verdicts")
    missing = [c["claim"] for c in claims if c["verdict"] == "not demonstrated"]
    assert len(missing) == len(claims)
    assert f"0 of {len(claims)} claims accepted; not demonstrated: 1.0, 1.1" in told
    assert told.endswith("1 stage executed, 0 reused.")


@pytest.mark.parametrize("failed", [(), (FAILED,)])
def test_it_is_one_line(failed, monkeypatch):
    assert "\n" not in _of(monkeypatch, *failed)
