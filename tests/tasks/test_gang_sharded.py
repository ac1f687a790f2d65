"""Trainings by real controllers whose state lies in parts, committed by Orbax.

Two processes with one device each; the restart by four is the proof's.
"""

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from model.programs.compare_controllers import _rows, _trained
from tasks.gang import Disturbance, GangRun
from tests.tasks.gangs import Gangs

TRAINING = {
    "label": "sharded",
    "program": "sharded",
    "suffix": "-sharded",
    "checkpoint_every_updates": 2,
}


def states(run: GangRun, controller: int, label: str = "sharded") -> dict[int, str]:
    rows = _rows(run.runs[controller].out, "controller_updates", label)
    return {row["update"]: row["state_sha256"] for row in rows}


@pytest.fixture(scope="module")
def gangs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gangs]:
    folder = tmp_path_factory.mktemp("sharded")
    yield Gangs(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def pair(gangs: Gangs) -> GangRun:
    """One training without an interruption, and one whose commit 4 never comes."""
    interrupted = TRAINING | {"label": "interrupted", "suffix": "-i"}
    interrupted |= {
        "checkpoints": str(gangs.folder / "checkpoints"),
        "pause_before_commit_of": 4,
    }
    return gangs.run(
        "pair",
        2,
        TRAINING,
        interrupted,
        disturbance=Disturbance(
            event="paused", update=4, teller=1, victim=1, number=signal.SIGKILL
        ),
    )


def test_a_state_in_parts_is_the_same_on_all_and_lies_where_it_should(
    pair: GangRun,
) -> None:
    assert sorted(states(pair, 0)) == [1, 2, 3, 4]
    assert states(pair, 0) == states(pair, 1)
    assert states(pair, 0, "interrupted") == states(pair, 0)
    arrays = _trained([run.out for run in pair.runs], "sharded").arrays
    for rows in arrays:
        state = [row for row in rows if row["array_name"].startswith(".")]
        whole = {row["array_name"] for row in state if row["is_on_all"]}
        assert len(state) > 40 and whole == {".adam.step"}
        assert all(row["devices"] == 2 for row in state)


def test_as_many_controllers_go_on_bit_by_bit_from_the_last_commit(
    gangs: Gangs, pair: GangRun
) -> None:
    left = gangs.folder / "checkpoints" / "update-000004"
    assert (left / "state").is_dir() and not (left / "COMMITTED").exists()
    manifest = json.loads(
        (left.with_name("update-000002") / "manifest.json").read_text()
    )
    assert len(set(manifest["controllers"]["parts"])) == 2
    copied = shutil.copytree(left.parent, gangs.folder / "copied")
    resumed = TRAINING | {"checkpoints": str(copied), "restore": "latest"}
    run = gangs.run("resumed", 2, resumed)
    assert run.is_complete, run.cause
    assert [event["update"] for event in run.events("restored")] == [2, 2]
    expected = states(pair, 0)
    for controller in (0, 1):
        assert states(run, controller) == {3: expected[3], 4: expected[4]}


def test_a_notice_to_one_saves_the_parts_of_all_and_another_number_goes_on(
    gangs: Gangs, pair: GangRun
) -> None:
    place = gangs.folder / "noticed"
    asked = TRAINING | {
        "checkpoints": str(place),
        "is_preemptible": True,
        "seconds_between_updates": 0.5,
        "checkpoint_every_updates": 4,
    }
    notice = Disturbance(
        event="update", update=1, teller=1, victim=1, number=signal.SIGTERM
    )
    run = gangs.run("noticed", 2, asked, disturbance=notice)
    assert [each.return_code for each in run.runs] == [0, 0]
    told = {(event["process"], event["update"]) for event in run.events("preempted")}
    updates = {update for _, update in told}
    assert len(told) == 2 and len(updates) == 1 and max(updates) < 4
    resumed = TRAINING | {"checkpoints": str(place), "restore": "latest"}
    alone = gangs.run("alone", 1, resumed)
    assert alone.is_complete, alone.cause
    assert {event["update"] for event in alone.events("restored")} == updates
    assert max(states(alone, 0)) == 4


def test_folders_that_are_not_the_same_one_are_refused_at_once(
    gangs: Gangs, tmp_path: Path
) -> None:
    """Orbax would wait ten minutes for what a host's own folder never shows."""
    apart = TRAINING | {"checkpoints": str(tmp_path / "b")}
    run = gangs.run(
        "apart",
        2,
        TRAINING | {"checkpoints": str(tmp_path / "a"), "restore": "latest"},
        changes={1: {"trainings": [apart | {"restore": "latest"}]}},
    )
    assert run.failed is not None and "controllers_apart" in run.cause
    assert run.events("update") == [] and run.processes_left == 0
    assert (run.ended_at_ns - run.started_at_ns) / 1e9 < 120
