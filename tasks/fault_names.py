"""The names of the planted faults, for those who may not import them."""

import json
from pathlib import Path

from tasks import drill_store, drill_system
from tasks.run_program import ProgramCall, run_program
from tasks.temporary_folders import temporary_folder


def fault_names() -> dict[str, list[str]]:
    """Returns the faults by the stage that plants them, as their programs list them."""
    names = {"drill_system": _listed(drill_system.LIST)}
    if drill_store.is_there():
        names["drill_store"] = _listed(drill_store.PROGRAM)
    return names


def _listed(program: str) -> list[str]:
    request = {"faults": [], "is_listing": True}
    with temporary_folder("faults") as folder:
        run = run_program(
            ProgramCall(
                program=program,
                request=request,
                folder=folder,
                # Whichever folder these are imported from, tests lie beside tasks.
                module_root=drill_store.folder_of_tests(),
            )
        )
        rows = json.loads(Path(run.out, "records", "planted_faults.json").read_bytes())
    return [row["fault"] for row in rows]
