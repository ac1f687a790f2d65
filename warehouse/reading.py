"""Reads a store into rows: verified evidence, the ledger of who made it, and damage.

A file is read once, its bytes are hashed, and the same bytes are decoded. An execution
of which one file is not the committed one gives no rows at all, because the rest of it
may have been altered with it; it is listed, and so is what is wrong.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import pkgutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow

import warehouse.records
from warehouse import ledger
from warehouse.baselines import choose_compared, executions_of_runs, read_baselines
from warehouse.commits import Commit, EvidenceFile
from warehouse.contents import Contents, note
from warehouse.errors import RecordError, StoreError
from warehouse.evidence import from_parquet
from warehouse.run_records import (
    executions_of_subject,
    newest_of_subject,
    note_missing_commits,
    read_runs,
    select_run,
)
from warehouse.shapes import Shapes
from warehouse.store import Store

# Tables whose rows come from commit records, or from what those say of files.
_OF_COMMITS = {
    kind.TABLE
    for kind in (
        ledger.StoredExecution,
        ledger.StoredFile,
        ledger.StoredArtifact,
        ledger.KeyComponent,
        ledger.Damage,
    )
}


@functools.cache
def record_classes() -> dict[str, type]:
    """Returns every record class by the name of its table, found in the folder."""
    found: dict[str, type] = {}
    package = warehouse.records
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for kind in vars(importlib.import_module(module.name)).values():
            table = getattr(kind, "TABLE", None)
            if not isinstance(table, str) or kind.__module__ != module.name:
                continue
            if table in found:
                raise RecordError(f"Two record classes have the table {table!r}.")
            found[table] = kind
    return dict(sorted(found.items()))


def read_store(
    root: Path,
    run: str | None,
    *,
    has_history: bool = True,
    tables: Collection[str] | None = None,
    against: str | None = None,
    is_newest_only: bool = False,
) -> Contents:
    """Returns what a store holds, with the subject that a run selects.

    Args:
        root: folder of the store.
        run: id of a run, the beginning of one, or "latest" (also None).
        has_history: whether rows of executions that the subject does not use are read
            too; without them a store of any age opens quickly.
        tables: tables whose rows are wanted; None is all of them. Whatever is wanted
            of an execution, all of its files are hashed.
        against: the run that the selected one is compared with, or `baselines.ACCEPTED`
            for its baseline; None compares nothing.
        is_newest_only: whether of each stage of the subject only the execution is read
            that its verdicts rest on; the others stay unread, like the history.

    Raises:
        StoreError: there is no store.
        UnknownRun: the run names none or several.
    """
    store = Store(root, is_writable=False)
    contents = Contents()
    read_runs(store, contents)
    read_baselines(store, contents)
    selection = select_run(contents.rows.get(ledger.StoredRun, []), run)
    selection = dataclasses.replace(selection, has_history=has_history)
    contents.add(selection)
    if against is not None:
        contents.add(*choose_compared(contents, selection.run_id, against))
    rests_on = executions_of_subject(contents, selection.subject)
    rests_on |= executions_of_runs(contents)
    if tables is not None and not _OF_COMMITS.union(record_classes()) & set(tables):
        return contents
    shapes = Shapes(record_classes(), tables)
    commits = list(_read_commits(store, contents))
    if is_newest_only:
        rests_on = newest_of_subject(contents, selection.subject, commits)
    for commit in commits:
        is_used = commit.nonce in rests_on
        if is_used or has_history:
            found, damage = _read_execution(store, commit, shapes, is_used)
        else:
            found, damage = {}, []
        _add_execution(contents, commit, found, damage)
        contents.add(*_rows_of_commit(commit, tables))
    note_missing_commits(store, contents)
    return contents


def _read_commits(store: Store, contents: Contents) -> Iterator[Commit]:
    for path in sorted((store.root / "executions").glob("*/*/*.json")):
        try:
            yield store.read_commit(path)
        except StoreError as error:
            note(contents, store, path, "commit", str(error))


def _read_execution(
    store: Store, commit: Commit, shapes: Shapes, has_to_be_whole: bool
) -> tuple[dict[str, pyarrow.Table], list[ledger.Damage]]:
    tables, damage = {}, []
    for file in commit.files:
        try:
            table = _read_file(store, commit, file, shapes)
            if table is not None:
                tables[file.table] = _with_execution(table, commit)
        except RecordError as error:
            path = f"records/{commit.nonce}/{file.table}.parquet"
            damage.append(_damage(commit, path, "evidence", str(error)))
    # Artifacts are large, and no number is read from them: only those that the chosen
    # verdicts rest on are hashed here; a stage hashes what it uses before it uses it.
    for artifact in commit.artifacts if has_to_be_whole else ():
        try:
            store.artifact_path(artifact)
        except StoreError as error:
            path = f"artifacts/{artifact.sha256[:2]}/{artifact.sha256}"
            damage.append(_damage(commit, path, "artifact", str(error)))
    return tables, damage


def _read_file(
    store: Store, commit: Commit, file: EvidenceFile, shapes: Shapes
) -> pyarrow.Table | None:
    try:
        data = store.evidence_file(commit.nonce, file.table).read_bytes()
    except OSError as error:
        raise RecordError(f"cannot be read ({error.strerror})") from error
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise RecordError("was altered: its bytes are not the committed ones")
    if not shapes.needs(commit, file.table):
        return None
    table = from_parquet(data)
    if file.table not in shapes.classes:
        raise RecordError("belongs to a table that this version does not know")
    shapes.check(commit, file, table)
    return table


def _with_execution(table: pyarrow.Table, commit: Commit) -> pyarrow.Table:
    count = table.num_rows
    added = {
        "execution_id": pyarrow.repeat(commit.nonce, count),
        "stage": pyarrow.repeat(commit.stage, count),
        "row_number": _numbers(count),
    }
    return pyarrow.Table.from_arrays(
        [*added.values(), *table.columns], [*added, *table.column_names]
    )


@functools.lru_cache(maxsize=1024)
def _numbers(count: int) -> pyarrow.Array:
    return pyarrow.array(range(count), pyarrow.int64())


def _damage(commit: Commit, path: str, kind: str, problem: str) -> ledger.Damage:
    return ledger.Damage(
        path=path,
        kind=kind,
        problem=problem,
        stage=commit.stage,
        execution_id=commit.nonce,
        run_id="",
    )


def _add_execution(
    contents: Contents,
    commit: Commit,
    tables: Mapping[str, pyarrow.Table],
    damage: list[ledger.Damage],
) -> None:
    contents.add(
        ledger.StoredExecution(
            execution_id=commit.nonce,
            problem="; ".join(f"{item.path} {item.problem}" for item in damage),
            is_intact=not damage,
            **{
                name: getattr(commit, name)
                for name in (
                    "stage",
                    "key",
                    "reason",
                    "host",
                    "started_at",
                    "finished_at",
                    "committed_at",
                )
            },
        ),
        *damage,
    )
    if not damage:
        for name, table in tables.items():
            contents.evidence.setdefault(name, []).append(table)


def _rows_of_commit(commit: Commit, tables: Collection[str] | None) -> Iterator[Any]:
    """Yields what a commit record lists, of the tables that are wanted."""

    def is_wanted(kind: Any) -> bool:
        return tables is None or kind.TABLE in tables

    if is_wanted(ledger.StoredFile):
        yield from (
            ledger.StoredFile(
                execution_id=commit.nonce,
                table_name=file.table,
                sha256=file.sha256,
                file_bytes=file.bytes,
                row_count=file.rows,
            )
            for file in commit.files
        )
    if is_wanted(ledger.StoredArtifact):
        yield from (
            ledger.StoredArtifact(
                execution_id=commit.nonce,
                artifact=artifact.name,
                sha256=artifact.sha256,
                artifact_bytes=artifact.bytes,
            )
            for artifact in commit.artifacts
        )
    if is_wanted(ledger.KeyComponent):
        yield from (
            ledger.KeyComponent(execution_id=commit.nonce, component=name, value=value)
            for name, value in commit.components.items()
        )
