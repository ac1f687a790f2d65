"""Stages of another system than the built-in one, in a store of their own.

A trial runs the very stages of the DAG, one after another and without Prefect, on a
system with a planted fault or on a user's implementation. Each system is a subject, so
the views and the contract judge it as they judge any run; nothing of it reaches the
evidence of the built-in system.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import os
import platform
import time
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from model.config import RunConfig, to_dict
from tasks.corpus_files import CorpusFiles
from tasks.errors import ProgramsStopped, StageError
from tasks.forked_programs import ForkServer
from tasks.identity import KeyComponent, by_name, key_of
from tasks.reuse import components_of_call
from tasks.stage import StageTask
from tasks.temporary_folders import temporary_folder
from tasks.work import Work
from warehouse.errors import WarehouseError
from warehouse.runs import RunFinish, RunStart, StageLink, utc_text
from warehouse.sealed import canonical_sha256
from warehouse.store import Execution, Store

# What the bodies of stages call an earlier stage's execution.
MADE_BY = {
    "tokenize_corpus": "tokens",
    "train_model": "trained",
    "interrupt_training": "interrupted",
    "resume_training": "resumed",
    "evaluate_heldout": "evaluated",
    "quantize_cache": "quantized",
    "export_endpoints": "exported",
    "profile_runtime": "profiled",
}

System = Mapping[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tried:
    """A system that was tried."""

    run_id: str
    """Its run in the store of the trial."""
    executions: Mapping[str, Execution]
    """What each of its stages made, by the name that later stages have for it."""
    failure: str
    """Why it ended before its last stage, "" if it did not."""


def made_by(stage: StageTask) -> str:
    """Returns what the bodies of later stages call the execution of a stage."""
    name = stage.definition.name
    return MADE_BY.get(name, name)


class Trial:
    """The store of a trial, and what all its systems have in common."""

    def __init__(
        self,
        root: Path,
        config: RunConfig,
        corpus: CorpusFiles,
        runtime: Mapping[str, str],
        *,
        is_declared: bool = False,
        is_heard: bool = True,
        fork_server: ForkServer | None = None,
    ) -> None:
        """Opens a store in a folder that is the trial's alone.

        Args:
            root: The folder.
            config: What every system is tried with.
            corpus: What every system is tried on.
            runtime: The numerics fingerprint that programs have to run under.
            is_declared: Whether claims about the declared corpus are asked too; they
                need all of it.
            is_heard: Whether those who follow the run hear of its stages.
            fork_server: What programs are forked from; None starts each anew.
        """
        self.store = Store(root)
        self.config = config
        self.corpus = corpus
        self.runtime = dict(runtime)
        self.is_declared = is_declared
        self.is_heard = is_heard
        self.fork_server = fork_server
        self._numbers = itertools.count(1)

    def run(
        self,
        name: str,
        stages: Sequence[StageTask],
        *,
        system: System | None = None,
        given: Mapping[str, Execution] | None = None,
        left_out: Container[str] = (),
    ) -> Tried:
        """Runs stages of one system and records them as a run.

        Args:
            name: Name of the system, the flow of its run.
            stages: The stages, in the order of the DAG.
            system: As `model.replaced.install` takes it; None is the built-in system.
            given: Executions of earlier stages, by the name that stages have for them.
            left_out: Programs of these stages that are not run.

        Returns:
            What was tried. A stage that fails ends it; the failure is its sentence.
        """
        start = self._start(name, system)
        self.store.start_run(start)
        made = dict(given or {})
        links: list[StageLink] = []
        failure = ""
        for stage in stages:
            begun_ns = time.time_ns()
            try:
                execution = self._execute(stage, made, system, left_out)
            except ProgramsStopped:
                raise
            except (StageError, WarehouseError) as error:
                failure = f"{stage.definition.name}: {error}"
                break
            made[made_by(stage)] = execution
            links.append(_link(execution, time.time_ns() - begun_ns))
        self._finish(start.run_id, links, failure)
        return Tried(run_id=start.run_id, executions=made, failure=failure)

    def _execute(
        self,
        stage: StageTask,
        made: Mapping[str, Execution],
        system: System | None,
        left_out: Container[str],
    ) -> Execution:
        begun_ns = time.time_ns()
        definition = stage.definition
        inputs = self._inputs(stage, made)
        components = components_of_call(
            definition, {**inputs, "runtime": self.runtime}
        ) + (KeyComponent("trial", "system", canonical_sha256(dict(system or {}))),)
        with temporary_folder(definition.name) as folder:
            work = Work(
                definition,
                self.store,
                self.runtime,
                folder,
                system=system,
                is_heard=self.is_heard,
                left_out=left_out,
                fork_server=self.fork_server,
            )
            stage.body(work, **inputs)
            return self.store.commit(
                stage=definition.name,
                key=key_of(components),
                components=by_name(components),
                artifacts=work.store_artifacts(),
                records=work.records,
                reason="trial",
                started_at=utc_text(begun_ns),
                finished_at=utc_text(time.time_ns()),
                host=platform.node(),
            )

    def _inputs(
        self, stage: StageTask, made: Mapping[str, Execution]
    ) -> dict[str, Any]:
        known = {
            "manifest_path": self.corpus.path,
            "manifest_sha256": self.corpus.sha256,
            **{
                each.name: getattr(self.config, each.name)
                for each in dataclasses.fields(self.config)
            },
            **made,
        }
        names = list(inspect.signature(stage.body).parameters)[1:]
        return {name: known[name] for name in names}

    def _start(self, name: str, system: System | None) -> RunStart:
        now = utc_text(time.time_ns())
        return RunStart(
            run_id=f"trial-{next(self._numbers):03d}-{os.getpid()}",
            flow=name,
            components={
                "system": canonical_sha256(dict(system or {})),
                "configuration": canonical_sha256(to_dict(self.config)),
                "data": self.corpus.sha256,
                "runtime": canonical_sha256(self.runtime),
            },
            preset=self.config.preset,
            is_declared=self.is_declared,
            configuration=to_dict(self.config),
            started_at=now,
            host=platform.node(),
            process_id=os.getpid(),
        )

    def _finish(self, run_id: str, links: list[StageLink], failure: str) -> None:
        self.store.finish_run(
            RunFinish(
                run_id=run_id,
                status="failed" if failure else "completed",
                message=failure or "Every stage is done.",
                finished_at=utc_text(time.time_ns()),
                links=tuple(links),
            )
        )


def _link(execution: Execution, duration_ns: int) -> StageLink:
    return StageLink(
        stage=execution.stage,
        key=execution.key,
        nonce=execution.nonce,
        state="executed",
        reason="trial",
        duration_ns=duration_ns,
    )
