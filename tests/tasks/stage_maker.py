"""Stages for real without an orchestrator: executions, their files and their rows."""

import shutil
from pathlib import Path
from typing import Any

from flows.runtime_fingerprint import runtime_fingerprint
from tasks.stage import StageTask
from tasks.work import Work
from warehouse.contract import read_contract
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.store import Execution, Store


class StageMaker:
    """Executes stages into a store, and keeps the rows of each."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "evidence")
        self.folder = folder
        self.rows: dict[str, list[Any]] = {}

    def work(self, task: StageTask, name: str) -> Work:
        """Returns the work of a stage, in a new folder of that name."""
        folder = self.folder / name
        folder.mkdir()
        return Work(task.definition, self.store, runtime_fingerprint(), folder)

    def execute(self, task: StageTask, **inputs: object) -> Execution:
        """Executes a stage and commits what it made."""
        name = task.definition.name
        work = self.work(task, name)
        task.body(work, **inputs)
        self.rows[name] = work.records
        return self.store.commit(
            stage=name,
            key="0" * 64,
            components={},
            artifacts=work.store_artifacts(),
            records=work.records,
            reason="test",
            started_at="2026-01-01T00:00:00.000000Z",
            finished_at="2026-01-01T00:00:00.000000Z",
            host="test",
        )


def of(rows: list[Any], record: type, **fields: object) -> list[Any]:
    """Returns the rows of one record with these values."""
    return [
        row
        for row in rows
        if isinstance(row, record)
        and all(getattr(row, name) == value for name, value in fields.items())
    ]


def asked_and_found(stage: str, rows: list[Any]) -> tuple[set, set]:
    """Returns claims and measures that a stage owes, and those that it wrote."""
    asked = {
        (item.claim, item.measure)
        for claim in read_contract()
        for item in claim.requirements
        # What SQL recounts is not among the rows of a stage.
        if item.stage == stage and not item.measure.startswith("recounted_")
    }
    judged = (Measurement, Comparison, Refusal)
    return asked, {(r.claim, r.measure) for r in rows if isinstance(r, judged)}


def change_model(
    project: Path, folder: Path, module: str, right: str, wrong: str
) -> None:
    """Copies the model with one planted defect, for programs to run from."""
    shutil.copytree(project / "model", folder / "model")
    source = folder / "model" / module
    text = source.read_text()
    assert right in text
    source.write_text(text.replace(right, wrong))
