"""Faults of all hosts of a slice together: copied, begun anew, too soon."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from model.target_result import GANGS, part
from tests.faults import NO_REPORT
from tests.faults.declaring import of_file, of_view
from tests.slice_results import places

_file, _view = partial(of_file, "target"), partial(of_view, "target")
TRAINED, RESTARTED = GANGS


def _copy_signs(folder: Path) -> None:
    """Host 1 has nothing of its own; what host 0 answered lies there for both."""
    for gang in GANGS:
        own, other = (folder / part(gang, number) / "artifacts" for number in (1, 0))
        shutil.copyfile(other / "observed.json", own / "observed.json")


def _one_machine(folder: Path) -> None:
    """Workers of one machine, each with its part of the devices, sold as a slice."""
    for place in places():
        for name in ("observed.json", "answer.json"):
            path = folder / part(*place) / "artifacts" / name
            told = {**json.loads(path.read_text()), "host": "one-machine"}
            path.write_text(json.dumps(told))


def _one_chip_each(folder: Path) -> None:
    """A host has one device of its own where the accelerator has more."""
    for gang, number in places():
        path = folder / part(gang, number) / "artifacts" / "observed.json"
        told = json.loads(path.read_text())
        own = told["local_devices"][:1]
        told |= {"local_devices": own, "computed": told["computed"][:1]}
        path.write_text(json.dumps(told))


def _change(name: str, change: Callable[[Any], None], *gangs: str) -> Any:
    """Returns what changes a file of controller 1."""

    def spoil(folder: Path) -> None:
        for gang in gangs:
            path = folder / part(gang, 1) / name
            value = json.loads(path.read_text())
            change(value)
            path.write_text(json.dumps(value))

    return spoil


def _lack_a_chip(observed: Any) -> None:
    observed["chips"] = []


def _part(rows: Any) -> None:
    rows[-1]["state_sha256"] += "-other"


OBSERVED = "artifacts/observed.json of a controller"
TRACE = "artifacts/trace.json"
UPDATES = "records/controller_updates.json"
FAULTS = (
    _file(
        "signs-of-one-host-for-all",
        *("target_slice", "5.2", OBSERVED),
        "What one host answered is copied for a host that lacks every sign.",
        "karpathy/llm.c#792",
        _copy_signs,
    ),
    _file(
        "one-host-without-its-chips",
        *("target_slice", "5.1", OBSERVED),
        "One host of a slice computes without a chip, and all others make up for it.",
        "jax-ml/jax#17624",
        _change("artifacts/observed.json", _lack_a_chip, TRAINED),
    ),
    _file(
        "one-chip-of-each-host",
        *("target_slice", "5.1", OBSERVED),
        "Each controller has one device, and the slice that they are sold as has four.",
        NO_REPORT,
        _one_chip_each,
    ),
    _file(
        "one-machine-sold-as-a-slice",
        *("target_slice", "5.2", f"{OBSERVED} and answer.json"),
        "Workers of one machine take a device each under the name of a slice of many.",
        NO_REPORT,
        _one_machine,
    ),
    _file(
        "one-host-without-a-trace",
        *("target_slice", "5.1", "artifacts/trace.json of a controller"),
        "One host leaves no trace of the workload, and the others make up for it.",
        NO_REPORT,
        lambda folder: (folder / part(RESTARTED, 1) / TRACE).unlink(),
    ),
    _file(
        "one-controller-parts",
        *("target_slice", "5.3", f"{UPDATES} of a controller"),
        "The repetition of one controller holds other parameters than the others.",
        "pytorch/pytorch#22584",
        _change(UPDATES, lambda rows: _part(rows[:8]), RESTARTED),
    ),
    _file(
        "restart-that-began-anew",
        *("target_slice", "5.5", "end.json of a controller"),
        "The gang did not restore its commit; deterministic, it came to the same bits.",
        "KempnerInstitute/KempnerForge#49",
        _change("end.json", lambda end: end["events"].clear(), RESTARTED),
    ),
    _file(
        "restart-that-crashed-at-its-end",
        *("target_slice", "5.5", "end.json of a controller"),
        "A controller of the restarted gang is aborted after its last update.",
        NO_REPORT,
        _change("end.json", lambda end: end.update(return_code=-6), RESTARTED),
    ),
    _view(
        "timings-before-parity",
        *("target_times", "import"),
        "target_timings",
        "How fast a target was is shown before its numbers are accepted.",
        NO_REPORT,
        ("where accepted.claims = 5", "where accepted.claims <= 5"),
    ),
)
