"""The stage that takes in what a target left, and holds it against the reference.

It runs where the verdicts are made, on a CPU; the target itself ran
`model.programs.qualify_target` and knows nothing of a store. Its execution is about the
runtime of the target.
"""

from pathlib import Path

from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.records.targets import (
    TargetAnswer,
    TargetDevice,
    TargetSign,
    TargetTiming,
)

JUDGE = "model.programs.judge_target"
# What ran on the target runs nowhere else, and is part of the key all the same.
ON_TARGET = ("model.programs.qualify_target", "model.programs.run_target")


@stage(
    programs=(JUDGE, *ON_TARGET),
    writes=(
        *(Measurement, Comparison, TargetAnswer, TargetSign, TargetDevice),
        TargetTiming,
    ),
    not_in_key=("folder",),
)
def qualify_target(
    work: Work,
    folder: str,
    manifest_sha256: str,
    nonce: str,
    code_sha256: str,
    hosts: int,
    released_sha256: str,
) -> None:
    """Judges the result of a target against a reference that is computed here.

    Args:
        work: The working side of this execution.
        folder: Where the result lies.
        manifest_sha256: Digest of its manifest, and through it of every file.
        nonce: What the launcher gave out for this occasion.
        code_sha256: Digest of the code that the launcher demands.
        hosts: Controllers that the accelerator has.
        released_sha256: Digest of the released parameters; empty where none is known.
    """
    request = {
        "folder": folder,
        "nonce": nonce,
        "code_sha256": code_sha256,
        "hosts": hosts,
        "released_sha256": released_sha256,
    }
    work.run(JUDGE, request)
    result = Path(folder)
    work.keep(result / "manifest.json", "target_result.json")
    work.keep(result / "probe" / "observed.json")
    work.keep(result / "executed" / "logits.npz", "target_logits.npz")
