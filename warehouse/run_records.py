"""Reads the run records of a store, and finds the run that a user means."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from warehouse import ledger
from warehouse.commits import Commit
from warehouse.contents import Contents, note
from warehouse.errors import RecordError, StoreError, UnknownRun
from warehouse.running import RUNNING, is_running
from warehouse.schema import check_records
from warehouse.sealed import canonical_sha256, check_name, unseal
from warehouse.store import FORMAT, Store

# Records of earlier versions lack these; they stay readable, and the columns null.
_RUN_TIMES = ("elapsed_ns", "starting_ns", "ending_ns")
_PARTS = ("waiting_ns", "program_ns", "recording_ns", "hashing_ns", "key_ns")

LATEST = "latest"
"""The name that stands for the run that started last."""


def select_run(runs: list[ledger.StoredRun], name: str | None) -> ledger.Selection:
    """Returns the run that a user means, with its subject.

    Raises:
        UnknownRun: the name fits none or several; the text lists candidates.
    """
    by_age = sorted(runs, key=lambda run: (run.started_at, run.run_id))
    if name in (None, LATEST):
        if not by_age and name is None:
            return ledger.Selection(run_id="", subject="")
        fitting = by_age[-1:]
    else:
        exact = [run for run in by_age if run.run_id == name]
        fitting = exact or [run for run in by_age if run.run_id.startswith(name or " ")]
    if len(fitting) == 1:
        return ledger.Selection(run_id=fitting[0].run_id, subject=fitting[0].subject)
    newest = reversed((fitting or by_age)[-5:])
    shown = ", ".join(run.run_id for run in newest) or "none"
    if fitting:
        problem = f"{name!r} begins several runs"
    else:
        problem = f"{name!r} is unknown: it names no run of this store"
    raise UnknownRun(f"{problem} (the newest: {shown}); see `harness runs`.")


def read_runs(store: Store, contents: Contents) -> None:
    """Adds every run of a store to the contents, with its links and digests."""
    for folder in sorted((store.root / "runs").glob("*")):
        started = _document(store, contents, folder / "started.json")
        if started is None:
            continue
        finished = None
        if (folder / "finished.json").exists():
            finished = _document(store, contents, folder / "finished.json")
        try:
            _add_run(contents, started, finished or {})
        except (KeyError, TypeError, AttributeError, RecordError, StoreError):
            problem = "does not have the fields of a run record"
            note(contents, store, folder / "started.json", "run", problem)


def _document(store: Store, contents: Contents, path: Path) -> dict[str, Any] | None:
    try:
        document = unseal(path.read_bytes())
    except (StoreError, OSError) as error:
        problem = (
            f"was altered: {error}" if isinstance(error, StoreError) else "is missing"
        )
        note(contents, store, path, "run", problem)
        return None
    if document.get("format") != FORMAT or document.get("run_id") != path.parent.name:
        note(contents, store, path, "run", "is of another format or another run")
        return None
    return document


def _add_run(
    contents: Contents, started: Mapping[str, Any], finished: Mapping[str, Any]
) -> None:
    run = ledger.StoredRun(
        run_id=started["run_id"],
        flow=started["flow"],
        subject=canonical_sha256(started["components"]),
        preset=started["preset"],
        is_declared=started["is_declared"],
        configuration=json.dumps(started["configuration"], sort_keys=True),
        host=started["host"],
        process_id=started["process_id"],
        started_at=started["started_at"],
        finished_at=finished.get("finished_at"),
        status=finished.get("status") or (RUNNING if is_running(started) else None),
        message=finished.get("message", ""),
        **{name: finished.get(name) for name in _RUN_TIMES},
    )
    links = [
        ledger.RunStage(
            run_id=run.run_id,
            stage_number=number,
            execution_id=link["nonce"],
            **{name: link[name] for name in ("stage", "key", "state", "reason")},
            duration_ns=link["duration_ns"],
            **{name: link.get(name) for name in _PARTS},
        )
        for number, link in enumerate(finished.get("links", []), 1)
    ]
    digests = [
        ledger.SubjectComponent(run_id=run.run_id, component=name, value=value)
        for name, value in started["components"].items()
    ]
    for rows in ([run], links, digests):
        if rows:
            check_records(type(rows[0]), rows)
    for link in links:
        for what in ("stage", "key", "execution_id"):
            check_name(what, getattr(link, what))
    contents.add(run, *links, *digests)


def note_missing_commits(store: Store, contents: Contents) -> None:
    """Lists the commit records that runs rest on and that are not there any more."""
    present = {
        row.execution_id
        for kind in (ledger.StoredExecution, ledger.Damage)
        for row in contents.rows.get(kind, [])
    }
    links = contents.rows.get(ledger.RunStage, [])
    places = {
        link.execution_id: (link.stage, link.key, f"{link.execution_id}.json")
        for link in links
        if link.execution_id not in present
    }
    for place in places.values():
        path = store.root.joinpath("executions", *place)
        note(contents, store, path, "commit", "is missing")


def executions_of_subject(contents: Contents, subject: str) -> set[str]:
    """Returns the ids of the executions that any run of a subject used."""
    runs = contents.rows.get(ledger.StoredRun, [])
    of_subject = {run.run_id for run in runs if run.subject == subject}
    links = contents.rows.get(ledger.RunStage, [])
    return {link.execution_id for link in links if link.run_id in of_subject}


def newest_of_subject(
    contents: Contents, subject: str, commits: Iterable[Commit]
) -> set[str]:
    """Returns the ids of the executions that the verdicts of a subject rest on.

    These are the newest of each stage that its runs link by stage, key and id, as the
    view `subject_stages` has them.
    """
    runs = contents.rows.get(ledger.StoredRun, [])
    of_subject = {run.run_id for run in runs if run.subject == subject}
    links = {
        (link.stage, link.key, link.execution_id)
        for link in contents.rows.get(ledger.RunStage, [])
        if link.run_id in of_subject
    }
    newest: dict[str, tuple[str, str]] = {}
    for commit in commits:
        if (commit.stage, commit.key, commit.nonce) in links:
            age = (commit.committed_at, commit.nonce)
            newest[commit.stage] = max(age, newest.get(commit.stage, age))
    return {nonce for _, nonce in newest.values()}
