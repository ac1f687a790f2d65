"""The nine stages one after another, without Prefect, evidence, keys or reuse.

The flow itself is called, with stand-ins for its tasks: each runs the stage's own body
at once, with a `Work` that starts the same programs and keeps no more than their files.
So order, arguments and programs cannot drift from the real flow.

    python -m tests.bench.plain_dag FOLDER '{"preset_name": "fixture"}'

prints the seconds from the first program's start to the last one's end; imports of
Prefect, which the stage modules need to be read, are outside.
"""

import contextlib
import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import flows.qualify as qualify_module
from flows.parameters import Settings
from tasks.run_program import ProgramCall, ProgramRun, run_program
from tasks.stage import StageTask
from warehouse.store import Artifact, Execution


class PlainWork:
    """What a stage's body calls, reduced to starting programs and passing files."""

    def __init__(self, stage: str, root: Path, files: dict[str, Path]) -> None:
        """Starts with an empty private folder below `root`."""
        self.stage = stage
        self.artifacts: dict[str, Artifact] = {}
        self.peak_memory_bytes = 0
        self._files = files
        self._folder = root / stage
        self._folder.mkdir(parents=True)

    def fetch(self, execution: Execution, *names: str) -> dict[str, str]:
        wanted = [execution.artifact(name) for name in names] or execution.artifacts
        return {each.name: str(self._files[each.sha256]) for each in wanted}

    def run(
        self,
        program: str,
        request: Mapping[str, Any],
        *,
        gather: bool = True,
        **named: Any,
    ) -> ProgramRun:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        run = run_program(
            ProgramCall(program=program, request=request, folder=folder, **named)
        )
        self.peak_memory_bytes = max(self.peak_memory_bytes, run.peak_memory_bytes or 0)
        if gather:
            for file in sorted((run.out / "artifacts").glob("*")):
                self.keep(file)
        return run

    def record(self, *rows: Any) -> None:
        """Keeps nothing: evidence is what this run does without."""

    def scratch(self, name: str) -> Path:
        folder = self._folder / "scratch" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def keep(self, path: Path, name: str | None = None) -> None:
        # Stages name files by content, so that much hashing is left.
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        kept = self._folder / f"{digest}-{name or path.name}"
        shutil.copyfile(path, kept)
        self._files[digest] = kept
        self.artifacts[name or path.name] = Artifact(
            name=name or path.name, sha256=digest, bytes=path.stat().st_size
        )


class PlainStage:
    """Stands in for a task: `submit` runs the body and returns when it is done."""

    def __init__(self, task: StageTask, root: Path, files: dict[str, Path]) -> None:
        """Wraps the task of one stage."""
        self.task = task
        self.seconds = 0.0
        self._root = root
        self._files = files

    def submit(self, *inputs: Any, **_: Any) -> Execution:
        started = time.monotonic()
        work = PlainWork(self.task.definition.name, self._root, self._files)
        self.task.body(work, *inputs)
        self.seconds = time.monotonic() - started
        artifacts = tuple(work.artifacts.values())
        return Execution(
            stage=work.stage, key="0" * 64, nonce="0" * 32, artifacts=artifacts
        )


class _NoRun:
    def follow(self, *executions: Execution) -> str:
        return ",".join(execution.stage for execution in executions)


@contextlib.contextmanager
def _not_recorded(_: object) -> Iterator[_NoRun]:
    yield _NoRun()


def main(arguments: list[str]) -> None:
    """Runs the stages and prints one JSON line."""
    root, asked = Path(arguments[0]), json.loads(arguments[1])
    files: dict[str, Path] = {}
    stages = [PlainStage(task, root, files) for task in qualify_module.STAGES]
    for stage in stages:
        setattr(qualify_module, stage.task.definition.name, stage)
    qualify_module.recorded_run = _not_recorded  # type: ignore[assignment]
    started = time.monotonic()
    settings = Settings.from_overrides(asked.pop("overrides", ()))
    qualify_module.qualify.fn(settings=settings, **asked)
    seconds = time.monotonic() - started
    each = {stage.task.definition.name: round(stage.seconds, 3) for stage in stages}
    print(json.dumps({"seconds": seconds, "stages": each}))


if __name__ == "__main__":
    main(sys.argv[1:])
