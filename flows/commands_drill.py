"""`harness drill`: planted faults from the command line, and who noticed each."""

from typing import Annotated

from cyclopts import Parameter

from flows.commands_run import Fresh, Manifest, Preset, Settings, start_flow
from flows.display import note
from flows.drill_results import show_drill
from flows.options import DEFAULT_ROOT, Json, Root
from model.limits import require
from model.presets import drillable


def drill(
    *,
    fault: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            consume_multiple=True,
            show_default=False,
            help="Only these planted faults, by name; else all, a restore's too.",
        ),
    ] = (),
    accept: Annotated[
        bool,
        Parameter(
            negative=(),
            show_default=False,
            help="Write what the drill measured into the contract's calibration table.",
        ),
    ] = False,
    preset_name: Preset = "fixture",
    manifest: Manifest = None,
    settings: Settings = (),
    fresh: Fresh = False,
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Plant faults into the system, the store and a restore; show who noticed each.

    Exit code 1: a fault survived, or a variant that is no fault was accused.
    """
    overrides = list(settings)
    config = drillable(preset_name, overrides)
    require(
        not (accept and fault),
        "--accept stands beside --fault",
        "a drill of all faults, because the table is about every check",
    )
    if fault:
        _check_names(fault)
    run_id = start_flow(
        "drill",
        root,
        manifest,
        config.model,
        overrides=overrides,
        preset_name=preset_name,
        is_fresh=fresh,
        faults=",".join(fault),
    )
    if accept:
        from flows.calibration import accept_drill

        note(accept_drill(root, run_id))
    return show_drill(root, run_id, is_whole=not fault, is_json=is_json)


def _check_names(names: tuple[str, ...]) -> None:
    """Refuses a name that is no fault's before anything is started."""
    from flows.reading import check_known
    from tasks.fault_names import fault_names

    known = [name for some in fault_names().values() for name in some]
    for name in names:
        check_known("The fault", name, known)
