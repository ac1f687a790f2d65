"""Faults of several controllers that train as one, and of their launcher."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from tests.faults import NO_REPORT
from tests.faults.declaring import of_file, of_function

_component, _file = partial(of_function, "target"), partial(of_file, "target")


def _answer(out: Path, **changes: Any) -> None:
    path = out / "artifacts" / "answer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _each_alone(outs: list[Path]) -> None:
    for out in outs:
        _answer(out, process_index=0, process_count=1, global_device_count=1)


def copy_first(outs: list[Path]) -> None:
    for name in ("artifacts/answer.json", "records/controller_updates.json"):
        shutil.copy(outs[0] / name, outs[1] / name)


def _of_nobody(outs: list[Path]) -> None:
    rows = outs[1] / "records" / "controller_updates.json"
    rows.write_text(json.dumps([{"nonce": "n0", "update": 1}]))


ANSWER = "artifacts/answer.json of a controller"
ANSWERS = (
    _file(
        "distributed-init-after-device-use",
        *("answers", "5.9", ANSWER),
        "Each controller asked for devices first and trains in a world of its own.",
        "jax-ml/jax#12258",
        _each_alone,
    ),
    _file(
        "other-code-on-one-worker",
        *("answers", "5.9", ANSWER),
        "One controller runs other code than its launcher demands.",
        NO_REPORT,
        lambda outs: _answer(outs[1], code_sha256="d" * 64),
    ),
    _file(
        "worker-evidence-duplicated",
        *("answers", "5.9", ANSWER),
        "The files of one controller are copied for all.",
        "karpathy/llm.c#792",
        copy_first,
    ),
    _file(
        "answer-of-an-earlier-gang",
        *("answers", "5.9", ANSWER),
        "A controller gives the answer that another launch was given.",
        NO_REPORT,
        lambda outs: _answer(outs[0], nonce="n9"),
    ),
    _file(
        "controller-without-answer",
        *("answers", "5.9", ANSWER),
        "One controller says nothing and counts as present.",
        "jax-ml/jax#38503",
        lambda outs: (outs[1] / "artifacts" / "answer.json").unlink(),
    ),
    _file(
        "updates-of-another-controller",
        *("answers", "5.9", "records/controller_updates.json of a controller"),
        "Updates lie beside the answer of a controller that did not make them.",
        "horovod/horovod#223",
        _of_nobody,
    ),
    _file(
        "devices-of-one-worker-missing",
        *("answers", "5.9", ANSWER),
        "The runtime of one controller sees fewer devices than there are.",
        "AI-Hypercomputer/maxtext#275",
        lambda outs: _answer(outs[1], global_device_count=1),
    ),
)


def mean_of_means(gang: Any) -> None:
    gang.has_mean_of_means = True


def computed_by(*hosts: list[int]) -> Callable[[Any], None]:
    def change(gang: Any) -> None:
        gang.hosts = list(hosts)

    return change


UPDATE = "the update that a gang makes"
CONTROLLERS = (
    _file(
        "per-process-loss-mean",
        *("controllers", "5.10", UPDATE),
        "Each host divides by its own targets, and the means are averaged.",
        "pytorch/torchtitan#1842",
        mean_of_means,
    ),
    _file(
        "hosts-overlap",
        *("controllers", "5.10", UPDATE),
        "Every host computes the documents of the first one.",
        "horovod/horovod#223",
        computed_by([0, 1], [0, 1]),
    ),
    _file(
        "host-order",
        *("controllers", "5.11", UPDATE),
        "The documents of the second host come first.",
        NO_REPORT,
        computed_by([2, 3], [0, 1]),
    ),
    _file(
        "global-batch-per-device",
        *("controllers", "5.10", UPDATE),
        "Every host computes the whole batch, and all of them are added up.",
        "pytorch/xla#6411",
        computed_by([0, 1, 2, 3], [0, 1, 2, 3]),
    ),
    _file(
        "last-host-left-out",
        *("controllers", "5.10", UPDATE),
        "What the last host computed does not reach the sum.",
        "pytorch/pytorch#22584",
        computed_by([0, 1], []),
    ),
)


def _newest_folder(original: Any) -> Any:
    def latest_checkpoint(folder: Path) -> Path:
        return max(folder.glob("update-*"))

    del original
    return latest_checkpoint


def _by_all(events: list[dict[str, Any]]) -> None:
    events.append({"event": "checkpoint", "update": 4, "process": 1})


def _each_its_own(events: list[dict[str, Any]]) -> None:
    events[-1]["update"] = 2


EVENTS = "what the controllers of a gang tell"
CHECKPOINTS = (
    _component(
        "uncommitted-latest",
        *("checkpoints", "5.12", "model.checkpoint.latest_checkpoint"),
        "The newest checkpoint is restored, whether it was committed or not.",
        "petuum/adaptdl#70",
        _newest_folder,
    ),
    _file(
        "every-process-writes-checkpoint",
        *("checkpoints", "5.12", EVENTS),
        "Every controller writes the checkpoint that one of them has to write.",
        "NVIDIA/apex#886",
        _by_all,
    ),
    _file(
        "restore-different-steps-per-host",
        *("checkpoints", "5.12", EVENTS),
        "Each host goes on from the newest checkpoint that it sees itself.",
        "KempnerInstitute/KempnerForge#49",
        _each_its_own,
    ),
)


def lets_everything_pass(original: Any) -> Any:
    """Returns a function that lets everything pass."""
    del original
    return lambda *given: None


def _counted_alone(original: Any) -> Any:
    """Counts what a gang has left, and ends it only after that."""

    def end_sessions(self: Any) -> int:
        from tasks.gang import _session_of

        sessions = {each.process.pid for each in self.controllers if each.process}
        left = [n for n in psutil.pids() if _session_of(n) in sessions]
        original(self)
        return len(left)

    return end_sessions


LAUNCHER = (
    _component(
        "orphan-holds-the-devices",
        *("gang_ends", "5.13", "tasks.gang._Gang._end_sessions"),
        "What a controller has started outlives it and holds the devices.",
        NO_REPORT,
        _counted_alone,
    ),
    _component(
        "join-unchecked",
        *("controller_joins", "gang", "model.controllers.join"),
        "A controller trains without looking whether the others are there.",
        "marin-community/marin#6320",
        lets_everything_pass,
    ),
    _component(
        "platform-not-demanded",
        *("controller_joins", "gang", "model.controllers.require_demands"),
        "A controller trains on whatever platform has started.",
        "AI-Hypercomputer/RecML#9",
        lets_everything_pass,
    ),
    _component(
        "dead-peer-hangs",
        *("gangs", "gang", "tasks.gang._Gang._silent"),
        "A controller that hangs is waited for, because its heartbeat goes on.",
        "openxla/xla#44429",
        lets_everything_pass,
    ),
)

FAULTS = (*ANSWERS, *CONTROLLERS, *CHECKPOINTS, *LAUNCHER)
