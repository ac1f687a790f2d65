"""Says what the views make of rows that a comparator has returned.

A comparator is shown to fail by what a review would say of its rows, so these rows go
through a store that is really written and through the SQL of the verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.judged import record_of
from tests.store_maker import StoreMaker
from warehouse.contract import Claim, Requirement
from warehouse.load import build_warehouse, needed_for
from warehouse.reading import read_store
from warehouse.store import Store

STAGE = "train_model"
MET, UNMET, MISSING, INVALID = "met", "unmet", "missing", "invalid"


def statuses(
    folder: Path,
    rows: Iterable[Mapping[str, Any]],
    relation: str = "identical",
    limit: float | None = None,
) -> list[str]:
    """Returns what becomes of each row under a made-up requirement of its measure.

    Args:
        folder: Where the store goes.
        rows: Rows of one kind, as plain values.
        relation: Relation that each of them has to keep.
        limit: Limit of the relation, where it has one.
    """
    records = [record_of(row) for row in rows]
    asked = {(each.claim, each.measure, getattr(each, "unit", "")) for each in records}
    claims = [
        Claim(id=claim, statement="Made up.", requirements=(requirement,))
        for claim, measure, unit in asked
        for requirement in [
            Requirement(
                claim=claim,
                stage=STAGE,
                measure=measure,
                relation=relation,
                limit=limit,
                unit=unit,
                cases=(),
                required_count=1,
                presets=(),
                scope="any",
                sampling="",
                reason="made up",
            )
        ]
    ]
    made = StoreMaker(Store(folder / "compared"))
    made.execute(STAGE, records)
    made.run("run-1")
    needed = needed_for(("judged_rows",))
    contents = read_store(made.store.root, None, tables=needed.tables)
    connection = build_warehouse(contents, claims, (), needed)
    try:
        found = connection.execute(
            "select status from judged_rows order by row_number"
        ).fetchall()
    finally:
        connection.close()
    return [status for (status,) in found]
