"""Lists the planted faults of the system, for processes that may not import it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from model.faults import Fault, every_fault
from model.programs import entry


def main(request: dict[str, Any], out: Path) -> None:
    """Writes the rows of the faults, and the stages whose checks are run on each.

    Args:
        request: `faults`, names of those that are wanted; empty for all.
        out: Result folder; rows go to `planted_faults`, stages, and programs that are
            left out, to `runs.json`.
    """
    wanted = request["faults"]
    faults = [fault for fault in every_fault() if not wanted or fault.name in wanted]
    entry.write_rows(out, "planted_faults", [_row(fault) for fault in faults])
    runs = {
        fault.name: {"stages": fault.stages, "left_out": fault.left_out}
        for fault in faults
    }
    (out / "runs.json").write_text(json.dumps(runs), "utf-8")


def _row(fault: Fault) -> dict[str, Any]:
    return {
        "fault": fault.name,
        "fault_group": fault.group,
        "summary": fault.summary,
        "source": fault.source,
        "claim": fault.claim,
        "replaces": fault.replaces,
        "is_benign": fault.is_benign,
    }


if __name__ == "__main__":
    entry.run(main)
