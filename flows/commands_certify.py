"""`harness certify`: a long proof from the command line, and what came of it."""

from typing import Annotated, Literal

from cyclopts import Parameter

from flows.commands_run import Fresh, Manifest, Preset, Settings, start_flow
from flows.options import DEFAULT_ROOT, Json, Root
from flows.proof_results import show_proof
from model.presets import certifiable


def certify(
    proof: Annotated[
        Literal["recovery", "crash"],
        Parameter(
            help="recovery: every interruption point of two epochs, bad checkpoints, "
            "planted faults; crash: every step of a checkpoint write."
        ),
    ],
    /,
    *,
    preset_name: Preset = "fixture",
    manifest: Manifest = None,
    settings: Settings = (),
    fresh: Fresh = False,
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Make a long proof about the system of `harness run` with the same settings.

    Exit code 1: the proof failed.
    """
    overrides = list(settings)
    config = certifiable(preset_name, overrides)
    run_id = start_flow(
        "certify",
        root,
        manifest,
        config.model,
        overrides=overrides,
        proof=proof,
        preset_name=preset_name,
        is_fresh=fresh,
    )
    from flows.proofs import PROOFS

    stages = [part.stage.definition.name for part in PROOFS[proof]]
    return show_proof(root, run_id, stages, is_json=is_json)
