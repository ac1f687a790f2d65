"""Takes in the result of a target: verified, judged here, recorded as a run of its own.

The subject of that run is the same system, configuration and data under the runtime of
the target. It rests besides on what runs at home showed without the target, where the
store has them of the same system. Nothing is started but the program that judges, so no
Prefect is needed.
"""

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flows.reading import Row
from flows.target_home import Home, home_of, reused, run_that_rests_on
from flows.target_subject import target_subject
from model.config import RunConfig
from model.presets import preset
from model.refusal import ReasonCode, Refused
from tasks.accelerators import Accelerator
from tasks.identity import by_name, key_components, key_of
from tasks.program_environment import DEFAULT_PLATFORM
from tasks.qualify_target import qualify_target
from tasks.target_challenge import code_sha256
from tasks.target_results import TargetResult
from tasks.temporary_folders import temporary_folder
from tasks.work import Work
from warehouse.errors import NoExecution
from warehouse.nonces import DRAW, Answered, answer_of, remember_answered
from warehouse.runs import RunFinish, RunStart, StageLink, utc_text
from warehouse.store import Execution, Store

FLOW = "target_import"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged:
    """What came of a result."""

    run_id: str
    """The run that was recorded; empty for a rehearsal, which is recorded nowhere."""
    records: list[Any]
    """Every row that was made of it; none where it was taken in before."""


def import_result(
    root: Path,
    result: TargetResult,
    accelerator: Accelerator,
    nonce: str,
    preset_name: str,
) -> Judged:
    """Judges a result and records it as a run.

    A nonce is answered once. The same result again is the same evidence: it is not
    judged again, and where nothing was made at home since, no run is recorded.

    Args:
        root: Folder of the store.
        result: The result, whole and of this very code.
        accelerator: What it is a result of.
        nonce: What the launcher gave out; the store has to remember it.
        preset_name: Preset that was asked for; nothing of it is read from the result.

    Raises:
        Refused: It is of no target, of another preset, or another result has answered
            the nonce.
        StageError: It could not be judged.
        StoreError: The nonce was never given out by this store.
    """
    result.require_target()
    result.require_preset(preset_name)
    answered = answer_of(root, nonce)
    _require_unanswered(result, answered)
    config = preset(preset_name)
    store = Store(root)
    subject = target_subject(FLOW, result, config)
    start = subject.start()
    home = home_of(root, start.components)
    inputs = _inputs(result, accelerator, nonce, home, config)
    before = _taken_in_before(store, start, home, inputs, result) if answered else None
    if before is not None:
        return before
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
    links = (*home.links(), link)
    _finish(store, start.run_id, "completed", "The result was judged.", links)
    if answered is None:
        told = Answered(manifest_sha256=result.manifest_sha256, run_id=start.run_id)
        remember_answered(root, nonce, told)
    return Judged(run_id=start.run_id, records=work.records)


def _require_unanswered(result: TargetResult, answered: Answered | None) -> None:
    """Refuses a result whose nonce another result has answered."""
    if answered and answered.manifest_sha256 != result.manifest_sha256:
        raise Refused(
            ReasonCode.ARTIFACT_METADATA_MISMATCH,
            f"the nonce of this result was answered by another one (run "
            f"{answered.run_id}); an answer counts once: {DRAW}",
        )


def _taken_in_before(
    store: Store,
    start: RunStart,
    home: Home,
    inputs: dict[str, Any],
    result: TargetResult,
) -> Judged | None:
    """Returns the run of a result that is taken in again; None to judge it anew.

    It rests on what was made at home since, such as a rehearsal; with a release that
    was not known before it is judged anew.
    """
    components = key_components(qualify_target.definition, inputs, result.runtime, {})
    try:
        execution = store.find(key_of(components), qualify_target.definition.name)
    except NoExecution:
        return None
    links = (*home.links(), reused(execution.stage, execution.key, execution.nonce))
    run_id = run_that_rests_on(store.root, {link.nonce for link in links})
    if run_id:
        return Judged(run_id=run_id, records=[])
    store.start_run(start)
    _finish(store, start.run_id, "completed", "It rests on more at home now.", links)
    return Judged(run_id=start.run_id, records=[])


def rehearse_import(
    root: Path,
    result: TargetResult,
    accelerator: Accelerator,
    nonce: str,
    preset_name: str,
) -> Judged:
    """Judges a result without recording anything: what each row would say.

    Args:
        root: Folder of the store, which is not changed.
        result: The result, of whichever platform.
        accelerator: What it would be a result of.
        nonce: What the launcher gave out.
        preset_name: Preset that was asked for.
    """
    result.require_preset(preset_name)
    config = preset(preset_name)
    with temporary_folder("rehearsed") as folder:
        home = home_of(root, target_subject(FLOW, result, config).start().components)
        inputs = _inputs(result, accelerator, nonce, home, config)
        with _judged(Store(folder / "store"), inputs, result.runtime) as work:
            return Judged(run_id="", records=work.records)


def _inputs(
    result: TargetResult,
    accelerator: Accelerator,
    nonce: str,
    home: Home,
    config: RunConfig,
) -> dict[str, Any]:
    return {
        "folder": str(result.folder.absolute()),
        "manifest_sha256": result.manifest_sha256,
        "model": config.model,
        "train": config.train,
        "nonce": nonce,
        "code_sha256": code_sha256(),
        "accelerator": accelerator.sold(),
        "released_sha256": home.released_sha256,
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
