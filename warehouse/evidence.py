"""Rows to Parquet and back; equal rows give equal bytes.

Parquet does not notice damage, and no reader of it does reliably, so a file is read
once, its bytes are hashed, and the same bytes are decoded. Nothing else opens it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow
import pyarrow.parquet

from warehouse.errors import RecordError
from warehouse.schema import arrow_schema, check_records, columns


def to_table(record_class: type, records: Sequence[Any]) -> pyarrow.Table:
    """Returns some records of one class as an Arrow table.

    Raises:
        RecordError: a value does not keep what the class declares.
    """
    check_records(record_class, records)
    schema = arrow_schema(record_class)
    arrays = [
        pyarrow.array(
            [getattr(record, column.name) for record in records],
            schema.field(column.name).type,
        )
        for column in columns(record_class)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def to_parquet(record_class: type, records: Sequence[Any]) -> bytes:
    """Returns the Parquet file of some records of one class, as bytes.

    Raises:
        RecordError: a value does not keep what the class declares.
    """
    sink = io.BytesIO()
    table = to_table(record_class, records)
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def from_parquet(data: bytes) -> pyarrow.Table:
    """Returns the table that some verified bytes hold.

    Raises:
        RecordError: the bytes are no Parquet file.
    """
    try:
        # Not read_table: its data set machinery costs more than the file itself.
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data))
        return file.read(use_threads=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise RecordError(f"The bytes are not a Parquet file: {error}.") from error


def schema_difference(record_class: type, table: pyarrow.Table) -> str:
    """Returns how names and types part from the class, or "" when they are the same.

    Whether a column may be null is not compared: a null where none is allowed has to
    reach the view `invalid_values`, which makes the review fail.
    """
    declared = {field.name: field.type for field in arrow_schema(record_class)}
    found = {field.name: field.type for field in table.schema}
    if declared == found:
        return ""
    parts = sorted(
        name
        for name in declared.keys() | found.keys()
        if declared.get(name) != found.get(name)
    )
    return f"columns {parts} are not as {record_class.__name__} declares them"
