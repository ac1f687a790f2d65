"""The launcher of a gang, with controllers that do as they are told and know no JAX."""

import signal
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tasks import children
from tasks.errors import ProgramsStopped
from tasks.gang import (
    Disturbance,
    GangRun,
    Patience,
    free_address,
    run_gang,
    run_until_done,
    seats,
)
from tasks.run_program import ProgramCall

STUB = Path(__file__).parent.parent / "data" / "stub_controller"


def calls(folder: Path, *acts: str) -> list[ProgramCall]:
    made = []
    for number, act in enumerate(acts):
        own = folder / f"controller-{number}"
        own.mkdir(parents=True)
        made.append(
            ProgramCall(
                program="stub_controller",
                request={"process": number, "act": act},
                folder=own,
                module_root=STUB,
            )
        )
    return made


def signalled(number: int) -> Disturbance:
    return Disturbance(event="hanging", update=3, teller=1, victim=1, number=number)


def test_a_gang_that_completes_has_no_cause(tmp_path: Path) -> None:
    run = run_gang(calls(tmp_path, "go", "go", "go"), Patience())
    assert run.is_complete
    assert run.cause == ""
    assert [each.return_code for each in run.runs] == [0, 0, 0]
    assert len(run.events("update")) == 9


@pytest.mark.parametrize(
    ("acts", "failed", "cause"),
    [
        (("hang", "crash"), 1, "controller 1: stub_controller ended with exit code 1"),
        (("lose the other", "leave a child"), 0, "exit code 17"),
        (("crash", "lose the other", "hang"), 0, "exit code 1"),
        (("lose the other", "crash", "hang"), 1, "exit code 1"),
    ],
)
def test_one_that_fails_ends_all_and_is_told_from_those_it_took_along(
    tmp_path: Path, acts: tuple[str, ...], failed: int, cause: str
) -> None:
    run = run_gang(calls(tmp_path, *acts), Patience())
    assert run.failed == failed
    assert cause in run.cause
    assert run.processes_left == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT])
def test_a_killed_controller_ends_the_other(tmp_path: Path, number: int) -> None:
    run = run_gang(calls(tmp_path, "hang", "hang"), Patience(), signalled(number))
    assert run.failed == 1
    assert run.cause == f"controller 1: ended by {signal.Signals(number).name}"
    assert run.runs[0].return_code == -signal.SIGKILL
    assert run.disturbed_at_ns is not None
    assert run.ended_at_ns > run.disturbed_at_ns
    assert run.processes_left == 0


def test_a_stopped_controller_is_noticed_by_its_silence(tmp_path: Path) -> None:
    """A stopped process answers no SIGTERM; only SIGKILL ends it."""
    patience = Patience(step_seconds=1.0)
    run = run_gang(calls(tmp_path, "go", "hang"), patience, signalled(signal.SIGSTOP))
    assert run.failed == 1
    assert run.cause == "controller 1 was silent for 1 s"
    assert run.processes_left == 0


def test_controllers_that_ignore_a_sigterm_are_ended_all_the_same(
    tmp_path: Path,
) -> None:
    patience = Patience(step_seconds=1.0)
    acts = ("ignore SIGTERM", "ignore SIGTERM")
    run = run_gang(calls(tmp_path, *acts), patience, signalled(signal.SIGTERM))
    assert "silent for 1 s" in run.cause
    assert run.processes_left == 0


def test_a_controller_that_never_trains_is_waited_for_no_longer_than_asked(
    tmp_path: Path,
) -> None:
    """They tell nothing at all, so the time to the first update counts."""
    patience = Patience(start_seconds=1.0, step_seconds=60.0)
    made = calls(tmp_path, "hang", "hang")
    quiet = [replace(each, prefix=("sh", "-c", "sleep 60")) for each in made]
    run = run_gang(quiet, patience)
    assert run.cause == "controller 0 was silent for 1 s"
    assert run.processes_left == 0


def test_an_interrupted_run_ends_its_gang(tmp_path: Path) -> None:
    timer = threading.Timer(1.0, children.stop_all)
    timer.start()
    try:
        started = time.monotonic()
        run = run_gang(calls(tmp_path, "hang", "hang"), Patience())
        assert time.monotonic() - started < 60
        assert run.processes_left == 0
        with pytest.raises(ProgramsStopped):
            run_gang(calls(tmp_path / "again", "go", "go"), Patience())
    finally:
        timer.join()
        children.allow()


def test_a_gang_is_started_again_until_it_completes(tmp_path: Path) -> None:
    def start(attempt: int) -> GangRun:
        act = "go" if attempt == 2 else "crash"
        return run_gang(calls(tmp_path / str(attempt), "go", act), Patience())

    made = run_until_done(start, restarts=3)
    assert [each.is_complete for each in made] == [False, False, True]


def test_a_gang_that_never_completes_is_not_started_for_ever(tmp_path: Path) -> None:
    def start(attempt: int) -> GangRun:
        return run_gang(calls(tmp_path / str(attempt), "crash"), Patience())

    made = run_until_done(start, restarts=1)
    assert [each.is_complete for each in made] == [False, False]


def test_every_seat_has_its_place_and_a_nonce_of_its_own() -> None:
    given = seats(3, "cpu", "c" * 64)
    assert [each["process"] for each in given] == [0, 1, 2]
    assert len({each["coordinator"] for each in given}) == 1
    assert len({each["nonce"] for each in given}) == 3
    again = seats(3, "cpu", "c" * 64)
    assert not {each["nonce"] for each in given} & {each["nonce"] for each in again}


def test_the_address_of_a_gang_can_be_listened_at() -> None:
    host, port = free_address().split(":")
    with socket.socket() as listener:
        listener.bind((host, int(port)))
        assert listener.getsockname() == (host, int(port))
