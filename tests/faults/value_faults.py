"""Faults of formats and libraries: what is read is not what was written."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet

from tests.faults.declaring import of_function, of_view
from warehouse.schema import arrow_schema, columns

GROUP = "store"
DAY = "cast(cast(started_at as timestamptz) as date)"
_value = partial(of_function, GROUP)


def _unchecked(record_class: type, records: Any) -> None:
    """Lets every value pass."""


def _table_through_pandas(original: Any) -> Any:
    """Reads NaN as null, as a data frame on the way would."""

    def to_table(record_class: type, records: Any) -> pyarrow.Table:
        schema = arrow_schema(record_class)
        arrays = [
            pyarrow.array(
                [getattr(record, column.name) for record in records],
                schema.field(column.name).type,
                from_pandas=True,
            )
            for column in columns(record_class)
        ]
        return pyarrow.Table.from_arrays(arrays, schema=schema)

    del original
    return to_table


def _with_columns(change: Callable[[pyarrow.Field, list[Any]], list[Any]]) -> Any:
    """Returns a faulty `to_table` that changes the values of each column."""

    def make(original: Callable[[type, Any], pyarrow.Table]) -> Any:
        def to_table(record_class: type, records: Any) -> pyarrow.Table:
            table = original(record_class, records)
            arrays = [
                pyarrow.array(change(field, table[field.name].to_pylist()), field.type)
                for field in table.schema
            ]
            return pyarrow.Table.from_arrays(arrays, schema=table.schema)

        return to_table

    return make


def _through_float(field: pyarrow.Field, values: list[Any]) -> list[Any]:
    if field.type != pyarrow.int64() or None not in values:
        return values
    return [None if value is None else int(float(value)) for value in values]


def _through_float32(field: pyarrow.Field, values: list[Any]) -> list[Any]:
    if field.type != pyarrow.float64():
        return values
    return [None if value is None else float(np.float32(value)) for value in values]


def _inferred(original: Any) -> Any:
    """Writes rows as text and takes the types that a reader infers."""

    def to_parquet(record_class: type, records: Any) -> bytes:
        table = pyarrow.parquet.read_table(
            pyarrow.BufferReader(original(record_class, records))
        )
        text = io.BytesIO()
        pyarrow.csv.write_csv(table, text)
        inferred = pyarrow.csv.read_csv(pyarrow.BufferReader(text.getvalue()))
        sink = io.BytesIO()
        pyarrow.parquet.write_table(inferred, sink)
        return sink.getvalue()

    return to_parquet


def _rows_twice(original: Any) -> Any:
    def encoded(records: Any) -> Any:
        return original([*records, *records])

    return encoded


FAULTS = (
    _value(
        "nan-becomes-null-through-pandas",
        *("stored_values", "store"),
        "warehouse.evidence.to_table",
        "A value that is no number is written as one that was not measured.",
        "duckdb/duckdb#15379",
        _table_through_pandas,
    ),
    _value(
        "nan-written-as-a-number",
        *("stored_values", "store"),
        "warehouse.schema.check_records",
        "NaN is written into a column of numbers.",
        "duckdb/duckdb#7541",
        lambda original: _unchecked,
    ),
    _value(
        "nullable-integer-through-float",
        *("stored_values", "store"),
        "warehouse.evidence.to_table",
        "A column of integers with a gap goes through float64: 2^53 + 1 is 2^53.",
        "pandas-dev/pandas#44684",
        _with_columns(_through_float),
    ),
    _value(
        "float32-evidence-column",
        *("stored_values", "store"),
        "warehouse.evidence.to_table",
        "Real numbers are stored as float32: 0.1 comes back as 0.10000000149.",
        "apache/arrow#12416",
        _with_columns(_through_float32),
    ),
    _value(
        "hash-column-inferred-numeric",
        *("stored_values", "store"),
        "warehouse.evidence.to_parquet",
        "Types are inferred from text: a digest such as 12e45678 is a number.",
        "duckdb/duckdb#8649",
        _inferred,
    ),
    _value(
        "duplicate-run-rows",
        *("stored_values", "store"),
        "warehouse.store._encoded",
        "Rows are appended again by a retry.",
        "aws/aws-sdk-pandas#1043",
        _rows_twice,
    ),
    of_view(
        GROUP,
        "session-zone-changes-day",
        *("time_zones", "store"),
        "run_days",
        "The day of a run is that of the session's time zone.",
        "duckdb/duckdb#15192",
        ("left(started_at, 10) as run_date", f"{DAY} as run_date"),
        ("group by left(started_at, 10)", f"group by {DAY}"),
    ),
)
