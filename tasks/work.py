"""What the body of a stage works with: fetch, run, record, keep.

A body says which artifacts it needs and which program to run; where files lie, what
is hashed, gathered and killed is decided here, once for all stages.
"""

import json
import platform
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from tasks import progress
from tasks.clock import HASHING, PROGRAMS, RECORDING, spending
from tasks.errors import ProgramRefused, ResultsMalformed, RuntimeChanged
from tasks.forked_programs import ForkServer
from tasks.gang import GangRun
from tasks.identity import StageDefinition
from tasks.run_program import Event, ProgramCall, ProgramRun, run_program
from warehouse.records.execution import ProgramExecution
from warehouse.runs import utc_text
from warehouse.schema import record_from
from warehouse.store import Artifact, Execution, Store

DEADLINE_SECONDS = 1800.0


class Work:
    """The working side of one execution of a stage."""

    def __init__(
        self,
        stage: StageDefinition,
        store: Store,
        runtime: Mapping[str, str],
        folder: Path,
        *,
        system: Mapping[str, str] | None = None,
        is_heard: bool = True,
        left_out: Container[str] = (),
        fork_server: ForkServer | None = None,
    ) -> None:
        """Starts with no records and no artifacts.

        Args:
            stage: The stage.
            store: Where inputs come from.
            runtime: The numerics fingerprint that programs have to run under.
            folder: Private to this work.
            system: What its programs run in the place of the built-in system, as
                `model.replaced.install` takes it.
            is_heard: Whether those who follow the run hear of it; a stage that is tried
                out has the name of one that they follow.
            left_out: Programs that are not asked for, because they cannot tell this
                system from the built-in one.
            fork_server: What its programs are forked from; None starts each anew.
        """
        self.records: list[Any] = []
        self.kept: dict[str, Path] = {}
        self._stage = stage
        self._store = store
        self._runtime = dict(runtime)
        self._folder = folder
        self._is_heard = is_heard
        self._left_out = left_out
        self._fork_server = fork_server
        self._system = {"system": dict(system)} if system else {}
        self._tables = {record.TABLE: record for record in stage.writes}  # type: ignore[attr-defined]

    @property
    def is_other_system(self) -> bool:
        """Whether its programs run another system than the built-in one."""
        return bool(self._system)

    @property
    def runtime(self) -> Mapping[str, str]:
        """The numerics fingerprint that programs have to run under."""
        return self._runtime

    def is_asked_for(self, program: str) -> bool:
        """Whether a program is run; a trial leaves out what has nothing to tell."""
        return program not in self._left_out

    def fetch(self, execution: Execution, *names: str) -> dict[str, str]:
        """Returns the paths of artifacts by name, each hashed before it is handed out.

        Args:
            execution: The execution that made them.
            names: Their names; none means all.

        Raises:
            StoreError: The execution made no artifact of that name, or one is missing
                or altered.
        """
        wanted = [execution.artifact(name) for name in names] or execution.artifacts
        with self._spending(HASHING):
            return {each.name: str(self._store.artifact_path(each)) for each in wanted}

    def run(
        self,
        program: str,
        request: Mapping[str, Any],
        *,
        label: str = "",
        kill_when: Callable[[Event], bool] | None = None,
        environment: Mapping[str, str] | None = None,
        module_root: Path | None = None,
        prefix: tuple[str, ...] = (),
        deadline_seconds: float = DEADLINE_SECONDS,
        gather: bool = True,
        is_release_alone: bool = False,
        fork_server: ForkServer | None = None,
    ) -> ProgramRun:
        """Runs a program of this stage in a fresh process and gathers its results.

        Args:
            program: Module name, one of the stage's `programs`.
            request: What the program is asked, as plain JSON data.
            label: Tells several runs of one program apart in the evidence.
            kill_when: Sends SIGKILL at the first progress event it answers with True.
            environment: Variables that differ; the runtime is then not compared.
            module_root: The folder the program's modules come from.
            prefix: Command that starts the program's, for instance in a namespace.
            deadline_seconds: After so many seconds it is killed and has failed.
            gather: Whether its rows and artifacts become the stage's.
            is_release_alone: Whether it runs exported functions and none of a user's
                file, which is then not loaded: what it computes would be in the way.
            fork_server: What it is forked from where its variables are the server's;
                None is what all programs of this work are forked from.

        Returns:
            What is known about the process that ended.
        """
        self._refuse_unknown_program(program)
        is_unused = is_release_alone and "file" in self._system.get("system", {})
        call = ProgramCall(
            program=program,
            request={**request, **({} if is_unused else self._system)},
            folder=Path(tempfile.mkdtemp(dir=self._folder)),
            label=label,
            kill_when=kill_when,
            on_event=lambda event: self._tell({**event, "label": label}),
            environment=environment,
            module_root=module_root,
            prefix=prefix,
            deadline_seconds=deadline_seconds,
            fork_server=fork_server or self._fork_server,
        )
        try:
            with self._spending(PROGRAMS):
                run = run_program(call)
        except ProgramRefused as refused:
            # A stage may expect the refusal; the process was as real as any other.
            self.record(_program_row(refused.run))
            raise
        self.record(_program_row(run))
        if environment is None and run.runtime is not None:
            self._compare_runtime(run)
        if gather:
            self.gather(run)
        return run

    def run_together(
        self,
        program: str,
        requests: Sequence[Mapping[str, Any]],
        run_calls: Callable[[list[ProgramCall]], GangRun],
        *,
        label: str,
        environment: Mapping[str, str],
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> GangRun:
        """Runs a program in several processes that are one; gathers rows, no artifacts.

        Args:
            program: Module name, one of the stage's `programs`.
            requests: What each process is asked.
            run_calls: Starts the calls and brings them to their common end.
            label: Name of the gang in the evidence.
            environment: Variables that differ.
            deadline_seconds: After so many seconds each is killed.

        Returns:
            What is known about the gang that ended; a failed one too.
        """
        self._refuse_unknown_program(program)
        calls = [
            ProgramCall(
                program=program,
                request={**request, **self._system},
                folder=Path(tempfile.mkdtemp(dir=self._folder)),
                label=f"{label}, controller {number}",
                environment=environment,
                deadline_seconds=deadline_seconds,
            )
            for number, request in enumerate(requests)
        ]
        with self._spending(PROGRAMS):
            gang = run_calls(calls)
        for run in gang.runs:
            self.record(_program_row(run))
            self._gather_rows(run.out)
        return gang

    def record(self, *rows: Any) -> None:
        """Adds rows of evidence; their classes must be among the stage's `writes`."""
        for row in rows:
            if type(row) not in (*self._stage.writes, ProgramExecution):
                raise ResultsMalformed(
                    f"{self._stage.name} records a {type(row).__name__}, which is not "
                    "among the records it writes."
                )
            self.records.append(row)

    def scratch(self, name: str) -> Path:
        """Returns a private folder that lasts as long as this execution."""
        folder = self._folder / "scratch" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def keep(self, path: Path, name: str | None = None) -> None:
        """Makes a file an artifact of this execution under a name of its own.

        It goes to the store when the execution is committed and has to stay as it is
        until then: a stage that fails half-way must leave nothing in the store.
        """
        name = name or path.name
        if name in self.kept:
            raise ResultsMalformed(
                f"{self._stage.name} makes two artifacts named {name!r}."
            )
        self.kept[name] = path

    def store_artifacts(self) -> Iterator[Artifact]:
        """Stores every file that was kept, one after another."""
        for name, path in self.kept.items():
            yield self._store.put_artifact(path, name)

    def gather(self, run: ProgramRun) -> None:
        """Makes rows and artifacts of a program the stage's.

        A program that refuses may leave rows about why; what becomes of them is up to
        its stage.
        """
        self._gather_rows(run.out)
        for file in sorted((run.out / "artifacts").glob("*")):
            self.keep(file)

    def _tell(self, event: Mapping[str, Any]) -> None:
        if self._is_heard:
            progress.tell(self._stage.name, **event)

    def _spending(self, part: str) -> AbstractContextManager[None]:
        return spending(self._stage.name, part) if self._is_heard else nullcontext()

    def _refuse_unknown_program(self, program: str) -> None:
        if program not in self._stage.programs:
            raise ResultsMalformed(
                f"{self._stage.name} runs {program}, which is not among its programs, "
                "so a change of it would go unnoticed."
            )

    def _gather_rows(self, out: Path) -> None:
        for file in sorted((out / "records").glob("*.json")):
            self.record(*self._read_rows(file))

    def _read_rows(self, file: Path) -> Iterable[Any]:
        record = self._tables.get(file.stem)
        if record is None:
            raise ResultsMalformed(
                f"{self._stage.name} got rows of {file.stem!r}, which is not among the "
                f"records it writes: {', '.join(sorted(self._tables))}."
            )
        with self._spending(RECORDING):
            return [record_from(record, row) for row in json.loads(file.read_bytes())]

    def _compare_runtime(self, run: ProgramRun) -> None:
        found = run.runtime or {}
        changes = [
            f"{name} {self._runtime.get(name)!r} -> {found.get(name)!r}"
            for name in sorted(found.keys() | self._runtime.keys())
            if found.get(name) != self._runtime.get(name)
        ]
        if changes:
            raise RuntimeChanged(
                f"{run.program} ran under another runtime than the run began with: "
                f"{'; '.join(changes)}. Start the run again."
            )


def _program_row(run: ProgramRun) -> ProgramExecution:
    return ProgramExecution(
        program=run.program,
        label=run.label,
        process_id=run.process_id,
        host=platform.node(),
        started_at=utc_text(run.started_at_ns),
        duration_ns=run.duration_ns,
        peak_memory_bytes=run.peak_memory_bytes,
        return_code=run.return_code,
    )
