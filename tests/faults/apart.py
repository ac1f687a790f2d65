"""Plays scenes in processes of their own, two at a time, and brings back their rows."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults import Fault, Scene, Stage

AT_ONCE = 2
DEADLINE_SECONDS = 120.0
LOOK_SECONDS = 0.01

Play = tuple[Scene, Fault | None]


@dataclass(frozen=True, kw_only=True)
class Played:
    """What came of a scene under one fault, or under none."""

    scene: Scene
    fault: Fault | None
    rows: list[tuple[str, str, dict[str, Any]]]
    """Stage, table and values of each row."""
    failure: str
    """Why the scene ended early, "" if it did not."""
    seconds: float
    """How long its process took, which it may have shared."""


def play_all(plays: Sequence[Play], folder: Path) -> list[Played]:
    """Returns what came of every play, in their order.

    Args:
        plays: Scene and what is planted.
        folder: Empty folder.
    """
    waiting = _groups(plays)
    running: dict[int, tuple[list[int], float]] = {}
    seconds: dict[int, float] = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            group = waiting.pop(0)
            children = [(*plays[number], folder / f"{number:03d}") for number in group]
            running[_started(children)] = (group, time.monotonic())
        for process in _ended(running):
            group, begun = running.pop(process)
            seconds |= dict.fromkeys(group, time.monotonic() - begun)
        time.sleep(LOOK_SECONDS)
    return [
        _result(*play, folder / f"{number:03d}", seconds[number])
        for number, play in enumerate(plays)
    ]


def _groups(plays: Sequence[Play]) -> list[list[int]]:
    """Returns which plays share a process: those that leave its functions alone."""
    shared: dict[str, list[int]] = {}
    alone = []
    for number, (scene, fault) in enumerate(plays):
        if fault is None or fault.component is None:
            shared.setdefault(scene.name, []).append(number)
        else:
            alone.append([number])
    return [*shared.values(), *alone]


def _started(children: Sequence[tuple[Scene, Fault | None, Path]]) -> int:
    """Returns the process id of a child that plays some scenes and ends."""
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        for scene, fault, place in children:
            place.mkdir(parents=True)
            _play(scene, fault, place)
    finally:
        # Nothing of the parent's is flushed, closed or cleaned up here.
        os._exit(0)


def _play(scene: Scene, fault: Fault | None, place: Path) -> None:
    stage, failure = Stage(place / "stage", fault), ""
    stage.folder.mkdir()
    with (place / "said.txt").open("wb") as said:
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
    try:
        if fault is not None and fault.component is not None:
            fault.component()
        scene.play(stage)
    except BaseException as error:  # noqa: BLE001 (whatever ends it is told)
        traceback.print_exc()
        failure = f"{type(error).__name__}: {str(error)[:300]}"
    text = json.dumps({"rows": stage.rows, "failure": failure})
    (place / "result.json").write_text(text)


def _ended(running: Mapping[int, tuple[list[int], float]]) -> list[int]:
    """Returns the children that have ended, and ends those that take too long."""
    over = []
    for process, (_, begun) in running.items():
        if os.waitpid(process, os.WNOHANG)[0]:
            over.append(process)
        elif time.monotonic() - begun > DEADLINE_SECONDS:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            over.append(process)
    return over


def _result(scene: Scene, fault: Fault | None, place: Path, seconds: float) -> Played:
    file = place / "result.json"
    told: dict[str, Any] = {"rows": [], "failure": "it did not come to its end"}
    if file.is_file():
        told = json.loads(file.read_text())
    shutil.rmtree(place / "stage", ignore_errors=True)
    return Played(
        scene=scene,
        fault=fault,
        rows=[(stage, table, row) for stage, table, row in told["rows"]],
        failure=told["failure"],
        seconds=seconds,
    )
