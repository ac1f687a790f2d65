"""`harness drill`: planted faults from the command line, and how each was found."""

from flows.commands_run import Fresh, Manifest, Preset, Settings, start_flow
from flows.options import DEFAULT_ROOT, Json, Root
from flows.proof_results import show_proof
from model.presets import drillable


def drill(
    *,
    preset_name: Preset = "fixture",
    manifest: Manifest = None,
    settings: Settings = (),
    fresh: Fresh = False,
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Plant faults into a restored training, and show where each was found.

    The losses beside say how plausible each fault looked. Exit code 1: a fault was not
    found, or one was found where none was planted.
    """
    overrides = list(settings)
    config = drillable(preset_name, overrides)
    run_id = start_flow(
        "drill",
        root,
        manifest,
        config.model,
        overrides=overrides,
        preset_name=preset_name,
        is_fresh=fresh,
    )
    from flows.proofs import DRILLS

    stages = [proof.stage.definition.name for proof in DRILLS]
    return show_proof(root, run_id, stages, is_json=is_json)
