"""The stage that takes in what a target left, and holds it against the reference.

It runs where the verdicts are made, on a CPU; the one host of a target ran
`model.programs.qualify_target`, all hosts of a slice `qualify_controller`, and neither
knows anything of a store. Its execution is about the runtime of the target.
"""

import json
from pathlib import Path
from typing import Any

from model.config import ModelConfig, TrainConfig, to_dict
from model.target_result import MANIFEST, logits_files, observed_files
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.records.targets import (
    TargetAccelerator,
    TargetAnswer,
    TargetDevice,
    TargetSign,
    TargetTiming,
)

JUDGE = "model.programs.judge_target"
# What ran on the target runs nowhere else, and is part of the key all the same.
ON_TARGET = (
    "model.programs.qualify_target",
    "model.programs.run_endpoints",
    "model.programs.run_target",
    "model.programs.qualify_controller",
)


@stage(
    programs=(JUDGE, *ON_TARGET),
    writes=(
        *(Measurement, Comparison, TargetAnswer, TargetSign, TargetDevice),
        *(TargetAccelerator, TargetTiming),
    ),
    not_in_key=("folder",),
)
def qualify_target(
    work: Work,
    folder: str,
    manifest_sha256: str,
    model: ModelConfig,
    train: TrainConfig,
    nonce: str,
    code_sha256: str,
    accelerator: dict[str, Any],
    released_sha256: str,
) -> None:
    """Judges the result of a target against a reference that is computed here.

    Args:
        work: The working side of this execution.
        folder: Where the result lies.
        manifest_sha256: Digest of its manifest, and through it of every file.
        model: Shape of the model that was asked for.
        train: Recipe that was asked for.
        nonce: What the launcher gave out for this occasion.
        code_sha256: Digest of the code that the launcher demands.
        accelerator: What was asked for: its hosts, devices, and what they are.
        released_sha256: Digest of the released parameters; empty where none is known.
    """
    request = {
        "folder": folder,
        "model": to_dict(model),
        "train": to_dict(train),
        "nonce": nonce,
        "code_sha256": code_sha256,
        "accelerator": accelerator,
        "released_sha256": released_sha256,
    }
    work.run(JUDGE, request)
    manifest = json.loads((Path(folder) / MANIFEST).read_bytes())
    result = Path(folder)
    work.keep(result / MANIFEST, "target_result.json")
    for file in [*observed_files(manifest), *logits_files(manifest)]:
        # a controller that left none is one that the judge found silent
        if (result / file).is_file():
            work.keep(result / file, kept_as(file))


def kept_as(file: str) -> str:
    """Returns the name of an artifact by that of a file of a result."""
    *place, name = [part for part in Path(file).parts if part != "artifacts"]
    return "-".join([*place, name])
