"""The view files: headers that are true, one row a grain, and the manner of the SQL."""

import re
from typing import Any

import duckdb
import pytest

from tests.store_maker import StoreMaker
from warehouse import ledger
from warehouse.contents import Contents
from warehouse.contract import read_contract
from warehouse.errors import ViewError
from warehouse.evidence import to_table
from warehouse.load import LEDGER_CLASSES, build_warehouse
from warehouse.reading import read_store, record_classes
from warehouse.schema import columns
from warehouse.store import Store
from warehouse.view_files import FOLDER, read_view, read_views

VIEWS = {view.name: view for view in read_views()}
STAGES = ("train_model", "evaluate_heldout", "profile_runtime")


def made_up(kind: type, number: int) -> Any:
    """Returns a record in which every value depends on the number of the row."""
    values: dict[str, Any] = {}
    for column in columns(kind):
        if column.is_nullable:
            values[column.name] = None
        elif column.kind == "text":
            values[column.name] = f"{column.name}-{number}"
        elif column.kind == "boolean":
            values[column.name] = number % 2 == 0
        else:
            values[column.name] = number if column.kind == "integer" else number / 3
    if kind.TABLE == "measurements":  # type: ignore[attr-defined]
        values["value_count"] = number
    return kind(**values)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """A database in which every record table has rows of two executions a stage."""
    made = StoreMaker(Store(tmp_path_factory.mktemp("views") / "evidence"))
    judged = ("measurements", "comparisons", "refusals", "program_executions")
    for run in ("run-0", "run-1"):
        for stage in STAGES:
            records = [
                made_up(kind, row)
                for table, kind in record_classes().items()
                for row in range(4)
                # as in a real run, each table of plain evidence has one stage
                if table in judged or stage == "evaluate_heldout"
            ]
            components = {"stage:name": stage, "config:run": run}
            made.execute(stage, records, key=run, components=components)
        made.run(run, system=run)
    contents = read_store(made.store.root, None, against="run-0")
    contents.add(
        ledger.Damage(
            path="p", kind="k", problem="x", stage="", execution_id="", run_id=""
        ),
        *(made_up(ledger.AcceptedBaseline, number) for number in range(2)),
    )
    return build_warehouse(contents, read_contract())


@pytest.mark.parametrize("name", VIEWS)
def test_the_grain_names_one_row(filled, name: str):
    view = VIEWS[name]
    grain = ", ".join(f'"{column}"' for column in view.grain)
    repeated = filled.execute(
        f"select {grain}, count(*) from {name} group by {grain} having count(*) > 1"
    ).fetchall()
    assert repeated == []


@pytest.mark.parametrize("name", VIEWS)
def test_the_grain_is_never_null(filled, name: str):
    condition = " or ".join(f'"{column}" is null' for column in VIEWS[name].grain)
    assert filled.execute(f"select * from {name} where {condition}").fetchall() == []


@pytest.fixture(scope="module")
def shadow(filled) -> duckdb.DuckDBPyConnection:
    """A database in which every view is an empty table, so that names stay names."""
    made = duckdb.connect()
    made.execute("create schema raw")
    found = filled.execute(
        "select table_schema, table_name, string_agg("
        "'\"' || column_name || '\" ' || data_type, ', ' order by ordinal_position) "
        "from information_schema.columns group by all"
    ).fetchall()
    for schema, table, fields in found:
        made.execute(f'create table "{schema}"."{table}" ({fields})')
    return made


@pytest.mark.parametrize("name", VIEWS)
def test_the_header_names_exactly_what_the_sql_reads(shadow, name: str):
    view = VIEWS[name]
    real = shadow.get_table_names(view.sql, qualified=True)
    assert {read.removeprefix("main.") for read in real} == set(view.reads)


def test_every_record_table_has_one_staging_view_that_reads_only_it():
    staging = {name: view for name, view in VIEWS.items() if view.layer == "staging"}
    assert set(staging) == {f"stg_{table}" for table in record_classes()}
    for name, view in staging.items():
        assert view.reads == (f"raw.{name.removeprefix('stg_')}",)
        assert " join " not in view.sql
        assert " where " not in view.sql


def test_review_views_read_evidence_through_staging_only():
    raw = {f"raw.{table}" for table in record_classes()}
    wrong = {
        name: sorted(raw & set(view.reads))
        for name, view in VIEWS.items()
        if view.layer == "review" and raw & set(view.reads)
    }
    assert wrong == {}


@pytest.mark.parametrize("table", record_classes())
def test_a_staging_view_loses_no_column(filled, table: str):
    def width(name: str) -> int:
        return len(filled.execute(f"select * from {name}").description)

    assert width(f"stg_{table}") == width(f"raw.{table}")


@pytest.mark.parametrize("name", VIEWS)
def test_the_sql_is_deterministic_and_opens_nothing(name: str):
    sql = "\n".join(line.partition("--")[0] for line in VIEWS[name].sql.splitlines())
    forbidden = (
        r"\bnow\(|current_date|current_timestamp|today\(|random\(|uuid\("
        r"|read_\w+\(|parquet_scan|glob\(|\battach\b|\bcopy\b"
    )
    assert re.findall(forbidden, sql) == []
    assert sql == sql.lower() or "'" in sql
    assert re.findall(r"\b(?:as|from|join) ([a-z])\b", sql) == []


@pytest.mark.parametrize("name", VIEWS)
def test_a_review_view_says_in_which_order_its_rows_come(name: str):
    view = VIEWS[name]
    if view.layer == "review" and len(view.sql.splitlines()) > 12:
        last = view.sql.rstrip().splitlines()[-8:]
        assert any(line.startswith(("order by", "select * from")) for line in last)


def test_every_view_file_is_read():
    assert len(list(FOLDER.glob("*/*.sql"))) == len(VIEWS)
    assert len(list(FOLDER.rglob("*.sql"))) == len(VIEWS)


def test_tables_and_columns_describe_everything_there_is(filled):
    described = {
        name for (name,) in filled.execute("select table_name from tables").fetchall()
    }
    existing = {
        f"{'raw.' if schema == 'raw' else ''}{name}"
        for schema, name in filled.execute(
            "select table_schema, table_name from information_schema.tables"
        ).fetchall()
    }
    assert existing - described == {"raw.invalid_columns"}
    assert described - existing == set()
    (undocumented,) = filled.execute(
        "select count(*) from table_columns where meaning = ''"
    ).fetchone()
    assert undocumented == 0


def test_ledger_tables_hold_what_their_classes_declare():
    for kind in LEDGER_CLASSES:
        assert to_table(kind, []).num_columns == len(columns(kind))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select 1", "must open with"),
        ("-- grain: a\n-- reads: raw.x\nselect 1", r"lacks \['review'\]"),
        ("-- grain:\n-- reads: raw.x\n-- review: x\nselect 1", r"lacks \['grain'\]"),
        ("\n-- grain: a\n-- reads: b\n-- review: c\nselect 1", "must open with"),
    ],
)
def test_a_header_that_lacks_a_line_is_refused(tmp_path, text: str, said: str):
    (tmp_path / "review").mkdir()
    path = tmp_path / "review" / "questions.sql"
    path.write_text(text)
    with pytest.raises(ViewError, match=said):
        read_view(path)


def test_views_in_a_circle_or_of_one_name_are_refused(tmp_path):
    for layer in ("staging", "review"):
        (tmp_path / layer).mkdir()
    header = "-- grain: x\n-- reads: {}\n-- review: x\nselect 1 as x"
    (tmp_path / "review/one.sql").write_text(header.format("two"))
    (tmp_path / "review/two.sql").write_text(header.format("one"))
    with pytest.raises(ViewError, match="circle"):
        read_views(tmp_path)
    read_views.cache_clear()
    (tmp_path / "review/two.sql").unlink()
    (tmp_path / "staging/one.sql").write_text(header.format("raw.x"))
    with pytest.raises(ViewError, match=r"Two files are named one\.sql"):
        read_views(tmp_path)
    read_views.cache_clear()


def test_an_empty_store_builds_every_view():
    contents = Contents()
    contents.add(ledger.Selection(run_id="", subject=""))
    connection = build_warehouse(contents, read_contract())
    for name in VIEWS:
        connection.execute(f"select * from {name}").fetchall()
    (claims,) = connection.execute("select count(*) from verdicts").fetchone()
    assert claims == len(read_contract())
    connection.close()
