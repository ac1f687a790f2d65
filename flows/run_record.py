"""What a flow commits about itself: its subject, and which execution it used where.

The record is started before the first stage and finished however the flow ends, so a
failed or interrupted run is on record too, with the stages it had finished.
"""

import dataclasses
import os
import platform
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect.futures import PrefectFuture, as_completed
from prefect.states import State

from flows.left_task_runs import crash_left_task_runs
from flows.run_times import RunTimes
from flows.worker_watch import WorkerGone, ending_with_worker
from model.config import RunConfig, to_dict
from model.presets import preset
from tasks import children, progress
from tasks.corpus_files import CorpusFiles
from tasks.errors import StageError
from tasks.implementation_files import FILE, KIND, components_of_system
from tasks.reuse import store_root, working_for
from tasks.source_closure import source_closure
from tasks.stage import EXECUTED, StageTask
from warehouse.errors import StoreError
from warehouse.runs import RunFinish, RunStart, RunStatus, StageLink, utc_text
from warehouse.sealed import canonical_sha256
from warehouse.store import Execution, Store

NOT_READY = "NotReady"


class StageFailed(StageError):
    """A stage of the run failed; what was finished before stays."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subject:
    """What a run is about."""

    flow: str
    config: RunConfig
    corpus: CorpusFiles
    runtime: dict[str, str]
    stages: tuple[StageTask, ...]
    beside: tuple[StageTask, ...] = ()
    """Stages of other flows about the same system; their source is part of it."""
    system: Mapping[str, str] | None = None
    """What runs in the place of the built-in system; its files are part of it."""
    apart: tuple[StageTask, ...] = ()
    """Those of its stages that try other systems out; their source is no part of it."""

    def start(self) -> RunStart:
        """Returns the record of a run of this subject that starts now."""
        now_ns = time.time_ns()
        moment = datetime.fromtimestamp(now_ns // 1_000_000_000, UTC)
        declared = self.config == preset(self.config.preset)
        return RunStart(
            run_id=f"{moment:%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}",
            flow=self.flow,
            components={
                "system": canonical_sha256(self.modules()),
                "configuration": canonical_sha256(to_dict(self.config)),
                "data": self.corpus.sha256,
                "runtime": canonical_sha256(self.runtime),
                **self._whose(),
            },
            preset=self.config.preset,
            is_declared=declared and self.corpus.is_fixture,
            configuration=to_dict(self.config),
            started_at=utc_text(now_ns),
            host=platform.node(),
            process_id=os.getpid(),
        )

    def _whose(self) -> dict[str, str]:
        """Returns the name of a user's file, the same before and after it changes.

        It parts their runs from those of the built-in system where two are compared.
        """
        return {KIND: Path(self.system[FILE]).name} if self.system else {}

    def modules(self) -> dict[str, str]:
        """Returns the digest of every module of the system, of whichever flow."""
        own = [stage for stage in self.stages if stage not in self.apart]
        return self._modules(own + list(self.beside))

    def sources(self) -> dict[str, str]:
        """Returns the digest of every module of every stage."""
        return self._modules([*self.stages, *self.beside])

    def _modules(self, stages: Iterable[StageTask]) -> dict[str, str]:
        modules: dict[str, str] = {}
        for stage in stages:
            definition = stage.definition
            closure = source_closure(definition.module, *definition.programs)
            modules |= dict(closure.modules)
        for row in components_of_system(self.system):
            if row.kind == "source":
                modules[row.name] = row.value
            elif row.kind == KIND:
                modules[f"{KIND}:{row.name}"] = row.value
        return modules


def _implementation(components: Mapping[str, str]) -> dict[str, str]:
    """Returns the files of a user's implementation among components."""
    prefix = f"{KIND}:"
    return {
        name: value for name, value in components.items() if name.startswith(prefix)
    }


def _listed(files: Mapping[str, str]) -> str:
    """Returns files of an implementation with the beginning of their digests."""
    each = [f"{name.partition(':')[2]} {value[:8]}" for name, value in files.items()]
    return ", ".join(sorted(each)) or "the built-in system"


class RecordedRun:
    """A run that is being recorded."""

    def __init__(self, store: Store, subject: Subject) -> None:
        """Writes that the run has started."""
        start = subject.start()
        self.run_id = start.run_id
        self._sources = subject.sources()
        self._store = store
        self._links: dict[str, StageLink] = {}
        self._times = RunTimes()
        self._order = [stage.definition.name for stage in subject.stages]
        store.start_run(start)

    def hear(self, stage: str, event: dict[str, Any]) -> None:
        """Notes when a stage begins, and where its time goes."""
        self._times.hear(stage, event)

    def follow(self, *futures: PrefectFuture[Any]) -> str:
        """Waits for every stage, notes what became of it, and returns the run's id.

        Args:
            futures: One a stage, in the order of the subject's stages.

        Raises:
            StageFailed: A stage failed; the text is the sentence of the first one.
        """
        names = dict(zip(futures, self._order, strict=True))
        failures = {}
        for future in as_completed(list(futures)):
            # A future can be announced a moment before its state is the last one.
            future.wait()
            name, state = names[future], future.state
            duration_ns = self._times.end(name)
            if state.is_completed():
                self._refuse_another_system(future.result())
                self._link(name, state, future.result(), duration_ns)
            elif state.name != NOT_READY:
                failures[name] = state
                progress.tell(name, event=progress.FAILED, duration_ns=duration_ns)
        for name in self._order:
            if name in failures:
                raise _failure(name, failures[name])
        return self.run_id

    def _refuse_another_system(self, execution: Execution) -> None:
        """Refuses to count for this subject what another source computed."""
        sources = {f"source:{name}": value for name, value in self._sources.items()}
        components = self._store.commit_of(execution).components
        for name, value in components.items():
            if name.startswith("source:") and sources.get(name) != value:
                raise StageFailed(
                    f"{name.removeprefix('source:')} was changed before "
                    f"{execution.stage} ran, so the run is about two systems; run "
                    "again."
                )
        held, owed = _implementation(components), _implementation(self._sources)
        if held != owed:
            raise StageFailed(
                f"{execution.stage} ran {_listed(held)} where this run is about "
                f"{_listed(owed)}; run again."
            )

    def finish(self, status: RunStatus, message: str) -> None:
        """Writes how the run ended."""
        self._store.finish_run(
            RunFinish(
                run_id=self.run_id,
                status=status,
                message=message,
                finished_at=utc_text(time.time_ns()),
                links=tuple(self._links[n] for n in self._order if n in self._links),
                **self._times.of_run(),
            )
        )
        told = {"run_id": self.run_id, "status": status, "message": message}
        progress.tell(progress.RUN, event=progress.RECORDED, **told)

    def _link(
        self, name: str, state: State[Any], execution: Execution, duration_ns: int
    ) -> None:
        is_executed = state.name == EXECUTED
        reason = (state.message or "") if is_executed else ""
        self._links[name] = StageLink(
            stage=name,
            key=execution.key,
            nonce=execution.nonce,
            state="executed" if is_executed else "reused",
            reason=reason,
            duration_ns=duration_ns,
            **self._times.parts(name),
        )
        progress.tell(
            name,
            event=progress.FINISHED,
            duration_ns=duration_ns,
            message="executed" if is_executed else "reused",
        )


@contextmanager
def recorded_run(subject: Subject) -> Iterator[RecordedRun]:
    """Keeps a record of the run while the block runs, and ends its programs with it."""
    run = RecordedRun(Store(store_root()), subject)
    crash_left_task_runs()
    children.allow()
    try:
        with (
            progress.listening(run.hear),
            working_for(run.run_id),
            ending_with_worker(),
        ):
            yield run
    except Exception as error:
        # A store that is full cannot take this either; what went wrong first counts.
        with suppress(StoreError):
            run.finish("failed", str(error))
        raise
    except BaseException as error:
        progress.tell(progress.RUN, event=progress.INTERRUPTED)
        # Tasks wait for their programs in threads that no signal reaches.
        children.stop_all()
        is_told = isinstance(error, WorkerGone)
        with suppress(StoreError):
            run.finish(
                "interrupted", str(error) if is_told else "The run was interrupted."
            )
        raise
    run.finish("completed", "Every stage is done.")


def _failure(name: str, state: State[Any]) -> StageFailed:
    error = state.result(raise_on_failure=False)
    if isinstance(error, BaseException):
        kind = "" if isinstance(error, StageError) else f"{type(error).__name__}: "
        failed = StageFailed(f"{name} failed: {kind}{error}")
        failed.__cause__ = error
        return failed
    return StageFailed(f"{name} failed: {state.message}")
