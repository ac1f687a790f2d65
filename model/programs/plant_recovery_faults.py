"""Restores one checkpoint again and again, each time with one planted fault.

One process is enough: the faults are put into what a restore returned, and the
comparison knows only the trace of the uninterrupted training.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model import checkpoint
from model.checks import negative_controls, recovery
from model.checks.negative_controls import CONTROLS, UNPLANTED, Made, Restored
from model.checks.rows import Row
from model.programs import entry
from model.training_loop import run_updates
from model.training_request import TrainingRequest, read_request, training_identity
from model.update_trace import trace_update


def main(request: dict[str, Any], out: Path) -> None:
    """Writes negative controls and the measurements of claim 2.5.

    Args:
        request: A training request with `restore_folder` and `stop_after_update`, and
            `expected`, the path of the uninterrupted trace.
        out: Result folder.
    """
    training = read_request(request)
    assert training.restore_folder is not None, "a control starts from a checkpoint"
    trace = recovery.read_trace(Path(request["expected"]))
    latest = checkpoint.latest_checkpoint(training.restore_folder)
    state, progress = checkpoint.load_checkpoint(
        latest, training.model, training_identity(training)
    )
    restored = Restored(state=state, progress=progress, train=training.train)

    true = _go_on(training, restored)
    made = {name: _go_on(training, plant(restored)) for name, plant in CONTROLS.items()}

    controls: list[Row] = []
    measurements: list[Row] = []
    for name, updates in {UNPLANTED: true, **made}.items():
        rows = negative_controls.control_rows(name, trace, true, updates)
        controls += rows
        measurements += negative_controls.measurements(rows)
    entry.write_rows(out, "negative_controls", controls)
    entry.write_rows(out, "measurements", measurements)


def _go_on(training: TrainingRequest, restored: Restored) -> list[Made]:
    ids = training.corpus.document_ids["train"]
    updates = run_updates(
        restored.state,
        restored.progress,
        training.corpus.tokens["train"],
        training.model,
        restored.train,
        training.final_update,
    )
    return [
        Made(completed=completed, line=trace_update(completed, ids, restored.train))
        for completed in updates
    ]


if __name__ == "__main__":
    entry.run(main)
