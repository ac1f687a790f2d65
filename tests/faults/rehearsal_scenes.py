"""Scenes about a rehearsal on hosts elsewhere, and about a state that lies in parts.

What controllers answer and compute is that of `gang_scenes`; here it stands under the
claims of the two proofs, through the functions that put it there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

from tests.faults import Scene, Stage
from tests.faults.gang_scenes import (
    STAGE,
    answered,
    as_gang,
    record_row,
    updated,
)
from warehouse.records.claims import Comparison, Measurement
from warehouse.schema import record_from

REMOTE = "rehearse_remote"


def hosts_answers(stage: Stage) -> None:
    """Two hosts that answered their launcher."""
    _record(stage, answered(stage))


def hosts_end(stage: Stage) -> None:
    """Two hosts whose controllers ended when one of them was killed."""
    from tasks.gang_endings import FAILED, ending_rows

    home = SimpleNamespace(codes=[17, -9], left=0, failed=1, disturbed=1, updates=1)
    stage.spoil(home)
    updates = [{"event": "update", "process": n} for n in (0, 1)] * home.updates
    gang = as_gang([stage.folder, stage.folder], updates)
    runs = tuple(
        replace(run, return_code=code)
        for run, code in zip(gang.runs, home.codes, strict=True)
    )
    gang = replace(
        gang,
        runs=runs,
        failed=home.failed,
        processes_left=home.left,
        disturbed_at_ns=home.disturbed,
    )
    _record(stage, ending_rows("killed", gang, FAILED, 1))


def _record(stage: Stage, records: Sequence[Any]) -> None:
    """Adds records as those of the proof on hosts, under the claim it gives them."""
    from tasks import rehearse_remote

    for record in records:
        claimed: Any = rehearse_remote._claimed(record)
        stage.record(REMOTE, claimed.TABLE, asdict(claimed))


def hosts_update(stage: Stage) -> None:
    """The update of two hosts beside that of one process."""
    _record(
        stage,
        [
            record_from(Comparison if "expected" in row else Measurement, row)
            for row in updated(stage, "split")
        ],
    )


def parts_update(stage: Stage) -> None:
    """The update of two controllers that hold a state in parts."""
    for row in updated(stage, "sharded"):
        record_row(stage, STAGE, row)


def parts_committed(stage: Stage) -> None:
    """A commit of parts by two controllers, a later one without a mark, a restart."""
    from tasks import rehearse_sharded

    parts = ["a" * 64, "b" * 64]
    home = SimpleNamespace(parts=parts, committed=[4], restored=[4, 4])
    stage.spoil(home)
    folder = stage.folder / "checkpoints"
    for update in (4, 6):
        place = folder / f"update-{update:06d}"
        place.mkdir(parents=True)
        told = {"controllers": {"count": 2, "parts": home.parts}}
        (place / "manifest.json").write_text(json.dumps(told))
        if update in home.committed:
            (place / "COMMITTED").write_text("0" * 64)
    events = [
        {"event": "restored", "update": update, "process": number}
        for number, update in enumerate(home.restored)
    ]
    gang = as_gang([stage.folder, stage.folder], events)
    kept: list[Any] = []
    work: Any = SimpleNamespace(record=kept.append)
    rehearsal: Any = SimpleNamespace(
        plan=SimpleNamespace(cadence=2), gangs=[], run=lambda *asked, **options: gang
    )
    rehearse_sharded._record_commit(work, "same", folder, 4, 2)
    rehearse_sharded._record_uncommitted(work, folder)
    rehearse_sharded._restart(work, rehearsal, "same", 2, folder, 4)
    for row in kept:
        stage.record(STAGE, row.TABLE, asdict(row))


SCENES = tuple(
    Scene(name=play.__name__, play=play)
    for play in (hosts_answers, hosts_end, hosts_update, parts_update, parts_committed)
)
