"""What the contract says of rows that a check has really written.

Verdicts come from the SQL that a review runs, over a store that was really written. Of
a claim only some rows are there, so one that nothing is wrong with reads *not
demonstrated*; an unmet row reads *revise* all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.store_maker import StoreMaker
from warehouse.contract import read_contract
from warehouse.load import build_warehouse, needed_for
from warehouse.reading import read_store
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.refusals import RefusedPair
from warehouse.store import Store

JUDGED = (Measurement, Comparison, Refusal, RefusedPair)
REVISE, OPEN = "revise", "not demonstrated"


def judged_records(
    folder: Path, stage: str, records: Iterable[Any], preset: str = "fixture"
) -> dict[str, str]:
    """Returns the verdict on each claim, by records of one stage alone.

    Args:
        folder: Where the store goes.
        stage: The stage that writes such records.
        records: What it has written; tables that no claim is judged on are left out.
        preset: Preset of the run that the records belong to.
    """
    kept = [row for row in records if isinstance(row, JUDGED)]
    assert kept, "no row, no verdict"
    made = StoreMaker(Store(folder / "judged"))
    made.execute(stage, kept)
    made.run("run-1", preset=preset)
    needed = needed_for(("verdicts",))
    contents = read_store(made.store.root, None, tables=needed.tables)
    connection = build_warehouse(contents, read_contract(), (), needed)
    try:
        found = connection.execute("select claim, verdict from verdicts").fetchall()
    finally:
        connection.close()
    return dict(found)


def judged_rows(
    folder: Path,
    stage: str,
    rows: Iterable[Mapping[str, Any]],
    preset: str = "fixture",
) -> dict[str, str]:
    """Returns the verdict on each claim, by rows of checks of one stage alone."""
    return judged_records(folder, stage, [record_of(row) for row in rows], preset)


def verdict(
    folder: Path,
    stage: str,
    rows: Iterable[Mapping[str, Any]],
    preset: str = "fixture",
) -> str:
    """Returns the verdict on the one claim that rows of a check are about."""
    records = [record_of(row) for row in rows]
    (claim,) = {record.claim for record in records}
    return judged_records(folder, stage, records, preset)[claim]


def record_of(row: Mapping[str, Any]) -> Any:
    """Returns the record that a row of a check is, by the fields it has."""
    if "first_change" in row:
        return RefusedPair(**row)
    if "expected_reason" in row:
        return Refusal(**row)
    return Comparison(**row) if "expected" in row else Measurement(**row)
