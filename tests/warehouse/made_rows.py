"""Rows of one claim, and evidence files that no program of ours would have written."""

import hashlib
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.sealed import seal, unseal

REVISE, OPEN = "revise", "not demonstrated"
UNDRILLED, ACCEPT = "accept (undrilled)", "accept"
REAL, WHOLE, TEXT = pyarrow.float64(), pyarrow.int64(), pyarrow.string()


def number(value: float | None, case: str = "", **changes: Any) -> Measurement:
    fields: dict[str, Any] = {"claim": "1.1", "measure": "errors", "unit": "errors"}
    if value is None:
        fields["reason"] = "not_measured"
    elif isinstance(value, int):
        fields["value_count"] = value
    else:
        fields["value_real"] = value
    return Measurement(**{**fields, "case_name": case, **changes})


def comparison(expected: str, measured: str, **changes: Any) -> Comparison:
    fields = {"claim": "1.1", "measure": "errors", "expected_from": "reference"}
    return Comparison(
        **{**fields, "expected": expected, "measured": measured, **changes}
    )


def refusal(expected: str, received: str | None) -> Refusal:
    return Refusal(
        claim="1.1",
        measure="errors",
        expected_reason=expected,
        received_reason=received,
        message="",
    )


def verdict_of(connection: Any, claim: str = "1.1") -> str:
    found = connection.execute("select verdict from verdicts where claim = ?", [claim])
    ((verdict,),) = found.fetchall()
    return verdict


def rewrite(made: Any, execution: Any, table: str, change: Any) -> None:
    """Puts another Parquet file into a store and makes its commit record fit."""
    path: Path = made.store.evidence_file(execution.nonce, table)
    rows = pyarrow.parquet.read_table(path)
    changed = change(rows)
    pyarrow.parquet.write_table(changed, path)
    commit = next((made.store.root / "executions").rglob(f"{execution.nonce}.json"))
    document = unseal(commit.read_bytes())
    for file in document["files"]:
        if file["table"] == table:
            data = path.read_bytes()
            file["sha256"] = hashlib.sha256(data).hexdigest()
            file["bytes"], file["rows"] = len(data), changed.num_rows
    commit.write_bytes(seal(document))


def with_value(name: str, value: Any, kind: Any) -> Any:
    def change(rows: pyarrow.Table) -> pyarrow.Table:
        place = rows.schema.get_field_index(name)
        column = pyarrow.array([value] * rows.num_rows, kind)
        return rows.set_column(place, pyarrow.field(name, kind), column)

    return change
