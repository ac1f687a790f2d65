"""Faults of hosts of a target, and of results that come home from one."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.faults import NO_REPORT
from tests.faults.declaring import of_file, of_function
from tests.faults.gang_faults import lets_everything_pass

_component, _file = partial(of_function, "target"), partial(of_file, "target")


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


def _another_card(home: Any) -> None:
    home.devices = [{**home.observed["devices"][0], "kind": "Tesla T4"}]


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
        "another-card-sold-as-this",
        *("target_host", "5.1", OBSERVED),
        "A GPU of another model computes under the name of the one that was asked for.",
        NO_REPORT,
        _another_card,
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

IMPORTS = (
    _component(
        "cpu-fallback-accepted",
        *("probe", "5.6", "model.programs.probe_target.require_signs"),
        "Any platform that starts is taken for the target.",
        "jax-ml/jax#17624",
        lets_everything_pass,
    ),
    _component(
        "code-demand-ignored",
        *("probe", "5.6", "model.programs.probe_target.require_code"),
        "A host speaks for a launcher whose code it does not have.",
        NO_REPORT,
        lets_everything_pass,
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
        lets_everything_pass,
    ),
)

FAULTS = (*HOSTS, *IMPORTS)
