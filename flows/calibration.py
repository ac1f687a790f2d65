"""Takes what a drill measured about the checks into the contract.

The rows come from the evidence of the drill; the digest of each stage's source, by
which a verdict knows that a row is about the same checks, comes from the source that
the drill has just run.
"""

from pathlib import Path

from flows.proofs import proof_stages
from flows.qualify import STAGES
from flows.reading import open_run, view_rows
from model.presets import tried
from tasks.source_closure import source_closure
from warehouse.calibration import FILE, calibrated, write_calibration
from warehouse.contract import read_contract
from warehouse.errors import ContractError


def stage_sources() -> dict[str, str]:
    """Returns the digest of the source of every stage that a claim is judged on."""
    definitions = [stage.definition for stage in (*STAGES, *proof_stages())]
    return {
        each.name: source_closure(each.module, *each.programs).sha256
        for each in definitions
    }


def accept_drill(root: Path, run_id: str) -> str:
    """Writes the calibration table of the contract; returns what was written.

    Args:
        root: Folder of the store.
        run_id: The run of a whole drill.

    Raises:
        ContractError: It has no row that could be written.
    """
    connection = open_run(root, run_id)
    measured = view_rows(connection, "limit_calibration")
    rows = calibrated(measured, read_contract(), stage_sources(), tried().preset)
    if not rows:
        raise ContractError(
            f"Run {run_id} shows no limit that a fault was beyond; the calibration "
            "stays as it is. Drill again: harness drill --fresh --accept"
        )
    write_calibration(rows)
    claims = len({row.claim for row in rows})
    return f"{len(rows)} limits of {claims} claims are calibrated in {FILE.name}."
