"""Hosts of a launcher that was killed end by themselves; others are left alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks import launcher_watch
from tasks.launcher_watch import (
    BEAT_SECONDS,
    SILENT_SECONDS,
    LauncherPulse,
    LauncherWatch,
)
from tasks.remote_host import ToldToEnd, run_host
from tasks.storage import Storage
from tests.tasks.test_remote_host import STUB, order


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Iterator[Clock]:
    yield Clock()


def test_a_launcher_that_lives_is_never_called_silent(
    tmp_path: Path, clock: Clock
) -> None:
    place = Storage(f"file://{tmp_path}/gang")
    pulse, watch = LauncherPulse(place, clock), LauncherWatch(place, clock)
    for _ in range(40):
        pulse.beat()
        assert watch.silent() == ""
        clock.now += BEAT_SECONDS


@pytest.mark.parametrize("marks", [0, 1, 3])
def test_a_launcher_that_leaves_no_new_mark_counts_as_gone(
    tmp_path: Path, clock: Clock, marks: int
) -> None:
    """However many it left before, and also where it never left any."""
    place = Storage(f"file://{tmp_path}/gang")
    pulse, watch = LauncherPulse(place, clock), LauncherWatch(place, clock)
    for _ in range(marks):
        pulse.beat()
        assert watch.silent() == ""
        clock.now += BEAT_SECONDS
    watch.silent()
    clock.now += SILENT_SECONDS - 2 * BEAT_SECONDS
    assert watch.silent() == ""
    clock.now += 4 * BEAT_SECONDS
    assert "silent for 120 s" in watch.silent()


def test_marks_are_not_left_more_often_than_they_are_looked_for(
    tmp_path: Path, clock: Clock
) -> None:
    place = Storage(f"file://{tmp_path}/gang")
    pulse = LauncherPulse(place, clock)
    pulse.beat()
    first = place.get(launcher_watch.ALIVE)
    clock.now += BEAT_SECONDS / 2
    pulse.beat()
    assert place.get(launcher_watch.ALIVE) == first


def test_a_host_ends_its_controller_when_its_launcher_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(STUB))
    monkeypatch.setattr(launcher_watch, "SILENT_SECONDS", 1.0)
    with pytest.raises(ToldToEnd, match="its launcher was silent for 1 s"):
        run_host(order(tmp_path, act="hang"))
