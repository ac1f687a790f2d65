"""What was read from a store, before DuckDB gets it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pyarrow

from warehouse import ledger
from warehouse.store import Store


@dataclasses.dataclass(kw_only=True)
class Contents:
    """Everything that was read from a store."""

    evidence: dict[str, list[pyarrow.Table]] = dataclasses.field(default_factory=dict)
    """Tables of intact executions, by name, each with its execution's columns."""
    rows: dict[type, list[Any]] = dataclasses.field(default_factory=dict)
    """Rows of the ledger, by class."""

    def add(self, *rows: Any) -> None:
        """Adds rows of the ledger."""
        for row in rows:
            self.rows.setdefault(type(row), []).append(row)


def note(contents: Contents, store: Store, path: Path, kind: str, problem: str) -> None:
    """Adds the damage of a record file to the contents.

    Args:
        contents: what was read so far.
        store: the store that holds the file.
        path: the file.
        kind: "commit", "run" or "baseline".
        problem: what is wrong with it.
    """
    contents.add(
        ledger.Damage(
            path=str(path.relative_to(store.root)),
            kind=f"{kind} record",
            problem=problem,
            stage=path.parts[-3] if kind == "commit" else "",
            execution_id=path.stem if kind == "commit" else "",
            run_id=path.parent.name if kind == "run" else "",
        )
    )
