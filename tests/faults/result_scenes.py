"""Scenes about what a target computed: repeated, resumed, and with which settings."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from model import tokenizer
from model.checkpoint_manifest import MARK
from model.config import to_dict
from model.digests import array_sha256
from model.presets import fixture
from model.target_result import (
    KILLED_AFTER_UPDATE,
    KILLED_CODE,
    RESTORED_UPDATE,
    TRAINED_UPDATES,
    UNCOMMITTED_UPDATE,
)
from tests.faults import Scene, Stage
from tests.synthetic_targets import observed_target

STATE = ("parameters", "first_moment", "second_moment")
STEPS = ("trained", "repeated", "resumed")
"""Trainings that come to their end."""


def target_restart(stage: Stage) -> None:
    """The trainings of one host: whole, repeated, killed, and what was resumed."""
    from model.checks.target_restart import TRAININGS, HostTrainings

    home = SimpleNamespace(
        folder=stage.folder,
        traces={step: _trace(step) for step in TRAININGS},
        steps={
            step: {"process_id": number, "return_code": 0}
            for number, step in enumerate(TRAININGS)
        },
    )
    home.steps["killed"]["return_code"] = KILLED_CODE
    for step in STEPS:
        _told(stage.folder / step, step, home)
        _checkpoint(stage.folder / step, TRAINED_UPDATES)
    _checkpoint(stage.folder / "killed", RESTORED_UPDATE)
    _checkpoint(stage.folder / "killed", UNCOMMITTED_UPDATE, is_committed=False)
    stage.spoil(home)
    for step, lines in home.traces.items():
        path = stage.folder / step / "artifacts" / "trace.jsonl"
        if path.parent.parent.is_dir():
            path.parent.mkdir(parents=True)
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    trainings = HostTrainings(stage.folder, home.steps)
    stage.record(
        "qualify_target", "comparisons", *trainings.repeated(), *trainings.resumed()
    )


def _trace(step: str) -> list[dict[str, Any]]:
    start: dict[str, Any] = {"update": 0, "is_start": True, "digests": []}
    first, last = 1, TRAINED_UPDATES
    if step == "resumed":
        start["update"], first = RESTORED_UPDATE, RESTORED_UPDATE + 1
    if step == "killed":
        last = KILLED_AFTER_UPDATE
    updates = [
        {
            "update": update,
            "digests": [
                {"kind": "document_ids", "leaf": "", "sha256": f"documents-{update}"},
                _digest("loss_bits", "", np.float32(6.0 - update)),
                *(
                    _digest(*name.split("/"), array)
                    for name, array in _state(update).items()
                ),
            ],
        }
        for update in range(first, last + 1)
    ]
    return [start, *updates]


def _digest(kind: str, leaf: str, array: Any) -> dict[str, Any]:
    return {"kind": kind, "leaf": leaf, "sha256": array_sha256(array)}


def _state(update: int) -> dict[str, np.ndarray]:
    """Returns what a training would hold after an update."""
    return {f"{kind}/w": np.full(2, update, np.float32) for kind in STATE}


def _told(folder: Path, step: str, home: Any) -> None:
    """Writes what a training that came to its end tells of itself."""
    (folder / "records").mkdir(parents=True)
    told = {"process_id": home.steps[step]["process_id"]}
    (folder / "program.json").write_text(json.dumps(told))
    first = RESTORED_UPDATE + 1 if step == "resumed" else 1
    rows = [
        {
            "update": update,
            "loss_nats": 6.0 - update,
            "duration_ns": 1000 * update + told["process_id"],
        }
        for update in range(first, TRAINED_UPDATES + 1)
    ]
    (folder / "records" / "updates.json").write_text(json.dumps(rows))


def _checkpoint(folder: Path, update: int, is_committed: bool = True) -> None:
    place = folder / "checkpoints" / f"update-{update:06d}"
    place.mkdir(parents=True)
    np.savez(place / "arrays.npz", **_state(update))  # type: ignore[arg-type]
    if is_committed:
        (place / MARK).write_text("0" * 64)


def target_configuration(stage: Stage) -> None:
    """What a result says of its settings, beside what was declared."""
    from model.checks.target_result import Judge

    config = fixture()
    model, train = to_dict(config.model), to_dict(config.train)
    shape = (config.train.batch_documents, config.model.context_tokens + 1)
    tokens = dict.fromkeys(("train", "validation", "heldout"), np.full(shape, 9))
    home = SimpleNamespace(
        tokenizer=tokenizer.describe(),
        tokens=tokens,
        identity={**train, "architecture": model},
        told=dict(model),
        steps={step: {"matmul_precision": "highest"} for step in STEPS},
        placed={
            "global_batch": list(shape),
            "device_batch": [str(list(shape))],
            "devices_of_state": ["gpu:0"],
            "valid_targets": shape[0] * (shape[1] - 1),
        },
        released="r" * 64,
    )
    stage.spoil(home)
    _written(stage.folder / "tokens" / "artifacts" / "corpus.json", home.tokenizer)
    last = f"update-{TRAINED_UPDATES:06d}"
    checkpoint = stage.folder / "trained" / "checkpoints" / last / "manifest.json"
    _written(checkpoint, home.identity, "identity")
    judge = Judge.__new__(Judge)
    judge.folder, judge.observed = stage.folder, observed_target("gpu")
    judge.model, judge.train = config.model, config.train
    judge.tokens, judge.target_tokens = tokens, home.tokens
    judge.placed, judge.request = home.placed, {"released_sha256": "r" * 64}
    judge.manifest = {
        "model": home.told,
        "train": train,
        "steps": home.steps,
        "is_release_given": True,
        "files": {"parameters.npz": {"sha256": home.released}},
    }
    stage.record("qualify_target", "comparisons", *judge.configuration())


def _written(path: Path, value: Any, name: str = "tokenizer") -> None:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({name: value}))


SCENES = tuple(
    Scene(name=play.__name__, play=play)
    for play in (target_restart, target_configuration)
)
