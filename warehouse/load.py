"""Brings a store into DuckDB: verified tables in memory, then the views over them.

DuckDB opens no file, here or later: it gets decoded tables, copies them, and is locked.
Everything that a review says comes out of the views that this module creates.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow

from warehouse import contract_rows, ledger
from warehouse.calibration import held, read_calibration
from warehouse.contents import Contents
from warehouse.contract import Claim, read_contract
from warehouse.evidence import to_table
from warehouse.reading import read_store, record_classes
from warehouse.reasons import REASONS
from warehouse.schema import arrow_schema, columns
from warehouse.view_files import ViewFile, create_views, needed_views, read_views

_SQL_TYPES = {
    "string": "varchar",
    "int64": "bigint",
    "double": "double",
    "bool": "boolean",
}
_EXECUTION_COLUMNS = pyarrow.schema(
    [
        ("execution_id", pyarrow.string()),
        ("stage", pyarrow.string()),
        ("row_number", pyarrow.int64()),
    ]
)
LEDGER_CLASSES: tuple[type, ...] = tuple(
    kind
    for module in (ledger, contract_rows)
    for kind in vars(module).values()
    if isinstance(kind, type) and hasattr(kind, "TABLE")
)
"""The tables that are filled here and not by programs."""
INVALID = "invalid_columns"
"""The table of columns with values that no table may hold; counted here, in SQL."""
_DESCRIBING = {ledger.TableMeaning.TABLE, ledger.ColumnMeaning.TABLE}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Needed:
    """What a database is made of."""

    views: tuple[ViewFile, ...]
    """The views, each after those that it reads."""
    tables: frozenset[str]
    """The tables of the schema `raw`, without its name."""


def open_warehouse(
    root: Path,
    run: str | None = None,
    *,
    has_history: bool = True,
    names: Collection[str] | None = None,
    against: str | None = None,
) -> duckdb.DuckDBPyConnection:
    """Returns a database in memory with the evidence of a store and its views.

    Args:
        root: folder of the store.
        run: the run whose subject the verdicts are about: an id, the beginning of one,
            or "latest"; None is the latest, or no subject in a store without runs.
        has_history: whether the rows of other subjects are loaded too; without them
            only the verdicts of the selected subject can be asked for.
        names: the tables ("raw.x") and views that will be asked for; what these do not
            read is left out. None, or a name that there is not, is everything.
        against: the run that the selected one is compared with, or `baselines.ACCEPTED`
            for its baseline; None leaves the views of comparison empty.

    Raises:
        StoreError: there is no store.
        UnknownRun: the run names none or several.
        ContractError: the contract is malformed.
        ViewError: a view does not fit the tables.
    """
    needed = needed_for(names)
    is_about_selection = against is None and _is_about_selection(names)
    contents = read_store(
        root,
        run,
        has_history=has_history and not is_about_selection,
        tables=needed.tables,
        against=against,
        is_newest_only=is_about_selection,
    )
    return build_warehouse(contents, read_contract(), needed=needed)


def empty_database() -> duckdb.DuckDBPyConnection:
    """Returns a database in memory that loads no extension and reads no variable."""
    return duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
            # Nothing is ever written to a disk, not even by a query that runs full.
            "temp_directory": "",
        },
    )


def build_warehouse(
    contents: Contents,
    claims: Iterable[Claim],
    calibration: Iterable[contract_rows.Calibration] | None = None,
    needed: Needed | None = None,
) -> duckdb.DuckDBPyConnection:
    """Returns the database for contents that were read or made up.

    Args:
        contents: rows of evidence and ledger.
        claims: the contract.
        calibration: rows of the calibration table; the committed ones by default.
        needed: tables and views to make; every one by default.

    Raises:
        ContractError: a drill has shown that a limit of the contract is none.
    """
    needed = needed or needed_for(None)
    claims = tuple(claims)
    drilled = read_calibration() if calibration is None else list(calibration)
    contents.add(*held(drilled, claims))
    contents.add(*_contract_rows(claims))
    if needed.tables & _DESCRIBING:
        contents.add(*_descriptions(read_views()))
    contents.add(
        *(ledger.ReasonMeaning(reason=r, meaning=m) for r, m in REASONS.items())
    )
    connection = empty_database()
    tables = _tables(contents, needed.tables)
    connection.execute(_definitions_sql(tables))
    filled = {name: table for name, table in tables.items() if table.num_rows}
    for name, table in filled.items():
        connection.register("loaded", table)
        connection.execute(f"insert into raw.{name} select * from loaded")
        connection.unregister("loaded")
    if INVALID in needed.tables:
        connection.execute(_invalid_values_sql(filled.keys()))
    create_views(connection, needed.views)
    connection.execute("set enable_external_access = false")
    return connection


def _is_about_selection(names: Collection[str] | None) -> bool:
    """Returns whether answering from some names needs the selected subject alone."""
    selected = {view.name for view in read_views() if view.is_selected}
    return names is not None and selected.issuperset(names)


def known_names() -> frozenset[str]:
    """Returns the names of all tables ("raw.x") and views."""
    tables = {*record_classes(), *(_table(kind) for kind in LEDGER_CLASSES), INVALID}
    views = {view.name for view in read_views()}
    return frozenset(views | {f"raw.{table}" for table in tables})


def needed_for(names: Collection[str] | None) -> Needed:
    """Returns what answering from some names needs; everything for an unknown one."""
    known = known_names()
    if names is None or not known.issuperset(names):
        names = known
    views = needed_views(read_views(), names)
    read = {name for view in views for name in view.reads}.union(names)
    tables = {name.removeprefix("raw.") for name in read if name.startswith("raw.")}
    if INVALID in tables:
        tables.update(record_classes())
    return Needed(views=views, tables=frozenset(tables))


def _table(kind: Any) -> str:
    return str(kind.TABLE)


def _tables(contents: Contents, needed: Collection[str]) -> dict[str, pyarrow.Table]:
    tables = {}
    for name, kind in record_classes().items():
        if name not in needed:
            continue
        schema = pyarrow.unify_schemas([_EXECUTION_COLUMNS, _nullable(kind)])
        found = [table.cast(schema) for table in contents.evidence.get(name, [])]
        tables[name] = pyarrow.concat_tables([schema.empty_table(), *found])
    for kind in LEDGER_CLASSES:
        if _table(kind) in needed:
            tables[_table(kind)] = to_table(kind, contents.rows.get(kind, []))
    return tables


def _definitions_sql(tables: Mapping[str, pyarrow.Table]) -> str:
    statements = ["create schema raw"]
    for name, table in tables.items():
        fields = ", ".join(
            f'"{field.name}" {_SQL_TYPES[str(field.type)]}' for field in table.schema
        )
        statements.append(f"create table raw.{name} ({fields})")
    return ";\n".join(statements)


def _nullable(kind: type) -> pyarrow.Schema:
    return pyarrow.schema(field.with_nullable(True) for field in arrow_schema(kind))


def _invalid_values_sql(filled: Collection[str]) -> str:
    """Returns SQL that counts values no table may hold, whatever wrote them.

    One row an execution and column: nulls where the class allows none, and NaN or
    infinity anywhere.
    """
    parts = [
        "select null::varchar as execution_id, null::varchar as stage, "
        "null::varchar as table_name, null::struct(column_name varchar, "
        "invalid_rows bigint)[] as counts where false"
    ]
    for name, kind in record_classes().items():
        if name not in filled:
            continue
        counts = []
        for column in columns(kind):
            conditions = [] if column.is_nullable else [f'"{column.name}" is null']
            if column.kind == "real":
                conditions.append(f'not isfinite("{column.name}")')
            if conditions:
                counts.append(
                    f"{{'column_name': '{column.name}', 'invalid_rows': "
                    f"count(*) filter (where {' or '.join(conditions)})}}"
                )
        parts.append(
            f"select execution_id, stage, '{name}' as table_name, "
            f"[{', '.join(counts)}] as counts "
            f"from raw.{name} group by execution_id, stage"
        )
    union = "\nunion all\n".join(parts)
    return (
        "create table raw.invalid_columns as\n"
        "with counted as (\n"
        "select execution_id, stage, table_name, unnest(counts, recursive := true)\n"
        f"from ({union}))\n"
        "select * from counted where invalid_rows > 0"
    )


def _contract_rows(claims: Iterable[Claim]) -> list[Any]:
    rows: list[Any] = []
    number = 0
    for claim in claims:
        rows.append(
            contract_rows.RequiredClaim(
                claim=claim.id,
                review_task=claim.review_task,
                claim_number=claim.number,
                statement=claim.statement,
            )
        )
        for item in claim.requirements:
            number += 1
            whole = item.limit if isinstance(item.limit, int) else None
            rows.append(
                contract_rows.ContractRow(
                    requirement_id=number,
                    claim=claim.id,
                    stage=item.stage,
                    measure=item.measure,
                    relation=item.relation,
                    limit_count=whole,
                    limit_value=None if item.limit is None else float(item.limit),
                    unit=item.unit,
                    required_count=item.required_count,
                    scope=item.scope,
                    sampling=item.sampling,
                    reason=item.reason,
                )
            )
            rows += [
                contract_rows.ContractCase(requirement_id=number, case_name=case)
                for case in item.cases or ("",)
            ]
            rows += [
                contract_rows.ContractPreset(requirement_id=number, preset=preset)
                for preset in item.presets or ("",)
            ]
    return rows


@functools.cache
def _descriptions(views: tuple[ViewFile, ...]) -> tuple[Any, ...]:
    rows: list[Any] = []
    written = record_classes()
    for kind in (*written.values(), *LEDGER_CLASSES):
        table = f"raw.{kind.TABLE}"  # type: ignore[attr-defined]
        grain = "execution_id, row_number" if kind in written.values() else ""
        meaning = " ".join((kind.__doc__ or "").split())
        rows.append(
            ledger.TableMeaning(
                table_name=table, layer="raw", grain=grain, meaning=meaning
            )
        )
        rows += [
            ledger.ColumnMeaning(
                table_name=table,
                column_name=column.name,
                kind=column.kind,
                null_when=column.null_circumstance,
                meaning=column.meaning,
            )
            for column in columns(kind)
        ]
    for view in views:
        rows.append(
            ledger.TableMeaning(
                table_name=view.name,
                layer=view.layer,
                grain=", ".join(view.grain),
                meaning=view.review or f"the rows of {', '.join(view.reads)}",
            )
        )
    return tuple(rows)
