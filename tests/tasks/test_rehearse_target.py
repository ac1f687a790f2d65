"""The rehearsal of a target for real: two controllers that train, fail and go on.

One execution of the whole proof; every row that the contract asks of it has to be there
and to keep its limit, and a verdict of SQL over the same rows says so too.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from model.config import RunConfig
from model.presets import fixture
from model.refusal import Refused
from tasks.gang_endings import GangFailed
from tasks.rehearsal import Plan, Rehearsal, plan_for
from tasks.rehearse_target import rehearse_target
from tests.faults.gang_scenes import as_gang
from tests.judged import REVISE, judged_records
from tests.tasks.stage_maker import StageMaker, asked_and_found, of
from tests.token_maker import write_token_files
from warehouse.records.claims import Comparison, Measurement
from warehouse.records.controllers import ControllerAnswer, ControllerUpdate
from warehouse.store import Execution

# Sixteen gangs, each of them compiles; two minutes on an idle machine.
pytestmark = pytest.mark.timeout(1500)
REHEARSED = ("5.9", "5.10", "5.11", "5.12", "5.13", "5.15")


def made_with(folder: Path, config: RunConfig, controllers: int) -> StageMaker:
    made = StageMaker(folder)
    files = write_token_files(folder, config.model)
    artifacts = tuple(made.store.put_artifact(file, file.name) for file in files)
    tokens = Execution(
        stage="tokenize_corpus", key="0" * 64, nonce="1" * 32, artifacts=artifacts
    )
    made.execute(
        rehearse_target,
        tokens=tokens,
        model=config.model,
        train=config.train,
        controllers=controllers,
    )
    return made


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list:
    made = made_with(tmp_path_factory.mktemp("rehearsal"), fixture(), 2)
    return made.rows["rehearse_target"]


def test_every_row_that_the_contract_asks_for_is_there(rows: list) -> None:
    asked, found = asked_and_found("rehearse_target", rows)
    assert asked == found


def test_nothing_of_it_is_to_revise_and_an_unmet_row_would_be(
    rows: list, tmp_path: Path
) -> None:
    found = judged_records(tmp_path / "met", "rehearse_target", rows)
    assert REVISE not in {found[claim] for claim in REHEARSED}
    # No other stage owes anything of these two.
    assert all(found[claim].startswith("accept") for claim in ("5.13", "5.15"))
    left = of(rows, Measurement, measure="rehearsed_processes_left")[0]
    worse = [*rows, replace(left, value_count=1)]
    worse.remove(left)
    found = judged_records(tmp_path / "unmet", "rehearse_target", worse)
    assert found["5.13"] == REVISE


def test_a_rehearsal_says_nothing_about_a_target(rows: list) -> None:
    judged = [row for row in rows if isinstance(row, Comparison | Measurement)]
    assert {row.claim for row in judged} == set(REHEARSED)
    answers = of(rows, ControllerAnswer)
    assert {row.platform for row in answers} == {"cpu"}


def test_restarts_end_in_the_state_of_the_training_that_nothing_interrupted(
    rows: list,
) -> None:
    whole = of(rows, ControllerUpdate, gang="alone split", label="split", update=8)
    ends = [
        row.state_sha256
        for row in of(rows, ControllerUpdate, update=8, program="split")
        if row.label.startswith("resumed")
    ]
    assert len(ends) >= 7  # same, larger and killed by two, preempted by one
    assert set(ends) == {whole[0].state_sha256}


def test_one_two_and_four_processes_make_the_same_bits(rows: list) -> None:
    """The whole split training each time, and none that was restored."""
    whole = of(rows, ControllerUpdate, gang="alone split", label="split")
    owed = {row.update: row.state_sha256 for row in whole}
    assert sorted(owed) == list(range(1, 9))
    for gang, processes in (("trained", 2), ("split by 4", 4)):
        made = of(rows, ControllerUpdate, gang=gang, label="split")
        assert {row.process_index for row in made} == set(range(processes))
        assert {row.process_count for row in made} == {processes}
        assert len(made) == 8 * processes
        assert all(row.state_sha256 == owed[row.update] for row in made)


def test_a_state_in_parts_ends_in_the_bits_of_as_many_and_near_those_of_more(
    rows: list,
) -> None:
    last = of(rows, ControllerUpdate, program="sharded", update=8)
    ends = {row.label: row.state_sha256 for row in last}
    assert ends["resumed same in parts"] == ends["sharded"]
    # It was one controller until the notice, which adds up in another order.
    assert ends["resumed larger in parts"] != ends["sharded"]
    assert len(last) == 6  # two controllers each


def test_what_cannot_be_rehearsed_is_refused(tmp_path: Path) -> None:
    small = fixture()
    with pytest.raises(Refused, match="2 to 16"):
        made_with(tmp_path, small, 17)
    assert plan_for(replace(small.train, updates=2)) is None


@pytest.mark.parametrize("updates", range(3, 12))
def test_a_plan_leaves_a_commit_before_the_one_that_is_lost(updates: int) -> None:
    plan = plan_for(replace(fixture().train, updates=updates))
    assert plan is not None
    assert 0 < plan.committed < plan.uncommitted < plan.last <= updates
    assert plan.uncommitted % plan.cadence == 0
    assert plan.committed % plan.cadence == 0


def test_a_gang_that_failed_before_there_was_anything_to_compare_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cause = "controller 1: lost another one"
    gang = replace(as_gang([tmp_path, tmp_path]), failed=1, cause=cause)
    monkeypatch.setattr(Rehearsal, "run", lambda *given, **named: gang)
    rehearsal = Rehearsal.__new__(Rehearsal)
    rehearsal.checkpoints, rehearsal.plan = "", Plan(last=8, cadence=2)
    with pytest.raises(GangFailed, match=f"A gang of controllers ended: {cause}"):
        rehearsal.train_and_lose_one(2)
