"""Where the time of a run went: an instant counts once, and what is unknown is null."""

import uuid

import pytest

from flows import run_times
from flows.run_times import RunTimes, exclusive
from tasks import progress
from tasks.clock import PARTS, PROGRAMS, RECORDING


@pytest.mark.parametrize(
    ("parts", "lengths"),
    [
        ([[(0, 10)], [(10, 12)]], [10, 2]),
        ([[(0, 10), (2, 8)], []], [10, 0]),
        ([[(0, 4), (6, 9)], [(3, 7)]], [7, 2]),
        ([[(5, 6)], [(0, 10)], [(0, 10)]], [1, 9, 0]),
        ([[], [(7, 9), (0, 3), (2, 4)]], [0, 6]),
    ],
    ids=["apart", "side by side", "overlapping", "nested", "unordered"],
)
def test_an_instant_counts_once_and_for_the_first_part(parts, lengths):
    """Two programs side by side are no longer than the clock, and hide recording."""
    assert exclusive(parts) == lengths
    covered = {n for spans in parts for a, b in spans for n in range(a, b)}
    assert sum(lengths) == len(covered)


class Clock:
    """A clock that a test moves."""

    def __init__(self, monkeypatch):
        self.now_ns = 1_000
        monkeypatch.setattr(run_times.time, "monotonic_ns", lambda: self.now_ns)
        monkeypatch.setattr(run_times, "process_age_ns", lambda: 400)
        monkeypatch.setattr(run_times, "_runs_of_this_process", 0)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def enter(times, stage, task_run_id, after=()):
    times.hear(
        stage, {"event": progress.ENTERED, "task_run_id": task_run_id, "after": after}
    )


def spend(times, stage, part, started_ns, ended_ns):
    event = {"event": progress.SPENT, "part": part}
    times.hear(stage, {**event, "started_ns": started_ns, "ended_ns": ended_ns})


def test_a_stage_waits_from_the_end_of_the_last_that_it_needs(clock):
    """Time during which its inputs were still computed is nobody's waiting."""
    times = RunTimes()
    first, second, third = uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
    clock.now_ns = 1_010
    enter(times, "tokenize_corpus", first)
    clock.now_ns = 1_100
    assert times.end("tokenize_corpus") == 90
    clock.now_ns = 1_130
    enter(times, "train_model", second, {first})
    spend(times, "train_model", PROGRAMS, 1_140, 1_180)
    spend(times, "train_model", PROGRAMS, 1_150, 1_190)
    spend(times, "train_model", RECORDING, 1_180, 1_197)
    clock.now_ns = 1_200
    assert times.end("train_model") == 70
    assert times.parts("train_model") == {
        "waiting_ns": 30,
        "program_ns": 50,
        "recording_ns": 7,
        "hashing_ns": 0,
        "key_ns": 0,
    }
    assert times.parts("tokenize_corpus")["waiting_ns"] == 10
    # a task run that is no stage of this run (and one not yet ended) delays nothing
    enter(times, "evaluate_heldout", third, {uuid.uuid4()})
    times.end("evaluate_heldout")
    assert times.parts("evaluate_heldout")["waiting_ns"] == 200


def test_a_run_begins_with_its_process_unless_that_ran_one_before(clock):
    """A server of flows may be days old when the second flow starts in it."""
    first = RunTimes()
    clock.now_ns = 1_050
    enter(first, "tokenize_corpus", uuid.uuid4())
    clock.now_ns = 1_070
    first.end("tokenize_corpus")
    clock.now_ns = 1_075
    assert first.of_run() == {"elapsed_ns": 475, "starting_ns": 450, "ending_ns": 5}
    second = RunTimes()
    assert second.of_run() == {"elapsed_ns": 0, "starting_ns": None, "ending_ns": None}


def test_a_stage_that_never_began_has_no_parts(clock):
    """Null says that nothing is known; 0 would say that nothing was spent."""
    times = RunTimes()
    assert times.end("train_model") == 0
    assert times.parts("train_model") == {}


def test_every_column_of_the_parts_is_one_of_a_link(clock):
    import dataclasses

    from warehouse.runs import RunFinish, StageLink

    times = RunTimes()
    enter(times, "train_model", uuid.uuid4())
    times.end("train_model")
    parts, of_run = times.parts("train_model"), times.of_run()
    assert set(parts) <= {field.name for field in dataclasses.fields(StageLink)}
    assert set(of_run) <= {field.name for field in dataclasses.fields(RunFinish)}
    assert len(parts) == len(PARTS) + 1
