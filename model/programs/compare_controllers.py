"""Sets what gangs of controllers computed beside the same training in one process.

It reads what the controllers wrote, and computes the parameters that they began with.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from model.checks import controllers
from model.checks.controllers import Declared, Trained
from model.checks.rows import Row
from model.config import ModelConfig, TrainConfig, from_dict
from model.corpus import load_corpus
from model.parameters import initial_parameters
from model.programs import entry


def main(request: dict[str, Any], out: Path) -> None:
    """Writes the comparisons and measurements of the rehearsal.

    Args:
        request: `model`, `train`, `tokens`, `corpus`, `last_update`, and result folders
            of controllers: `alone` (of the processes that trained `whole` and `split`)
            and `gangs`, each with `outs` in the order of controllers, `trained` (labels
            of trainings to compare as a whole), `restarts` (case by label) and
            optionally `is_split_alone` (it made the split training and no other) and
            `resumed`: trainings with a state in parts by label, each with its `case`,
            what it is held against (`label` and result folder `out`) and whether bits
            are owed (`is_exact`).
        out: Result folder.
    """
    model = from_dict(ModelConfig, request["model"])
    corpus = load_corpus(Path(request["tokens"]), Path(request["corpus"]), model)
    declared = Declared(
        model=model,
        train=from_dict(TrainConfig, request["train"]),
        corpus=corpus,
        last_update=request["last_update"],
    )
    seed = declared.train.initialization_seed
    begin = {name: np.asarray(x) for name, x in initial_parameters(model, seed).items()}
    alone = {program: Path(out) for program, out in request["alone"].items()}
    whole = _rows(alone["whole"], "controller_updates", "whole")
    split = _rows(alone["split"], "controller_updates", "split")
    rows: list[Row] = []
    for gang in request["gangs"]:
        outs = [Path(each) for each in gang["outs"]]
        for label in gang["trained"]:
            trained = _trained(outs, label)
            ends = _state(alone["whole"], "whole"), _state(outs[0], label)
            rows += controllers.agreement(label, whole, trained, ends, begin)
            rows += controllers.configuration(label, declared, trained)
            if label == "split":
                rows += controllers.split_states(split, trained.updates)
        if gang.get("is_split_alone"):
            made = [_rows(out, "controller_updates", "split") for out in outs]
            rows += controllers.split_states(split, made)
        for label, case in gang["restarts"].items():
            rows += controllers.same_states(
                controllers.RESTART,
                "rehearsed_restart",
                case,
                split,
                [_rows(each, "controller_updates", label) for each in outs],
            )
        for label, of in gang.get("resumed", {}).items():
            rows += _resumed(outs, label, of, begin)
    for table, fields in (("comparisons", "expected"), ("measurements", "unit")):
        entry.write_rows(out, table, [row for row in rows if fields in row])


def _resumed(
    outs: list[Path],
    label: str,
    of: Mapping[str, Any],
    begin: Mapping[str, np.ndarray],
) -> list[Row]:
    """Holds a training that went on against the same one without an interruption.

    XLA cuts sums by the number of devices, so bits are owed only where as many made
    every update.
    """
    case, whole = of["case"], Path(of["out"])
    expected = _rows(whole, "controller_updates", of["label"])
    updates = [_rows(each, "controller_updates", label) for each in outs]
    if of["is_exact"]:
        return controllers.same_states(
            controllers.PARTS,
            "rehearsed_restart",
            case,
            expected,
            updates,
            "the same controllers, not interrupted",
        )
    ends = _state(whole, of["label"]), _state(outs[0], label)
    return controllers.apart_at_the_end(controllers.PARTS, case, ends, begin)


def _trained(outs: list[Path], label: str) -> Trained:
    trainings = [_rows(out, "controller_trainings", label) for out in outs]
    answers = [json.loads((o / "artifacts/answer.json").read_text()) for o in outs]
    return Trained(
        program=label,
        updates=[_rows(out, "controller_updates", label) for out in outs],
        trainings=[rows[0] for rows in trainings if rows],
        arrays=[_rows(out, "controller_arrays", label) for out in outs],
        devices=sum(each["local_device_count"] for each in answers),
    )


def _rows(out: Path, table: str, label: str) -> list[dict[str, Any]]:
    """Returns the rows of one training; none where the controller left none."""
    file = out / "records" / f"{table}.json"
    if not file.exists():
        return []
    return [row for row in json.loads(file.read_text()) if row["label"] == label]


def _state(out: Path, label: str) -> Mapping[str, np.ndarray]:
    file = f"state-{label.replace(' ', '-')}.npz"
    content = (out / "artifacts" / file).read_bytes()
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


if __name__ == "__main__":
    entry.run(main)
