"""Takes in the result of a target: verified, judged here, recorded as a run of its own.

The subject of that run is the same system, configuration and data under the runtime of
the target. It rests besides on what a run at home showed without the target, where the
store has one of the same system. Nothing is started but the program that judges, so no
Prefect is needed.
"""

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flows.reading import Row, open_run, view_rows
from flows.target_subject import target_subject
from model.refusal import ReasonCode, Refused
from tasks.accelerators import Accelerator
from tasks.identity import by_name, key_components, key_of
from tasks.program_environment import DEFAULT_PLATFORM
from tasks.qualify_target import qualify_target
from tasks.target_challenge import code_sha256
from tasks.target_results import TargetResult
from tasks.temporary_folders import temporary_folder
from tasks.work import Work
from warehouse.runs import RunFinish, StageLink, utc_text
from warehouse.store import Execution, Store

FLOW = "target_import"
HOME_STAGE = "qualify_tpu"
RELEASED = ("train_model", "parameters.npz")
COMPONENTS = ("system", "configuration", "data")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged:
    """What came of a result."""

    run_id: str
    """The run that was recorded; empty for a rehearsal, which is recorded nowhere."""
    records: list[Any]
    """Every row that was made of it."""


def import_result(
    root: Path, result: TargetResult, accelerator: Accelerator, nonce: str
) -> Judged:
    """Judges a result and records it as a run.

    Args:
        root: Folder of the store.
        result: The result, whole and of this very code.
        accelerator: What it is a result of.
        nonce: What the launcher gave out.

    Raises:
        Refused: It is of no target.
        StageError: It could not be judged.
    """
    result.require_target()
    store = Store(root)
    subject = target_subject(FLOW, result)
    start = subject.start()
    home = home_links(root, start.components)
    inputs = _inputs(result, accelerator, nonce, home)
    started_ns = time.time_ns()
    # What could not be judged is no run: it would be the newest one, about nothing.
    with _judged(store, inputs, result.runtime) as work:
        store.start_run(start)
        try:
            execution = _commit(store, work, inputs, result, started_ns)
        except BaseException as error:
            _finish(store, start.run_id, "failed", str(error) or "interrupted", ())
            raise
    link = StageLink(
        stage=execution.stage,
        key=execution.key,
        nonce=execution.nonce,
        state="executed",
        reason="a result of the target was taken in",
        duration_ns=time.time_ns() - started_ns,
    )
    links = (*_reused(home), link)
    _finish(store, start.run_id, "completed", "The result was judged.", links)
    return Judged(run_id=start.run_id, records=work.records)


def rehearse_import(
    root: Path, result: TargetResult, accelerator: Accelerator, nonce: str
) -> Judged:
    """Judges a result without recording anything: what each row would say.

    Args:
        root: Folder of the store, which is not changed.
        result: The result, of whichever platform.
        accelerator: What it would be a result of.
        nonce: What the launcher gave out.
    """
    with temporary_folder("rehearsed") as folder:
        home = home_links(root, target_subject(FLOW, result).start().components)
        inputs = _inputs(result, accelerator, nonce, home)
        with _judged(Store(folder / "store"), inputs, result.runtime) as work:
            return Judged(run_id="", records=work.records)


def home_links(root: Path, components: Any) -> list[Row]:
    """Returns the stages of the newest run at home of the same system and data.

    Args:
        root: Folder of the store.
        components: Digests of the subject; the runtime is another by nature.
    """
    if not (root / "runs").is_dir():
        return []
    names = ["raw.subject_digests", "run_stages", "run_artifacts"]
    connection = open_run(root, None, has_history=True, names=names)
    found: dict[str, dict[str, str]] = {}
    for row in view_rows(connection, "raw.subject_digests"):
        found.setdefault(row["run_id"], {})[row["component"]] = row["value"]
    same = [
        run_id
        for run_id, own in found.items()
        if all(own.get(name) == components[name] for name in COMPONENTS)
    ]
    stages = [
        row
        for row in view_rows(connection, "run_stages")
        if row["run_id"] in same and row["is_intact"]
    ]
    newest = max(
        (row["run_id"] for row in stages if row["stage"] == HOME_STAGE), default=None
    )
    released = next(
        (
            row["sha256"]
            for row in view_rows(connection, "run_artifacts", run_id=newest)
            if (row["stage"], row["artifact"]) == RELEASED
        ),
        "",
    )
    return [
        {**row, "released_sha256": released}
        for row in stages
        if row["run_id"] == newest
    ]


def _inputs(
    result: TargetResult, accelerator: Accelerator, nonce: str, home: list[Row]
) -> dict[str, Any]:
    return {
        "folder": str(result.folder.absolute()),
        "manifest_sha256": result.manifest_sha256,
        "nonce": nonce,
        "code_sha256": code_sha256(),
        "accelerator": accelerator.sold(),
        "released_sha256": home[0]["released_sha256"] if home else "",
    }


@contextlib.contextmanager
def _judged(
    store: Store, inputs: dict[str, Any], runtime: dict[str, str]
) -> Iterator[Work]:
    definition = qualify_target.definition
    with temporary_folder(definition.name) as folder:
        work = _HomeWork(definition, store, runtime, folder)
        qualify_target.body(work, **inputs)
        yield work


class _HomeWork(Work):
    """Judges on this machine; the runtime of the run is that of the target."""

    def _compare_runtime(self, run: Any) -> None:
        if run.runtime and run.runtime["platform"] != DEFAULT_PLATFORM:
            raise Refused(
                ReasonCode.PLATFORM_MISMATCH,
                f"the reference ran on {run.runtime['platform']!r}; unset "
                "HARNESS_PLATFORM: the reference is a CPU's",
            )


def _commit(
    store: Store,
    work: Work,
    inputs: dict[str, Any],
    result: TargetResult,
    started_ns: int,
) -> Execution:
    definition = qualify_target.definition
    components = key_components(definition, inputs, result.runtime, {})
    return store.commit(
        stage=definition.name,
        key=key_of(components),
        components=by_name(components),
        artifacts=work.store_artifacts(),
        records=work.records,
        reason="a result of the target was taken in",
        started_at=utc_text(started_ns),
        finished_at=utc_text(time.time_ns()),
        host=result.host,
    )


def _reused(home: list[Row]) -> tuple[StageLink, ...]:
    return tuple(
        StageLink(
            stage=row["stage"],
            key=row["key"],
            nonce=row["execution_id"],
            state="reused",
            reason="",
            duration_ns=0,
        )
        for row in home
        if row["stage"] == HOME_STAGE
    )


def _finish(
    store: Store,
    run_id: str,
    status: Any,
    message: str,
    links: tuple[StageLink, ...],
) -> None:
    store.finish_run(
        RunFinish(
            run_id=run_id,
            status=status,
            message=message,
            finished_at=utc_text(time.time_ns()),
            links=links,
        )
    )


def shown(judged: Judged) -> list[Row]:
    """Returns what was measured and compared, a row each, for people."""
    found = []
    for record in judged.records:
        row = dataclasses.asdict(record)
        if "measured" in row or "unit" in row:
            number = row.get("value_real")
            number = row.get("value_count") if number is None else number
            measured = json.dumps(number) if "unit" in row else row["measured"]
            found.append(
                {
                    "claim": row["claim"],
                    "what": f"{row['measure']} {row['case_name']}".rstrip(),
                    "expected": row.get("expected", ""),
                    "measured": f"{measured} {row.get('unit', '')}".rstrip(),
                    "detail": row.get("detail", ""),
                }
            )
    return found
