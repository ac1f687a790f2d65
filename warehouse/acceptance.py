"""Accepts a run as the baseline of its scope, if nothing about it is in doubt."""

from __future__ import annotations

import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from warehouse import ledger
from warehouse.baselines import ACCEPTED, FOLDER, document_of
from warehouse.durable import write_file
from warehouse.errors import BaselineRefused, StoreError
from warehouse.load import open_warehouse
from warehouse.runs import utc_text
from warehouse.sealed import seal
from warehouse.store import Store

VIEWS = ("acceptance", "run_stages")


def accept_run(root: Path, run: str, note: str) -> ledger.AcceptedBaseline:
    """Writes that a run is the baseline of its flow, preset, data and system.

    Args:
        root: folder of the store.
        run: id of a run, the beginning of one, or "latest".
        note: why it is accepted, in the words of who accepts it.

    Raises:
        BaselineRefused: the run is not complete, is damaged, or has a claim to revise.
        StoreError: there is no store, or it cannot be written.
        UnknownRun: the run names none or several.
    """
    connection = open_warehouse(
        root, run, has_history=False, names=VIEWS, against=ACCEPTED
    )
    try:
        found, stages = (_rows(connection, view) for view in VIEWS)
    finally:
        connection.close()
    if not found:
        raise BaselineRefused("The store has no run yet; `harness run` makes one.")
    (about,) = found
    problem = about.pop("problem")
    if problem:
        raise BaselineRefused(problem)
    baseline = _decision(about, note)
    executions = {
        row["stage"]: row["execution_id"]
        for row in stages
        if row["run_id"] == baseline.run_id
    }
    store = Store(root)
    path = store.root / FOLDER / f"{baseline.baseline_id}.json"
    if path.exists():
        raise StoreError(f"The baseline {path.stem!r} exists already; accept again.")
    write_file(store.root, path, seal(document_of(baseline, executions)))
    return baseline


def _decision(about: dict[str, Any], note: str) -> ledger.AcceptedBaseline:
    now_ns = time.time_ns()
    moment = datetime.fromtimestamp(now_ns // 1_000_000_000, UTC)
    return ledger.AcceptedBaseline(
        # Names in order are decisions in order.
        baseline_id=f"{moment:%Y%m%d-%H%M%S}-{now_ns % 1_000_000_000:09d}",
        accepted_at=utc_text(now_ns),
        host=platform.node(),
        note=note,
        **about,
    )


def _rows(connection: duckdb.DuckDBPyConnection, view: str) -> list[dict[str, Any]]:
    result = connection.execute(f"select * from {view}")  # names are ours
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, values, strict=True)) for values in result.fetchall()]
