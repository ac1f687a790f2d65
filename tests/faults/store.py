"""Faults of the evidence store and of the SQL that judges what is in it."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet

from tests.faults import NO_REPORT, Fault
from tests.faults.made_stores import STAGE
from tests.faults.planting import rewritten, swapped
from tests.faults.store_scenes import SCENES as SCENES
from tests.store_maker import StoreMaker
from tests.warehouse.damaged import flip
from tests.warehouse.made_rows import REAL, rewrite, with_value

GROUP = "store"


def _verdict(name: str, view: str, summary: str, source: str, *changes: Any) -> Fault:
    return Fault(
        name=name,
        group=GROUP,
        summary=summary,
        source=source,
        claim="verdict",
        replaces=f"warehouse/views/review/{view}.sql",
        scene="made_rows",
        component=rewritten(view, *changes),
    )


VERDICTS = (
    _verdict(
        "verdict-ignores-null",
        "judged_evidence",
        "A measurement that is null counts as met.",
        "duckdb/duckdb-python#257",
        ("when value_count is null and value_real is null then 'missing'", ""),
        (
            "when coalesce(is_met, false) then 'met'",
            "when coalesce(is_met, true) then 'met'",
        ),
    ),
    _verdict(
        "verdict-over-empty-join",
        "subject_verdicts",
        "A claim without any row has no unmet row and is accepted.",
        "CovertLab/vEcoli#318",
        ("when counted.rows_missing > 0 then 'not demonstrated'", ""),
        ("when coalesce(counted.rows_met, 0) = 0 then 'not demonstrated'", ""),
    ),
    _verdict(
        "required-cases-not-counted",
        "absent_rows",
        "One row answers for every case that the contract lists.",
        NO_REPORT,
        ("where counted.found_rows < counted.required_count", "where false"),
    ),
    _verdict(
        "unlisted-cases-dropped",
        "matched_rows",
        "A row of a case that nobody listed is judged by no requirement.",
        NO_REPORT,
        ("or not bool_or(is_own_case)", "and bool_or(is_own_case)"),
    ),
    _verdict(
        "unit-not-compared",
        "judged_evidence",
        "A count of tokens is held against a limit on errors.",
        "microsoft/perfview#2013",
        ("when not is_same_unit then 'invalid'", ""),
    ),
    _verdict(
        "integer-compared-as-double",
        "matched_rows",
        "Integers become doubles before they are compared: 2^53 + 1 is 2^53.",
        "pandas-dev/pandas#56678",
        ("evidence.value_count is not null\n                and", "false and"),
    ),
    _verdict(
        "missing-on-both-sides-equal",
        "judged_evidence",
        "Two digests that are both missing are the same digest.",
        NO_REPORT,
        (
            "when coalesce(expected, '') = '' and coalesce(measured, '') = ''\n"
            "                then 'missing'",
            "",
        ),
        ("when coalesce(expected, '') = '' then 'invalid'", ""),
        (
            "when evidence_kind = 'comparison' and coalesce(measured, '') = ''\n"
            "                then 'invalid'",
            "",
        ),
    ),
    _verdict(
        "refusal-that-did-not-come",
        "judged_evidence",
        "An input that nobody refused passes as refused.",
        NO_REPORT,
        (
            "when 'refused' then coalesce(expected = measured, false)",
            "when 'refused' then coalesce(expected = measured, true)",
        ),
    ),
)


def _no_invalid_columns(original: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda filled: original(())


def _unchecked(record_class: type, records: Any) -> None:
    """Lets every value pass."""


def _table_through_pandas(original: Any) -> Any:
    """Reads NaN as null, as a data frame on the way would."""
    from warehouse.schema import arrow_schema, columns

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


def _values(name: str, replaces: str, summary: str, source: str, make: Any) -> Fault:
    return Fault(
        name=name,
        group=GROUP,
        summary=summary,
        source=source,
        claim="store",
        replaces=replaces,
        scene="stored_values",
        component=swapped(replaces, make),
    )


VALUES = (
    _values(
        "nan-becomes-null-through-pandas",
        "warehouse.evidence.to_table",
        "A value that is no number is written as one that was not measured.",
        "duckdb/duckdb#15379",
        _table_through_pandas,
    ),
    _values(
        "nan-written-as-a-number",
        "warehouse.schema.check_records",
        "NaN is written into a column of numbers.",
        "duckdb/duckdb#7541",
        lambda original: _unchecked,
    ),
    _values(
        "nullable-integer-through-float",
        "warehouse.evidence.to_table",
        "A column of integers with a gap goes through float64: 2^53 + 1 is 2^53.",
        "pandas-dev/pandas#44684",
        _with_columns(_through_float),
    ),
    _values(
        "float32-evidence-column",
        "warehouse.evidence.to_table",
        "Real numbers are stored as float32: 0.1 comes back as 0.10000000149.",
        "apache/arrow#12416",
        _with_columns(_through_float32),
    ),
    _values(
        "hash-column-inferred-numeric",
        "warehouse.evidence.to_parquet",
        "Types are inferred from text: a digest such as 12e45678 is a number.",
        "duckdb/duckdb#8649",
        _inferred,
    ),
    _values(
        "duplicate-run-rows",
        "warehouse.store._encoded",
        "Rows are appended again by a retry.",
        "aws/aws-sdk-pandas#1043",
        _rows_twice,
    ),
    dataclasses.replace(
        _verdict(
            "nan-in-unjudged-column",
            "invalid_values",
            "A NaN in a column that no claim measures is nobody's business.",
            "duckdb/duckdb#3292",
        ),
        replaces="warehouse.load._invalid_values_sql",
        component=swapped("warehouse.load._invalid_values_sql", _no_invalid_columns),
    ),
)


def _read_without_hash(original: Any) -> Any:
    from warehouse.evidence import from_parquet

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
    from warehouse.evidence import from_parquet

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
        from warehouse.reading import record_classes
        from warehouse.schema import arrow_schema

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
    from warehouse.commits import Commit, EvidenceFile

    def read_commits(store: Any, contents: Any) -> Any:
        yield from original(store, contents)
        known = {path.stem for path in (store.root / "executions").rglob("*.json")}
        for folder in sorted((store.root / "records").glob("*")):
            if folder.name in known:
                continue
            files = tuple(
                EvidenceFile(
                    table=path.stem,
                    sha256=_sha256(path),
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


def _sha256(path: Path) -> str:
    from warehouse.durable import hash_file

    return hash_file(path)


def _reading(
    name: str, replaces: str, summary: str, source: str, component: Any
) -> Fault:
    return Fault(
        name=name,
        group=GROUP,
        summary=summary,
        source=source,
        claim="store",
        replaces=replaces,
        scene="stored_files",
        component=component,
    )


READING = (
    _reading(
        "parquet-damage-undetected",
        "warehouse.reading._read_file",
        "Evidence is decoded without its digest; a flipped bit is another number.",
        "apache/parquet-java#3069",
        swapped("warehouse.reading._read_file", _read_without_hash),
    ),
    _reading(
        "temporary-file-in-glob",
        "warehouse.reading._read_file",
        "Whatever lies in the folder is read, an unfinished file too.",
        "astronomy-commons/hats-import#634",
        swapped("warehouse.reading._read_file", _read_by_pattern),
    ),
    _reading(
        "schema-drift-null-column",
        "warehouse.shapes.schema_difference",
        "A file that lacks a column is read as one that is null in it.",
        "duckdb/duckdb#16859",
        _drift,
    ),
    _reading(
        "row-count-not-compared",
        "warehouse.shapes.Shapes.check",
        "A file with fewer rows than its record promises is read.",
        "neiltron/apple-health-mcp#23",
        swapped("warehouse.shapes.Shapes.check", _check_without_rows),
    ),
    _reading(
        "commit-record-not-sealed",
        "warehouse.sealed.unseal",
        "A commit record that was edited by hand is believed.",
        "borgbackup/borg#7670",
        swapped("warehouse.sealed.unseal", _unseal_without_digest),
    ),
    _reading(
        "rows-without-commit-counted",
        "warehouse.reading._read_commits",
        "Rows of a stage that was killed before its commit are evidence.",
        "huggingface/transformers#35782",
        swapped("warehouse.reading._read_commits", _read_uncommitted),
    ),
)


def _shared_file(original: Any) -> Any:
    def evidence_file(self: Any, nonce: str, table: str) -> Path:
        del nonce
        path: Path = self.root / "records" / "shared" / f"{table}.parquet"
        return path

    del original
    return evidence_file


def _evidence(made: StoreMaker, stage: str = STAGE) -> Path:
    nonce = made.executions[stage].nonce
    return made.store.evidence_file(nonce, "measurements")


def _damage(name: str, summary: str, source: str, replaces: str, file: Any) -> Fault:
    return Fault(
        name=name,
        group=GROUP,
        summary=summary,
        source=source,
        claim="store",
        replaces=replaces,
        scene="whole_store",
        file=file,
    )


def _first(made: StoreMaker, pattern: str) -> Path:
    return next(iter(sorted(made.store.root.glob(pattern))))


FILES = (
    _damage(
        "evidence-bit-flipped",
        "One bit of an evidence file is another one.",
        "paleolimbot/duckdb-nanoarrow#105",
        "records/<nonce>/measurements.parquet",
        lambda made: flip(_evidence(made), 0.3),
    ),
    _damage(
        "evidence-file-cut",
        "An evidence file ends too early.",
        "apache/parquet-java#2109",
        "records/<nonce>/measurements.parquet",
        lambda made: _evidence(made).write_bytes(_evidence(made).read_bytes()[:-9]),
    ),
    _damage(
        "evidence-without-rows",
        "An evidence file holds no row, and its record says so.",
        NO_REPORT,
        "records/<nonce>/measurements.parquet",
        lambda made: rewrite(
            made, made.executions[STAGE], "measurements", lambda rows: rows.slice(0, 0)
        ),
    ),
    _damage(
        "nan-from-another-writer",
        "Another program has written NaN where a number was measured.",
        "duckdb/duckdb#10196",
        "records/<nonce>/measurements.parquet",
        lambda made: rewrite(
            made,
            made.executions[STAGE],
            "measurements",
            with_value("value_real", float("nan"), REAL),
        ),
    ),
    _damage(
        "artifact-bit-flipped",
        "One bit of an artifact is another one.",
        "iterative/dvc#9542",
        "artifacts/<digest>",
        lambda made: flip(_first(made, "artifacts/*/*"), 0.5),
    ),
    _damage(
        "commit-record-deleted",
        "The commit record that a run rests on is gone.",
        "restic/restic#3273",
        "executions/<stage>/<key>/<nonce>.json",
        lambda made: _first(made, "executions/train_model/*/*.json").unlink(),
    ),
    _damage(
        "run-record-edited",
        "The record of how a run ended was edited by hand.",
        "borgbackup/borg#7670",
        "runs/<run>/finished.json",
        lambda made: flip(_first(made, "runs/*/finished.json"), 0.5),
    ),
    Fault(
        name="unfinished-file-beside-evidence",
        group=GROUP,
        summary="An unfinished file lies beside the evidence, and nothing reads it.",
        source=NO_REPORT,
        claim="store",
        replaces="records/<nonce>/measurements.tmp.parquet",
        scene="whole_store",
        file=lambda made: (
            _evidence(made)
            .with_name("measurements.tmp.parquet")
            .write_bytes(b"unfinished")
        ),
        is_benign=True,
    ),
    Fault(
        name="store-copied-to-another-folder",
        group=GROUP,
        summary="The store lies in another folder than the one that wrote it.",
        source=NO_REPORT,
        claim="store",
        replaces="the folder of the store",
        scene="whole_store",
        file=lambda made: _move(made),
        is_benign=True,
    ),
)


def _move(made: StoreMaker) -> None:
    other = made.store.root.with_name("moved")
    made.store.root.rename(other)
    made.store.root = other


OTHERS = (
    Fault(
        name="two-writers",
        group=GROUP,
        summary="Two writers share one file of a table; the later replaces the rows.",
        source="duckdb/duckdb#9334",
        claim="store",
        replaces="warehouse.store.Store.evidence_file",
        scene="two_writers",
        component=swapped("warehouse.store.Store.evidence_file", _shared_file),
    ),
    Fault(
        name="session-zone-changes-day",
        group=GROUP,
        summary="The day of a run is that of the session's time zone.",
        source="duckdb/duckdb#15192",
        claim="store",
        replaces="warehouse/views/review/run_days.sql",
        scene="time_zones",
        component=rewritten(
            "run_days",
            (
                "left(started_at, 10) as run_date",
                "cast(cast(started_at as timestamptz) as date) as run_date",
            ),
            (
                "group by left(started_at, 10), host, flow",
                "group by cast(cast(started_at as timestamptz) as date), host, flow",
            ),
        ),
    ),
    Fault(
        name="evidence-from-other-commit",
        group=GROUP,
        summary="A verdict rests on what another version of the system has shown.",
        source="GridTools/gt4py#2599",
        claim="verdict",
        replaces="warehouse/views/review/subject_stages.sql",
        scene="subjects",
        component=rewritten(
            "subject_stages",
            (
                "inner join runs\n        on links.run_id = runs.run_id",
                "cross join runs",
            ),
        ),
    ),
)

FAULTS = (*VERDICTS, *VALUES, *READING, *FILES, *OTHERS)
