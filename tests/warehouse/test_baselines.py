"""Which run is the baseline, what is refused as one, and what damage does to it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from warehouse import acceptance, ledger
from warehouse.acceptance import accept_run
from warehouse.baselines import ACCEPTED
from warehouse.errors import BaselineRefused, StoreError, UnknownRun
from warehouse.reading import read_store
from warehouse.records.claims import Measurement
from warehouse.runs import RunFinish
from warehouse.sealed import seal, unseal

STAGE = "train_model"


def number(value: int) -> Measurement:
    return Measurement(claim="1.1", measure="errors", value_count=value, unit="errors")


@pytest.fixture
def rules(claim, requirement, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One claim, which is the whole contract where a store is opened by its path."""
    made_up = [claim(requirement())]
    monkeypatch.setattr("warehouse.load.read_contract", lambda: made_up)
    return made_up


@pytest.fixture
def two_runs(made, rules):
    """A store with two runs of one stage, each with an execution of its own."""
    for name in ("run-1", "run-2"):
        made.execute(STAGE, [number(0)])
        made.run(name)
    return made


def documents(made: Any) -> list[Path]:
    return sorted((made.store.root / "baselines").glob("*.json"))


def comparison(opened: Any, rules: Any, run: str) -> dict[str, Any]:
    connection = opened(*rules, run=run, against=ACCEPTED, names=["comparison"])
    result = connection.execute("select * from comparison")
    names = [column[0] for column in result.description]
    ((values),) = result.fetchall()
    return dict(zip(names, values, strict=True))


def test_without_a_baseline_nothing_is_demonstrated_and_the_command_is_told(
    two_runs, opened, rules
):
    about = comparison(opened, rules, "run-2")
    assert about["result"] == "not demonstrated"
    assert "no accepted baseline for flow qualify, preset fixture" in about["sentence"]
    assert "`harness accept run-2`" in about["sentence"]


def test_an_accepted_run_is_what_the_next_one_meets(two_runs, opened, rules):
    baseline = accept_run(two_runs.store.root, "run-1", "the first good one")
    about = comparison(opened, rules, "run-2")
    assert (about["result"], about["before_run_id"]) == ("agrees", "run-1")
    assert about["baseline_id"] == baseline.baseline_id
    document = unseal(documents(two_runs)[0].read_bytes())
    assert document["note"] == "the first good one"
    assert list(document["executions"]) == [STAGE]


def test_a_later_decision_counts_and_the_earlier_one_stays(two_runs, opened, rules):
    for run in ("run-2", "run-1"):
        accept_run(two_runs.store.root, run, "")
    first = documents(two_runs)[0].read_bytes()
    accept_run(two_runs.store.root, "run-1", "again")
    assert len(documents(two_runs)) == 3
    assert first in [path.read_bytes() for path in documents(two_runs)]
    assert comparison(opened, rules, "run-2")["before_run_id"] == "run-1"
    current = opened(*rules).execute(
        "select run_id, note from accepted_baselines where is_current"
    )
    assert current.fetchall() == [("run-1", "again")]


def test_two_decisions_of_one_name_never_overwrite_each_other(
    two_runs, monkeypatch: pytest.MonkeyPatch
):
    def same(about: dict[str, Any], note: str) -> Any:
        made = _decision(about, note)
        return dataclasses.replace(made, baseline_id="20300101-000000-aaaaaa")

    _decision = acceptance._decision
    monkeypatch.setattr(acceptance, "_decision", same)
    accept_run(two_runs.store.root, "run-1", "first")
    with pytest.raises(StoreError, match="exists already"):
        accept_run(two_runs.store.root, "run-2", "second")
    assert unseal(documents(two_runs)[0].read_bytes())["note"] == "first"


def test_changed_settings_or_source_still_meet_the_baseline_of_their_preset(
    two_runs, opened, rules
):
    accept_run(two_runs.store.root, "run-1", "")
    two_runs.execute(STAGE, [number(0)], key="other")
    two_runs.run("run-3", system="system-2", is_declared=False)
    about = comparison(opened, rules, "run-3")
    assert (about["result"], about["before_run_id"]) == ("agrees", "run-1")


@pytest.mark.parametrize("field", ["preset", "flow", "data"])
def test_another_preset_flow_or_corpus_has_no_baseline_yet(
    two_runs, opened, rules, field: str
):
    accept_run(two_runs.store.root, "run-1", "")
    folder = two_runs.store.root / "runs" / "run-2"
    document = unseal((folder / "started.json").read_bytes())
    if field == "data":
        document["components"]["data"] = "another corpus"
    else:
        document[field] = "prose" if field == "preset" else "certify"
    (folder / "started.json").write_bytes(seal(document))
    about = comparison(opened, rules, "run-2")
    assert (about["result"], about["cause"]) == ("not demonstrated", "no baseline")


def test_a_run_of_a_user_s_file_and_one_of_the_built_in_system_never_meet(
    two_runs, opened, rules
):
    root = two_runs.store.root
    accept_run(root, "run-1", "")
    two_runs.run("run-3", implementation="my_model.py")
    about = comparison(opened, rules, "run-3")
    assert (about["result"], about["cause"]) == ("not demonstrated", "no baseline")
    assert "this data and my_model.py;" in about["sentence"]
    # Accepting it leaves the baseline of the built-in system as it is.
    assert accept_run(root, "run-3", "").implementation == "my_model.py"
    assert comparison(opened, rules, "run-2")["before_run_id"] == "run-1"
    for name, met in (("my_model.py", "run-3"), ("other.py", None)):
        two_runs.run(f"run-of-{name}", implementation=name)
        about = comparison(opened, rules, f"run-of-{name}")
        assert about["before_run_id"] == met
    current = opened(*rules).execute(
        "select run_id, implementation from accepted_baselines where is_current"
        " order by run_id"
    )
    assert current.fetchall() == [("run-1", ""), ("run-3", "my_model.py")]


def test_two_runs_of_different_systems_say_so_when_both_are_named(
    two_runs, opened, rules
):
    two_runs.execute(STAGE, [number(0)], key="other")
    two_runs.run("run-3", implementation="my_model.py")
    connection = opened(*rules, run="run-3", against="run-1", names=["comparison"])
    ((sentence,),) = connection.execute("select sentence from comparison").fetchall()
    other = "run run-1 of another system (the built-in system, not my_model.py)"
    assert other in sentence


def test_a_decision_of_an_earlier_version_is_about_the_built_in_system(
    two_runs, opened, rules
):
    accept_run(two_runs.store.root, "run-1", "")
    (path,) = documents(two_runs)
    document = unseal(path.read_bytes())
    del document["implementation"]
    path.write_bytes(seal(document))
    assert comparison(opened, rules, "run-2")["before_run_id"] == "run-1"


def test_the_accepted_run_itself_is_not_compared_with_itself(two_runs, opened, rules):
    accept_run(two_runs.store.root, "run-2", "")
    assert comparison(opened, rules, "run-2")["result"] == "refused"


# --- what is refused as a baseline ---


def refused(made: Any, run: str) -> str:
    with pytest.raises(BaselineRefused) as found:
        accept_run(made.store.root, run, "")
    assert documents(made) == []
    return str(found.value)


@pytest.mark.parametrize(
    ("status", "said"), [("failed", "is failed"), ("interrupted", "is interrupted")]
)
def test_a_run_that_is_not_complete_is_no_baseline(two_runs, status: str, said: str):
    two_runs.run("run-3", is_finished=False)
    finish = RunFinish(
        run_id="run-3",
        status=status,  # type: ignore[arg-type]
        message="It broke.",
        finished_at=two_runs.now(),
        links=(),
    )
    two_runs.store.finish_run(finish)
    sentence = refused(two_runs, "run-3")
    assert said in sentence
    assert "It broke." in sentence


def test_a_run_without_an_end_is_no_baseline(two_runs):
    two_runs.run("run-3", is_finished=False)
    assert "run-3" in refused(two_runs, "run-3")


@pytest.mark.parametrize("kind", ["evidence", "artifact", "commit"])
def test_a_damaged_run_is_no_baseline(made, rules, tmp_path: Path, kind: str):
    (tmp_path / "state.npz").write_bytes(b"state")
    execution = made.execute(STAGE, [number(0)], artifacts=[tmp_path / "state.npz"])
    made.run("run-1")
    root = made.store.root
    path = {
        "evidence": made.store.evidence_file(execution.nonce, "measurements"),
        "artifact": next((root / "artifacts").rglob("*/*")),
        "commit": next((root / "executions").rglob("*.json")),
    }[kind]
    path.write_bytes(path.read_bytes()[:-1])
    assert "damaged" in refused(made, "run-1")


def test_a_run_with_a_claim_to_revise_is_no_baseline(two_runs):
    two_runs.execute(STAGE, [number(1)])
    two_runs.run("run-3", system="system-2")
    assert "Claim 1.1 reads revise" in refused(two_runs, "run-3")
    # What another run of the same subject refuted is in doubt for this one too.
    two_runs.run("run-4")
    assert "Claim 1.1 reads revise" in refused(two_runs, "run-1")


def test_a_run_that_was_refuted_alone_is_no_baseline_behind_a_better_one(made, rules):
    made.execute(STAGE, [number(1)])
    made.run("run-1")
    made.execute(STAGE, [number(0)])
    made.run("run-2")
    assert "Claim 1.1 reads revise" in refused(made, "run-1")


def test_an_unknown_run_is_told(two_runs):
    with pytest.raises(UnknownRun, match="'run-9' is unknown"):
        accept_run(two_runs.store.root, "run-9", "")


def test_a_store_without_runs_has_nothing_to_accept(made, rules):
    made.store.root.joinpath("runs").mkdir()
    with pytest.raises(UnknownRun):
        accept_run(made.store.root, "latest", "")


# --- damage of a decision ---


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-5],
        lambda data: data.replace(b"run-1", b"run-2"),
        lambda data: b"{}",
        lambda data: b"",
        lambda data: seal({**unseal(data), "format": 99}),
        lambda data: seal({**unseal(data), "baseline_id": "other"}),
        lambda data: seal({**unseal(data), "note": 5}),
        lambda data: seal({**unseal(data), "more": "x"}),
        lambda data: seal({"format": 1, "baseline_id": "x"}),
        lambda data: seal({**unseal(data), "executions": {STAGE: "another"}}),
        lambda data: json.dumps(unseal(data)).encode(),
    ],
)
def test_a_decision_that_cannot_be_believed_is_damage_and_no_baseline(two_runs, damage):
    accept_run(two_runs.store.root, "run-1", "")
    (path,) = documents(two_runs)
    path.write_bytes(damage(path.read_bytes()))
    contents = read_store(two_runs.store.root, "run-2", against=ACCEPTED)
    found = [(row.path, row.kind) for row in contents.rows[ledger.Damage]]
    assert found == [(f"baselines/{path.name}", "baseline record")]
    assert ledger.AcceptedBaseline not in contents.rows
    assert [row.side for row in contents.rows[ledger.ComparedRun]] == ["after"]


def test_an_older_decision_does_not_step_in_for_a_damaged_newer_one(
    two_runs, opened, rules
):
    for _ in range(2):
        accept_run(two_runs.store.root, "run-1", "")
    ids = [path.stem for path in documents(two_runs)]
    newest = max(ids)
    path = two_runs.store.root / "baselines" / f"{newest}.json"
    path.write_bytes(b"x")
    about = comparison(opened, rules, "run-2")
    assert (about["result"], about["cause"]) == ("not demonstrated", "unreadable")
    # A decision after it is a baseline again.
    accept_run(two_runs.store.root, "run-1", "")
    assert comparison(opened, rules, "run-2")["result"] == "agrees"


def test_a_baseline_whose_run_is_gone_is_not_demonstrated(two_runs, opened, rules):
    accept_run(two_runs.store.root, "run-1", "")
    for file in (two_runs.store.root / "runs" / "run-1").iterdir():
        file.unlink()
    about = comparison(opened, rules, "run-2")
    assert (about["result"], about["cause"]) == ("not demonstrated", "baseline gone")
