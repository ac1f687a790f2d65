"""Faults of controllers, of hosts of a target, and of results that come home."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults import NO_REPORT, Fault
from tests.faults.planting import swapped
from tests.faults.target_scenes import SCENES as SCENES

GROUP = "target"


def _file(
    name: str,
    scene: str,
    claim: str,
    replaces: str,
    summary: str,
    source: str,
    file: Callable[[Any], Any],
) -> Fault:
    return Fault(
        name=name,
        group=GROUP,
        summary=summary,
        source=source,
        claim=claim,
        replaces=replaces,
        scene=scene,
        file=file,
    )


def _component(
    name: str,
    scene: str,
    claim: str,
    replaces: str,
    summary: str,
    source: str,
    make: Any,
) -> Fault:
    return Fault(
        name=name,
        group=GROUP,
        summary=summary,
        source=source,
        claim=claim,
        replaces=replaces,
        scene=scene,
        component=swapped(replaces, make),
    )


def _answer(out: Path, **changes: Any) -> None:
    path = out / "artifacts" / "answer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _each_alone(outs: list[Path]) -> None:
    for out in outs:
        _answer(out, process_index=0, process_count=1, global_device_count=1)


def _copy_first(outs: list[Path]) -> None:
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
        _copy_first,
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


def _means(gang: Any) -> None:
    gang.has_mean_of_means = True


def _hosts(*hosts: list[int]) -> Callable[[Any], None]:
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
        _means,
    ),
    _file(
        "hosts-overlap",
        *("controllers", "5.10", UPDATE),
        "Every host computes the documents of the first one.",
        "horovod/horovod#223",
        _hosts([0, 1], [0, 1]),
    ),
    _file(
        "host-order",
        *("controllers", "5.11", UPDATE),
        "The documents of the second host come first.",
        NO_REPORT,
        _hosts([2, 3], [0, 1]),
    ),
    _file(
        "global-batch-per-device",
        *("controllers", "5.10", UPDATE),
        "Every host computes the whole batch, and all of them are added up.",
        "pytorch/xla#6411",
        _hosts([0, 1, 2, 3], [0, 1, 2, 3]),
    ),
    _file(
        "last-host-left-out",
        *("controllers", "5.10", UPDATE),
        "What the last host computed does not reach the sum.",
        "pytorch/pytorch#22584",
        _hosts([0, 1], []),
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


def _relabel(home: Any) -> None:
    """Leaves the names, which anybody can write, and takes away the hardware."""
    home.observed |= {
        "chips": [],
        "driver_versions": {},
        "driver_devices": [],
        "versions": {"jax": "0.11.0", "jaxlib": "0.11.0"},
        "trace_planes": {"/host:CPU": {"python": 3}},
        "platform_version": "cpu",
    }


def _fall_back(home: Any) -> None:
    device = {**home.observed["devices"][0], "platform": "cpu", "kind": "cpu"}
    home.observed |= {"default_backend": "cpu", "devices": [device]}
    home.devices = [device]


def _without_devices(home: Any) -> None:
    home.devices = []


def _on_the_host(home: Any) -> None:
    home.trace["planes"] = {"/host:CPU": {"Stream": 9}}


def _fewer_regions(home: Any) -> None:
    home.trace["regions"] = dict.fromkeys(home.trace["regions"], 4)


OBSERVED = "probe/observed.json of a result"
HOSTS = (
    _file(
        "cpu-fallback-on-the-target",
        *("target_host", "5.1", OBSERVED),
        "No accelerator was found and the CPU computed, under the target's name.",
        "jax-ml/jax#12642",
        _fall_back,
    ),
    _file(
        "relabelled-device",
        *("target_host", "5.1", OBSERVED),
        "Backend and devices have the target's names, and nothing else of it is there.",
        "googlecolab/colabtools#4336",
        _relabel,
    ),
    _file(
        "values-computed-elsewhere",
        *("target_host", "5.1", OBSERVED),
        "The devices are listed, and the values lie on the CPU.",
        "plusmultiply/TAPS3D#3",
        lambda home: home.observed.update(computed=[{"on": ["cpu"], "value": 256.0}]),
    ),
    _file(
        "target-claim-without-device-record",
        *("target_host", "5.1", "records of target_devices"),
        "Numbers of a target without a record of any device.",
        NO_REPORT,
        _without_devices,
    ),
    _file(
        "trace-without-device-lane",
        *("target_host", "5.1", "executed/trace.json of a result"),
        "The trace of the workload holds events of the host alone.",
        "jax-ml/jax#12381",
        _on_the_host,
    ),
    _file(
        "trace-truncated-on-target",
        *("target_host", "5.1", "executed/trace.json of a result"),
        "The trace of the workload ends before its last regions.",
        "openxla/xla#21885",
        _fewer_regions,
    ),
    _file(
        "result-of-an-earlier-challenge",
        *("target_host", "5.2", "manifest.json of a result"),
        "The result answers a nonce that another launch was given.",
        NO_REPORT,
        lambda home: home.manifest.update(nonce="0" * 32),
    ),
    _file(
        "other-code-on-target",
        *("target_host", "5.2", OBSERVED),
        "The host runs other code than the launcher demands.",
        NO_REPORT,
        lambda home: home.observed.update(code_sha256="d" * 64),
    ),
)


def _nothing(original: Any) -> Any:
    """Returns a function that lets everything pass."""
    del original
    return lambda *given: None


PLATFORM = (
    _component(
        "cpu-fallback-accepted",
        *("probe", "5.6", "model.programs.probe_target.require_signs"),
        "Any platform that starts is taken for the target.",
        "jax-ml/jax#17624",
        _nothing,
    ),
    _component(
        "code-demand-ignored",
        *("probe", "5.6", "model.programs.probe_target.require_code"),
        "A host speaks for a launcher whose code it does not have.",
        NO_REPORT,
        _nothing,
    ),
    _component(
        "join-unchecked",
        *("controller_joins", "gang", "model.controllers.join"),
        "A controller trains without looking whether the others are there.",
        "marin-community/marin#6320",
        _nothing,
    ),
    _component(
        "platform-not-demanded",
        *("controller_joins", "gang", "model.controllers.require_demands"),
        "A controller trains on whatever platform has started.",
        "AI-Hypercomputer/RecML#9",
        _nothing,
    ),
    _component(
        "dead-peer-hangs",
        *("gangs", "gang", "tasks.gang._Gang._silent"),
        "A controller that hangs is waited for, because its heartbeat goes on.",
        "openxla/xla#44429",
        _nothing,
    ),
    _component(
        "result-bytes-unchecked",
        *("results", "import", "model.target_result._sha256"),
        "A file of a result that was changed on its way is taken in.",
        "iterative/dvc#9542",
        lambda original: lambda data: "0" * 64,
    ),
    _component(
        "synthetic-result-accepted",
        *("results", "import", "tasks.target_results.TargetResult.require_target"),
        "A result that says of itself that it was made up becomes evidence.",
        NO_REPORT,
        _nothing,
    ),
)

FAULTS = (*ANSWERS, *CONTROLLERS, *CHECKPOINTS, *HOSTS, *PLATFORM)
