"""Accepted baselines: which run the later ones of its scope are compared with.

The scope of a baseline is its flow, preset and data, and whose system it is about: the
built-in one, or a user's file by its name. So a run with another setting or another
source still meets the baseline of its preset, and never that of another's system. Every
decision is a sealed document of its own; the newest of a scope counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from warehouse import ledger
from warehouse.contents import Contents, note
from warehouse.errors import RecordError, StoreError
from warehouse.run_records import select_run
from warehouse.schema import check_records
from warehouse.sealed import unseal
from warehouse.store import FORMAT, Store

FOLDER = "baselines"
"""The folder of a store in which the documents lie, one a decision."""
ACCEPTED = "accepted"
"""The name that stands for the accepted baseline of a run."""
BEFORE, AFTER = "before", "after"


def document_of(
    baseline: ledger.AcceptedBaseline, executions: Mapping[str, str]
) -> dict[str, Any]:
    """Returns a baseline as the document that is sealed.

    Args:
        baseline: the decision.
        executions: the executions that its run rests on, by stage.
    """
    return {
        "format": FORMAT,
        **dataclasses.asdict(baseline),
        "executions": dict(executions),
    }


def read_baselines(store: Store, contents: Contents) -> None:
    """Adds every accepted baseline of a store to the contents; its runs are there."""
    for path in sorted((store.root / FOLDER).glob("*.json")):
        try:
            contents.add(_baseline(unseal(path.read_bytes()), path.stem, contents))
        except OSError as error:
            problem = f"cannot be read ({error.strerror})"
        except StoreError as error:
            problem = f"was altered: {error}"
        except (KeyError, TypeError, AttributeError, RecordError):
            problem = "does not have the fields of a baseline"
        else:
            continue
        note(contents, store, path, "baseline", problem)


def _baseline(
    document: dict[str, Any], name: str, contents: Contents
) -> ledger.AcceptedBaseline:
    if document.pop("format", None) != FORMAT or document["baseline_id"] != name:
        raise StoreError("it is of another format or another baseline")
    executions = document.pop("executions")
    # Decisions of earlier versions are about the built-in system.
    document.setdefault("implementation", "")
    baseline = ledger.AcceptedBaseline(**document)
    check_records(ledger.AcceptedBaseline, [baseline])
    found = {
        link.stage: link.execution_id
        for link in contents.rows.get(ledger.RunStage, [])
        if link.run_id == baseline.run_id
    }
    if found and found != executions:
        raise StoreError(
            f"run {baseline.run_id} rests on other executions than those accepted"
        )
    return baseline


def choose_compared(
    contents: Contents, run_id: str, against: str
) -> tuple[ledger.ComparedRun, ...]:
    """Returns the two runs of a comparison, or the one that has no counterpart.

    Args:
        contents: runs and baselines that were read.
        run_id: the run that is looked at; "" in a store without runs.
        against: the run before it: an id, the beginning of one, or `ACCEPTED`.

    Raises:
        UnknownRun: `against` names no run or several.
    """
    runs = contents.rows.get(ledger.StoredRun, [])
    if not run_id:
        return ()
    after = ledger.ComparedRun(side=AFTER, run_id=run_id, baseline_id="")
    if against != ACCEPTED:
        before = ledger.ComparedRun(
            side=BEFORE, run_id=select_run(runs, against).run_id, baseline_id=""
        )
    else:
        baseline = newest_baseline(contents, run_id)
        if baseline is None:
            return (after,)
        before = ledger.ComparedRun(
            side=BEFORE, run_id=baseline.run_id, baseline_id=baseline.baseline_id
        )
    return before, after


def newest_baseline(contents: Contents, run_id: str) -> ledger.AcceptedBaseline | None:
    """Returns the baseline that counts for a run, None if none was ever accepted.

    A run that names no data has none: two unknown corpora are not the same.
    """
    runs = contents.rows.get(ledger.StoredRun, [])
    run = next(run for run in runs if run.run_id == run_id)
    data, implementation = (
        component_of(contents, run_id, name) for name in ("data", "implementation")
    )
    if not data:
        return None
    scope = (run.flow, run.preset, data, implementation)
    fitting = [
        baseline
        for baseline in contents.rows.get(ledger.AcceptedBaseline, [])
        if _scope_of(baseline) == scope
    ]
    return max(
        fitting, key=lambda one: (one.accepted_at, one.baseline_id), default=None
    )


def _scope_of(baseline: ledger.AcceptedBaseline) -> tuple[str, str, str, str]:
    return (
        *(baseline.flow, baseline.preset),
        *(baseline.data_sha256, baseline.implementation),
    )


def component_of(contents: Contents, run_id: str, name: str) -> str:
    """Returns what a run says of a part of its subject; "" where it has no such part.

    Args:
        contents: What was read.
        run_id: The run.
        name: `data`, the digest of its corpus, or `implementation`, a user's file.
    """
    for row in contents.rows.get(ledger.SubjectComponent, []):
        if (row.run_id, row.component) == (run_id, name):
            return str(row.value)
    return ""


def executions_of_runs(contents: Contents) -> set[str]:
    """Returns the ids of the executions that the compared runs rest on."""
    compared = {row.run_id for row in contents.rows.get(ledger.ComparedRun, [])}
    links = contents.rows.get(ledger.RunStage, [])
    return {link.execution_id for link in links if link.run_id in compared}
