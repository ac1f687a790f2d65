"""Made-up stores for scenes: rules, rows, and what the views say of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tasks.errors import StageError
from tests.store_maker import StoreMaker
from warehouse.contract import Claim, Requirement
from warehouse.errors import WarehouseError
from warehouse.load import build_warehouse, needed_for
from warehouse.reading import read_store
from warehouse.records.claims import Measurement
from warehouse.store import Store

STAGE, KEY = "train_model", "key"


def new_store(folder: Path, name: str = "evidence") -> StoreMaker:
    """Returns a maker of executions and runs in an empty store."""
    return StoreMaker(Store(folder / name))


def rule(claim: str, **changes: Any) -> Claim:
    """Returns a claim of one requirement: `errors` have to be 0, but for changes."""
    fields: dict[str, Any] = {
        "claim": claim,
        "stage": STAGE,
        "measure": "errors",
        "relation": "equal",
        "limit": 0,
        "unit": "errors",
        "cases": (),
        "required_count": 1,
        "presets": (),
        "scope": "any",
        "sampling": "",
        "reason": "made up",
    }
    requirement = Requirement(**{**fields, **changes})
    return Claim(id=claim, statement="Made up.", requirements=(requirement,))


def number(value: float | None, claim: str = "1.1", **changes: Any) -> Measurement:
    """Returns a measurement of `errors`; an integer is a count."""
    fields: dict[str, Any] = {"claim": claim, "measure": "errors", "unit": "errors"}
    if value is None:
        fields["reason"] = "not_measured"
    else:
        name = "value_count" if isinstance(value, int) else "value_real"
        fields[name] = value
    return Measurement(**{**fields, **changes})


def asked(
    root: Path,
    claims: Sequence[Claim],
    *queries: tuple[str, str],
    run: str | None = None,
    against: str | None = None,
    zone: str = "UTC",
) -> list[list[Any]]:
    """Returns what views answer, a list of rows for each query.

    Args:
        root: Folder of the store.
        claims: The contract.
        queries: View and what is selected of it.
        run: The selected run.
        against: The run it is compared with.
        zone: Time zone of the session.
    """
    needed = needed_for([view for view, _ in queries])
    contents = read_store(root, run, tables=needed.tables, against=against)
    connection = build_warehouse(contents, claims, (), needed)
    try:
        connection.execute(f"set TimeZone = '{zone}'")
        return [
            connection.execute(f"select {what} from {view} order by all").fetchall()
            for view, what in queries
        ]
    finally:
        connection.close()


def verdicts(root: Path, claims: Sequence[Claim], **chosen: Any) -> dict[str, str]:
    """Returns the verdict on each claim."""
    (found,) = asked(root, claims, ("verdicts", "claim, verdict"), **chosen)
    return dict(found)


def told(attempt: Callable[[], object]) -> str:
    """Returns what an attempt came to: its answer, or the name of the error."""
    try:
        return str(attempt())
    except (WarehouseError, StageError, TypeError) as error:
        return type(error).__name__
