"""Faults of what reads and writes a store: damage, strays, half an execution."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from tests.faults import Fault
from tests.faults.declaring import of_function
from tests.faults.made_stores import STAGE
from tests.faults.planting import swapped
from warehouse.commits import Commit, EvidenceFile
from warehouse.durable import hash_file
from warehouse.evidence import from_parquet
from warehouse.reading import record_classes
from warehouse.schema import arrow_schema

GROUP = "store"
_reading = partial(of_function, GROUP)


def _read_without_hash(original: Any) -> Any:
    def read_file(store: Any, commit: Any, file: Any, shapes: Any) -> Any:
        data = store.evidence_file(commit.nonce, file.table).read_bytes()
        if not shapes.needs(commit, file.table):
            return None
        table = from_parquet(data)
        shapes.check(commit, file, table)
        return table

    del original
    return read_file


def _read_by_pattern(original: Any) -> Any:
    """Reads whatever lies in the folder of an execution."""

    def read_file(store: Any, commit: Any, file: Any, shapes: Any) -> Any:
        table = original(store, commit, file, shapes)
        folder = store.evidence_file(commit.nonce, file.table).parent
        others = [
            from_parquet(path.read_bytes())
            for path in sorted(folder.glob(f"{file.table}.*.parquet"))
        ]
        return pyarrow.concat_tables([table, *others]) if table is not None else None

    return read_file


def _union_by_name(original: Any) -> Any:
    """Fills in null where a file lacks a column."""

    def tables(contents: Any, needed: Any) -> Any:
        for name, found in contents.evidence.items():
            schema = arrow_schema(record_classes()[name])
            for place, table in enumerate(found):
                for field in schema:
                    if field.name not in table.column_names:
                        gap = pyarrow.nulls(table.num_rows, field.type)
                        table = table.append_column(field.name, gap)
                order = ["execution_id", "stage", "row_number", *schema.names]
                found[place] = table.select(order)
        return original(contents, needed)

    return tables


def _drift() -> None:
    swapped("warehouse.shapes.schema_difference", lambda original: lambda *_: "")()
    swapped("warehouse.load._tables", _union_by_name)()


def _unseal_without_digest(original: Any) -> Any:
    def unseal(data: bytes) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(data)
        document.pop("document_sha256", None)
        return document

    del original
    return unseal


def _check_without_rows(original: Any) -> Any:
    def check(self: Any, commit: Any, file: Any, table: Any) -> None:
        original(self, commit, dataclasses.replace(file, rows=table.num_rows), table)

    return check


def _read_uncommitted(original: Any) -> Any:
    """Takes every folder of rows for an execution."""

    def read_commits(store: Any, contents: Any) -> Any:
        yield from original(store, contents)
        known = {path.stem for path in (store.root / "executions").rglob("*.json")}
        for folder in sorted((store.root / "records").glob("*")):
            if folder.name in known:
                continue
            files = tuple(
                EvidenceFile(
                    table=path.stem,
                    sha256=hash_file(path),
                    bytes=path.stat().st_size,
                    rows=pyarrow.parquet.read_metadata(path).num_rows,
                )
                for path in sorted(folder.glob("*.parquet"))
            )
            yield Commit(
                stage=STAGE,
                key="key",
                nonce=folder.name,
                components={},
                artifacts=(),
                files=files,
                reason="",
                started_at="",
                finished_at="",
                committed_at="",
                host="",
            )

    return read_commits


def _shared_file(original: Any) -> Any:
    def evidence_file(self: Any, nonce: str, table: str) -> Path:
        del nonce
        path: Path = self.root / "records" / "shared" / f"{table}.parquet"
        return path

    del original
    return evidence_file


FAULTS = (
    _reading(
        "parquet-damage-undetected",
        *("stored_files", "store"),
        "warehouse.reading._read_file",
        "Evidence is decoded without its digest; a flipped bit is another number.",
        "apache/parquet-java#3069",
        _read_without_hash,
    ),
    _reading(
        "temporary-file-in-glob",
        *("stored_files", "store"),
        "warehouse.reading._read_file",
        "Whatever lies in the folder is read, an unfinished file too.",
        "astronomy-commons/hats-import#634",
        _read_by_pattern,
    ),
    Fault(
        name="schema-drift-null-column",
        group=GROUP,
        summary="A file that lacks a column is read as one that is null in it.",
        source="duckdb/duckdb#16859",
        claim="store",
        replaces="warehouse.shapes.schema_difference",
        scene="stored_files",
        component=_drift,
    ),
    _reading(
        "row-count-not-compared",
        *("stored_files", "store"),
        "warehouse.shapes.Shapes.check",
        "A file with fewer rows than its record promises is read.",
        "neiltron/apple-health-mcp#23",
        _check_without_rows,
    ),
    _reading(
        "commit-record-not-sealed",
        *("stored_files", "store"),
        "warehouse.sealed.unseal",
        "A commit record that was edited by hand is believed.",
        "borgbackup/borg#7670",
        _unseal_without_digest,
    ),
    _reading(
        "rows-without-commit-counted",
        *("stored_files", "store"),
        "warehouse.reading._read_commits",
        "Rows of a stage that was killed before its commit are evidence.",
        "huggingface/transformers#35782",
        _read_uncommitted,
    ),
    _reading(
        "two-writers",
        *("two_writers", "store"),
        "warehouse.store.Store.evidence_file",
        "Two writers share one file of a table; the later replaces the rows.",
        "duckdb/duckdb#9334",
        _shared_file,
    ),
)
