"""Tries every fault of store, workflow and target; writes what noticed them.

    python -m tests.faults REQUEST.json

The request names `out`, the result folder, and may name `faults`, a list of names;
where it says `is_listing`, the faults are listed and nothing is played.
Rows of `planted_faults` and of `drilled_requirements` come out, the latter with an
empty fault for scenes in which nothing was planted.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from model.programs import entry
from model.refusal import ReasonCode, Refused
from tests.faults import Fault, every_fault, every_scene
from tests.faults.apart import play_all
from tests.faults.judging import as_row, judged, planted


def main(request: dict[str, Any], out: Path) -> None:
    """Plays every scene with and without its faults.

    Args:
        request: Optional `faults`, the names of those that are wanted.
        out: Result folder.

    Raises:
        Refused: `request_malformed` for an unknown fault.
    """
    faults = _wanted(request.get("faults"))
    entry.write_rows(out, "planted_faults", [as_row(planted(each)) for each in faults])
    if request.get("is_listing"):
        return
    scenes = every_scene()
    used = dict.fromkeys(fault.scene for fault in faults)
    plays: list[tuple[Any, Fault | None]] = [(scenes[name], None) for name in used]
    plays += [(scenes[fault.scene], fault) for fault in faults]
    with tempfile.TemporaryDirectory() as folder:
        played = play_all(plays, Path(folder))
        rows = judged(played, Path(folder))
    entry.write_rows(out, "drilled_requirements", [as_row(row) for row in rows])


def _wanted(names: list[str] | None) -> tuple[Fault, ...]:
    known = {fault.name: fault for fault in every_fault()}
    unknown = sorted(set(names or ()) - known.keys())
    if unknown:
        raise Refused(
            ReasonCode.REQUEST_MALFORMED,
            f"the faults {unknown} are unknown; known: {', '.join(known)}.",
        )
    return tuple(known[name] for name in names or known)


if __name__ == "__main__":
    entry.run(main)
