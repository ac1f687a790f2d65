"""Scenes about what a target computed: repeated, resumed, and with which settings."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from model import tokenizer
from model.config import to_dict
from model.presets import fixture
from model.target_result import KILLED_CODE, RESTORED_UPDATE, TRAINED_UPDATES
from tests.faults import Scene, Stage
from tests.synthetic_targets import observed_target

STEPS = ("trained", "repeated", "resumed")


def target_restart(stage: Stage) -> None:
    """The traces of a training, of its repetition, and of what was resumed."""
    from model.checks.target_result import Judge

    home = SimpleNamespace(
        traces={step: _trace() for step in STEPS},
        steps={
            step: {"process_id": number, "return_code": 0}
            for number, step in enumerate(("trained", "killed", "resumed"))
        },
    )
    home.steps["killed"]["return_code"] = KILLED_CODE
    stage.spoil(home)
    for step, lines in home.traces.items():
        path = stage.folder / step / "artifacts" / "trace.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    judge = Judge.__new__(Judge)
    judge.folder, judge.manifest = stage.folder, {"steps": home.steps}
    stage.record("qualify_target", "comparisons", *judge.restart())


def _trace() -> list[dict[str, Any]]:
    start: dict[str, Any] = {"update": RESTORED_UPDATE, "is_start": True}
    updates = [
        {
            "update": update,
            "digests": [
                {"kind": kind, "leaf": "", "sha256": f"{kind}-{update}"}
                for kind in ("document_ids", "first_moment", "parameters")
            ],
        }
        for update in range(1, TRAINED_UPDATES + 1)
    ]
    return [start, *updates]


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
