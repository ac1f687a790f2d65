"""A user's SQL reaches nothing but the tables in memory, and never hangs or lies."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from warehouse.errors import QueryError
from warehouse.load import empty_database
from warehouse.query import Limits, ask, lock, names_read


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory as the loader makes one, with one small table."""
    made = empty_database()
    made.execute("create schema raw")
    made.execute("create table raw.numbers as select range as number from range(5)")
    made.execute("create view numbers as from raw.numbers")
    yield made
    made.close()


SECRET = "the content of a file outside"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with a file that no query may read, write or replace."""
    (tmp_path / "secret.csv").write_text(SECRET)
    duckdb.connect(str(tmp_path / "other.duckdb")).close()
    return tmp_path


ESCAPES = [
    "select * from read_csv('{outside}/secret.csv')",
    "select * from read_text('{outside}/secret.csv')",
    "select * from read_blob('{outside}/secret.csv')",
    "select * from '{outside}/secret.csv'",
    'select * from "{outside}/secret.csv"',
    "select * from read_parquet(['{outside}/secret.csv'])",
    "select * from read_json('{outside}/secret.csv')",
    "select * from sniff_csv('{outside}/secret.csv')",
    "select * from parquet_metadata('{outside}/secret.csv')",
    "select * from glob('{outside}/*')",
    "select * from read_csv('{outside}/nothing/../secret.csv')",
    "select * from read_text('file://{outside}/secret.csv')",
    "select * from read_csv('http://127.0.0.1:9/x.csv')",
    "select * from query('select 1')",
    "select * from query('from read_text(''{outside}/secret.csv'')')",
    "select * from \"query\" ('select 1')",
    "select * from query /* hidden */ ('select 1')",
    "select * from system.main.query('select 1')",
    "select * from query_table('numbers')",
    "select * from arrow_scan(1::ubigint, 2::ubigint, 3::ubigint)",
    "select * from arrow_scan_dumb(1, 2, 3)",
    "select * from pandas_scan(1)",
    "select * from python_map_function(1)",
    "copy numbers to '{outside}/new.csv'",
    "copy numbers to '{outside}/secret.csv'",
    "copy (select 1) to '/dev/stdout'",
    "copy numbers from '{outside}/secret.csv'",
    "explain analyze copy numbers to '{outside}/new.csv'",
    "export database '{outside}/new'",
    "import database '{outside}'",
    "attach '{outside}/other.duckdb'",
    "attach ':memory:' as more",
    "install httpfs",
    "force install httpfs",
    "load httpfs",
    "load '{outside}/secret.csv'",
    "pragma database_list",
    "pragma enable_profiling",
    "call enable_logging(storage = 'file', storage_path = '{outside}/new')",
    "select * from enable_logging(storage = 'file', storage_path = '{outside}/new')",
    "set lock_configuration = false",
    "set enable_external_access = true",
    "set global temp_directory = '{outside}'",
    "reset lock_configuration",
    "create secret (type s3)",
    "select * from which_secret('x', 's3')",
    "create table more as select 1",
    "create macro more() as 1",
    "insert into raw.numbers values (6)",
    "delete from raw.numbers",
    "update raw.numbers set number = 0",
    "drop table raw.numbers",
    "with gone as (delete from raw.numbers returning *) select * from gone",
    "with more as (insert into raw.numbers values (6) returning *) from more",
    "select 1; drop table raw.numbers",
    "begin transaction",
    "checkpoint",
    "vacuum",
    "use memory",
    "prepare more as select 1",
    "select getenv('HOME')",
    "select connection from connection",
    "from Path",
]


@pytest.mark.parametrize("sql", ESCAPES)
def test_no_way_out_and_no_way_to_change_anything(connection, outside, sql: str):
    before = sorted(path.name for path in outside.iterdir())
    with pytest.raises(QueryError) as caught:
        ask(connection, sql.format(outside=outside))
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in outside.iterdir()) == before
    assert (outside / "secret.csv").read_text() == SECRET
    assert ask(connection, "select sum(number) from numbers").rows == ((10,),)


@pytest.mark.parametrize(
    ("sql", "first"),
    [
        ("select count(*) from numbers", (5,)),
        ("from numbers order by all", (0,)),
        ("with two as (select 2 as n) select * from two", (2,)),
        ("values (1, 'a')", (1, "a")),
        (
            "select 'query(1); copy' as text -- ; drop table raw.numbers",
            ("query(1); copy",),
        ),
        ("show tables", ("numbers",)),
        ("select query from (select 1 as query)", (1,)),
    ],
)
def test_questions_are_answered(connection, sql: str, first: tuple):
    assert ask(connection, sql).rows[0] == first


@pytest.mark.parametrize(
    "sql", ["describe numbers", "summarize numbers", "explain from numbers"]
)
def test_tables_can_be_described(connection, sql: str):
    assert ask(connection, sql).rows


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("selec 1", "syntax error at or near"),
        ("select * from number", 'Did you mean "numbers"'),
        ("select nummber from numbers", "nummber"),
        ("", "0 statements"),
        ("-- nothing", "0 statements"),
        ("select 1; select 2", "2 statements"),
        ("select 'a'::integer", "Could not convert"),
        ("select $1", "parameter"),
        ("select \0", "not text that a query can be"),
        ("select '\ud800'", "not text that a query can be"),
    ],
)
def test_wrong_sql_is_one_sentence(connection, sql: str, said: str):
    with pytest.raises(QueryError, match=said) as caught:
        ask(connection, sql)
    assert "\n" not in str(caught.value)


def test_a_query_that_takes_too_long_is_stopped_and_says_so(connection):
    threads = threading.active_count()
    endless = "select count(*) from range(1000000000000) a, range(1000) b"
    said = r"stopped after 0\.3 s, its time limit; nothing is shown\. Ask for less\.$"
    with pytest.raises(QueryError, match=said):
        ask(connection, endless, Limits(seconds=0.3))
    assert ask(connection, "select 1").rows == ((1,),)
    assert threading.active_count() == threads


@pytest.mark.parametrize(
    "sql",
    [
        "select list(range) from range(100000000)",
        "select length(repeat('x', 3000000000))",
    ],
)
def test_a_query_that_needs_too_much_memory_is_stopped_and_says_so(connection, sql):
    with pytest.raises(QueryError, match="more than its 64 MiB of memory"):
        ask(connection, sql, Limits(memory_bytes=64 << 20, seconds=20))
    assert ask(connection, "select 1").rows == ((1,),)


def test_an_answer_that_was_cut_says_so(connection):
    assert ask(connection, "from numbers", Limits(rows=4)).is_cut
    assert len(ask(connection, "from numbers", Limits(rows=4)).rows) == 4
    assert not ask(connection, "from numbers", Limits(rows=5)).is_cut


def test_nothing_is_written_beside_the_working_folder(
    connection, monkeypatch, tmp_path
):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(QueryError):
        ask(
            connection,
            "select range from range(100000000) order by hash(range)",
            Limits(memory_bytes=64 << 20),
        )
    assert list((tmp_path / "empty").iterdir()) == []
    assert os.listdir(tmp_path / "empty") == []  # noqa: PTH208


def test_the_lock_cannot_be_opened_by_python_either(connection):
    lock(connection, Limits())
    with pytest.raises(duckdb.Error, match="locked"):
        connection.execute("set enable_external_access = true")


KNOWN = ("raw.runs", "runs", "verdicts", "why_executed", "tables")


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("select * from runs", {"runs"}),
        ("-- a comment; with names\nfrom main.Runs", {"runs"}),
        ("from raw.runs join verdicts using (x)", {"raw.runs", "runs", "verdicts"}),
        ("from runs where x in (select x from why_executed)", {"runs", "why_executed"}),
        ("with some as (select * from runs) select * from some", {"runs"}),
        ('describe "tables"', {"tables"}),
        ("summarize verdicts", {"verdicts"}),
        ("from verdicts where claim = 'raw'", {"verdicts"}),
        ("select 1", set()),
    ],
)
def test_a_query_says_which_tables_it_may_read(sql: str, names: set[str]) -> None:
    assert names_read(sql, KNOWN) == names


@pytest.mark.parametrize(
    "sql",
    [
        "show tables",
        "from query_table('ru' || 'ns')",
        "select * from duckdb_views()",
        "from runs, information_schema.tables",
        "from runs, (select * from pg_catalog.pg_tables)",
        "from verdict",
    ],
)
def test_a_query_that_may_see_any_table_gets_all_of_them(sql: str) -> None:
    """Else a list of what there is would be a list of what was opened."""
    assert names_read(sql, KNOWN) is None
