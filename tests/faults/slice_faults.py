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

_file, _view = partial(of_file, "target"), partial(of_view, "target")
TRAINED, RESTARTED = GANGS


def _copy_signs(folder: Path) -> None:
    """Host 1 has nothing of its own; what host 0 answered lies there for both."""
    for gang in GANGS:
        own, other = (folder / part(gang, number) / "artifacts" for number in (1, 0))
        shutil.copyfile(other / "observed.json", own / "observed.json")


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
    _view(
        "timings-before-parity",
        *("target_times", "import"),
        "target_timings",
        "How fast a target was is shown before its numbers are accepted.",
        NO_REPORT,
        ("where accepted.claims = 5", "where accepted.claims <= 5"),
    ),
)
