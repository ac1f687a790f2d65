"""A user's SQL, on a copy in memory that can reach nothing else.

The database holds decoded tables only; no folder, network or extension is allowed, and
the settings that say so are locked. One statement that reads is accepted, nothing that
writes. Time, memory and rows are limited, and a limit that was hit is always told:
an answer that was cut never looks like a whole one.
"""

from __future__ import annotations

import itertools
import re
import resource
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from warehouse.answers import Answer
from warehouse.errors import QueryError

_READING = {"SELECT", "EXPLAIN", "RELATION"}
# Functions that take an address of memory, or a text that is run as SQL and so would
# hide one of them. Everything that opens a file is refused by the locked settings.
_FORBIDDEN = {
    "arrow_scan",
    "arrow_scan_dumb",
    "pandas_scan",
    "python_map_function",
    "query",
    "query_table",
    "sql_auto_complete",
    "truncate_duckdb_logs",
    "write_log",
}


# What lists everything there is, by the beginning of its name or as a statement.
_LISTING = ("information_schema", "duckdb_", "pragma_", "pg_", "sqlite_")
_SHOWING = {"show"}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much an answer may cost."""

    seconds: float = 30.0
    """Time after which the query is stopped, in seconds."""
    memory_bytes: int = 1 << 30
    """Memory that the database may use, the loaded tables included, in bytes."""
    rows: int = 100_000
    """Rows that are shown at most."""


def lock(connection: duckdb.DuckDBPyConnection, limits: Limits) -> None:
    """Takes every way out of the database away, and the way to give it back.

    Args:
        connection: a database whose tables are loaded already; locked for ever.
        limits: the memory limit that is set.
    """
    for statement in (
        "set enable_external_access = false",
        f"set memory_limit = '{limits.memory_bytes} bytes'",
        "set lock_configuration = true",
    ):
        connection.execute(statement)


def ask(
    connection: duckdb.DuckDBPyConnection, sql: str, limits: Limits | None = None
) -> Answer:
    """Returns the answer to one statement that reads.

    Args:
        connection: what `warehouse.load.open_warehouse` returned; it is locked here.
        sql: one SELECT (or FROM, WITH, VALUES, DESCRIBE, SUMMARIZE, SHOW, EXPLAIN).
        limits: time, memory and rows; the defaults when left out.

    Raises:
        QueryError: the statement does not only read, is wrong, or hit a limit.
    """
    limits = limits or Limits()
    with _explained(limits):
        _check(connection, sql)
    _lock_once(connection, limits)
    with (
        _explained(limits),
        _timer(connection, limits.seconds),
        _reading_only(connection),
        _memory_ceiling(limits),
    ):
        result = connection.execute(sql)
        names = tuple(column[0] for column in result.description or ())
        rows = result.fetchmany(limits.rows + 1)
    return Answer(
        names=names,
        rows=tuple(rows[: limits.rows]),
        is_cut=len(rows) > limits.rows,
    )


def names_read(sql: str, known: Collection[str]) -> frozenset[str] | None:
    """Returns tables and views that a query may read; None where it may see any.

    A store opens faster with what a question needs than with everything. A query that
    reads a table spells its name, so these are all it can read, and seldom more.

    Args:
        sql: The query.
        known: Names of all tables ("raw.x") and views.
    """
    text = sql.lower()
    words = set(re.findall(r"[a-z_][a-z0-9_]*", text))
    names = {name for name in known if words.issuperset(name.split("."))}
    if any(word in text for word in _LISTING) or words & _SHOWING:
        return None
    # Where something is read whose name does not stand there, it may be put together.
    if not names and "from" in words:
        return None
    return frozenset(names)


def _check(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    if "\0" in sql or any("\ud800" <= sign <= "\udfff" for sign in sql):
        raise QueryError("The text is not text that a query can be: NUL or surrogates.")
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise QueryError(
            f"The text holds {len(statements)} statements; ask one question at a time."
        )
    kind = statements[0].type.name
    if kind not in _READING:
        raise QueryError(
            f"{kind} is not allowed: a query may only read, with SELECT, FROM, WITH, "
            "VALUES, DESCRIBE, SUMMARIZE, SHOW or EXPLAIN."
        )
    for name in _called_functions(sql):
        if name in _FORBIDDEN:
            raise QueryError(f"The function {name} is not allowed in a query.")


def _called_functions(sql: str) -> Iterator[str]:
    # The words of DuckDB itself, so that a comment or quotes hide nothing.
    places = duckdb.tokenize(sql)
    encoded = sql.encode()
    ends = [place for place, _ in places[1:]] + [len(encoded)]
    words = [
        (encoded[place:end].decode(errors="replace").strip(), kind)
        for (place, kind), end in zip(places, ends, strict=True)
        if kind != duckdb.token_type.comment
    ]
    for (word, _), (following, _) in itertools.pairwise(words):
        if following.startswith("("):
            yield word.strip('"').lower()


def _lock_once(connection: duckdb.DuckDBPyConnection, limits: Limits) -> None:
    (is_locked,) = connection.execute(
        "select current_setting('lock_configuration')"
    ).fetchone() or (False,)
    if not is_locked:
        lock(connection, limits)


@contextmanager
def _timer(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@contextmanager
def _reading_only(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    # A SELECT may hold an INSERT or DELETE in a WITH clause.
    connection.execute("begin transaction read only")
    try:
        yield
    finally:
        connection.execute("rollback")


@contextmanager
def _memory_ceiling(limits: Limits) -> Iterator[None]:
    # One large value evades the limit of the database itself.
    statistics = Path("/proc/self/statm")
    if not statistics.exists():
        yield
        return
    pages = int(statistics.read_text().split()[0])
    ceiling = pages * resource.getpagesize() + limits.memory_bytes
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        ceiling = min(ceiling, hard)
    resource.setrlimit(resource.RLIMIT_AS, (ceiling, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def _explained(limits: Limits) -> Iterator[None]:
    try:
        yield
    except duckdb.InterruptException as error:
        raise QueryError(
            f"The query was stopped after {limits.seconds:g} s, its time limit; "
            "nothing is shown. Ask for less."
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise QueryError(
            f"The query needs more than its {limits.memory_bytes >> 20} MiB of memory; "
            "nothing is shown. Ask for less."
        ) from error
    except duckdb.Error as error:
        raise QueryError(f"The query is wrong: {_one_sentence(error)}") from error


def _one_sentence(error: duckdb.Error) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    shown = [line for line in lines if line and not re.fullmatch(r"[\^~ ]+", line)]
    place = [line for line in shown if line.startswith("LINE ")]
    text = [line for line in shown if not line.startswith("LINE ")]
    return " ".join([*text[:2], *(f"({line})" for line in place[:1])])
