"""Scenes about keys and reuse, programs that a stage starts, and baselines."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks import identity
from tasks.errors import StageError
from tasks.work import Work
from tests.faults import Scene, Stage
from tests.faults.made_stores import KEY, STAGE, new_store, number, told
from tests.store_maker import StoreMaker
from tests.warehouse.damaged import flip
from warehouse.records.claims import Measurement
from warehouse.store import Artifact, Execution

FOUND, NEVER = "found", "NeverExecuted"
SETTLED_SECONDS = 0.15
"""After it a file is remembered; `warehouse.durable` waits for less."""
PROGRAM = """
import json, pathlib, sys, time

request = json.loads(pathlib.Path(sys.argv[1]).read_text())
out, act = pathlib.Path(request["out"]), request["act"]
table = "losses" if act == "other_table" else "measurements"
row = {"claim": "1.1", "measure": "errors", "value_count": 0, "unit": "errors"}
(out / "records").mkdir()
(out / "records" / f"{table}.json").write_text(json.dumps([row]))
runtime = {"jax": "another" if act == "other_runtime" else "one"}
(out / "program.json").write_text(json.dumps({"runtime": runtime}))
if act == "late":
    time.sleep(3)
sys.exit(act == "failed")
"""


class Keys:
    """A made stage whose source lies in a folder, and what decides its key."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "source" / "made_stage"
        self.package.mkdir(parents=True)
        (self.package / "__init__.py").write_text("")
        (self.package / "body.py").write_text("from made_stage import part\n")
        (self.package / "part.py").write_text("SCALE = 1\n")
        sys.path.insert(0, str(folder / "source"))
        importlib.invalidate_caches()
        self.definition = identity.StageDefinition(
            name=STAGE,
            module="made_stage.body",
            programs=(),
            writes=(Measurement,),
            measures_time=True,
        )
        made_by = Execution(
            stage="earlier",
            key=KEY,
            nonce="n1",
            artifacts=(Artifact(name="tokens", sha256="0" * 64, bytes=1),),
        )
        self.inputs: dict[str, Any] = {"updates": 300, "tokens": made_by}
        self.runtime = {"jaxlib": "0.10.2"}
        self.machine = {"cores": "2"}

    def key(self) -> str:
        """Returns the key of the stage as things are now."""
        return identity.key_of(
            identity.key_components(
                self.definition, self.inputs, self.runtime, self.machine
            )
        )


def keys(stage: Stage) -> None:
    """One thing changed at a time, and the store asked again."""
    made = new_store(stage.folder)
    own = Keys(stage.folder)
    made.execute(STAGE, [number(0)], key=own.key())
    stage.spoil(own)

    def asked(changed: Mapping[str, Any] | None = None, source: str = "") -> str:
        before = dict(vars(own))
        vars(own).update(changed or {})
        file = own.package / f"{source}.py"
        text = file.read_text() if source else ""
        if source:
            file.write_text(f"{text}OTHER = 2\n")
        try:
            found = told(lambda: made.store.find(own.key(), STAGE).stage)
        finally:
            vars(own).update(before)
            if source:
                file.write_text(text)
        return FOUND if found == STAGE else found

    tokens = own.inputs["tokens"]
    other = Artifact(name="tokens", sha256="1" * 64, bytes=1)
    again = Execution(stage="earlier", key=KEY, nonce="n2", artifacts=tokens.artifacts)
    changed = Execution(stage="earlier", key=KEY, nonce="n1", artifacts=(other,))
    stage.promise(
        "9.3",
        "keys",
        same=(FOUND, asked()),
        config=(NEVER, asked({"inputs": {**own.inputs, "updates": 301}})),
        source=(NEVER, asked(source="body")),
        imported=(NEVER, asked(source="part")),
        runtime=(NEVER, asked({"runtime": {"jaxlib": "0.11.0"}})),
        input=(NEVER, asked({"inputs": {**own.inputs, "tokens": changed}})),
        machine=(NEVER, asked({"machine": {"cores": "64"}})),
        other_nonce=(FOUND, asked({"inputs": {**own.inputs, "tokens": again}})),
        unnameable=("Unnameable", asked({"inputs": {"splits": {"train"}}})),
    )


def kept_files(stage: Stage) -> None:
    """An execution of which one file was changed since."""
    made = new_store(stage.folder)
    file = stage.folder / "state.npz"

    def found(name: str, change: Any = None) -> str:
        file.write_bytes(name.encode() * 200)
        execution = made.execute(STAGE, [number(0)], key=name, artifacts=[file])
        if change is not None:
            change(made, execution)
        said = told(lambda: made.store.find(name, STAGE).stage)
        return FOUND if said == STAGE else said

    gone = "NoExecution"
    stage.promise(
        "9.3",
        "kept_files",
        whole=(FOUND, found("whole")),
        artifact=(gone, found("artifact", lambda *made: flip(_artifact(*made), 0.5))),
        artifact_with_old_times=(gone, found("old_times", _flip_and_hide)),
        evidence=(gone, found("evidence", lambda *made: flip(_evidence(*made), 0.5))),
        gone=(gone, found("gone", lambda *made: _artifact(*made).unlink())),
    )


def _artifact(made: StoreMaker, execution: Execution) -> Path:
    digest = execution.artifacts[0].sha256
    return made.store.root / "artifacts" / digest[:2] / digest


def _evidence(made: StoreMaker, execution: Execution) -> Path:
    return made.store.evidence_file(execution.nonce, "measurements")


def _flip_and_hide(made: StoreMaker, execution: Execution) -> None:
    """Changes a byte after the digest was taken, and sets the old times again."""
    path = _artifact(made, execution)
    time.sleep(SETTLED_SECONDS)
    made.store.artifact_path(execution.artifacts[0])
    before = path.stat()
    flip(path, 0.5)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def source_while_running(stage: Stage) -> None:
    """A stage during which its own source is edited."""
    stages = importlib.import_module("tasks.stage")
    reuse = importlib.import_module("tasks.reuse")
    own, made = Keys(stage.folder), new_store(stage.folder)
    arguments = {"runtime": own.runtime}

    def kept(is_edited: bool) -> str:
        components = reuse.components_of_call(own.definition, arguments)

        def body(work: Work) -> None:
            work.record(number(0))
            if is_edited:
                (own.package / "part.py").write_text("SCALE = 2\n")

        execution = stages._execute(
            made.store, own.definition, body, arguments, components, "made up"
        )
        return f"kept {execution.stage}"

    stage.promise(
        "9.3",
        "source_while_running",
        unchanged=(f"kept {STAGE}", told(lambda: kept(False))),
        changed=("InputChanged", told(lambda: kept(True))),
    )


def programs(stage: Stage) -> None:
    """A program that does as it is asked, well and badly."""
    made = new_store(stage.folder)
    root = stage.folder / "root"
    root.mkdir()
    for name in ("made_program", "undeclared_program"):
        (root / f"{name}.py").write_text(PROGRAM)
    definition = identity.StageDefinition(
        name=STAGE, module="m", programs=("made_program",), writes=(Measurement,)
    )

    def rows(act: str) -> str:
        folder = stage.folder / act
        folder.mkdir()
        work = Work(definition, made.store, {"jax": "one"}, folder)
        program = "undeclared_program" if act == "other_program" else "made_program"
        try:
            work.run(
                program, {"act": act}, module_root=root, deadline_seconds=_deadline(act)
            )
        except StageError as error:
            return type(error).__name__
        kept = [row for row in work.records if isinstance(row, Measurement)]
        return f"{len(kept)} rows"

    expected = {
        "good": "1 rows",
        "failed": "ProgramFailed",
        "late": "ProgramTimedOut",
        "other_table": "ResultsMalformed",
        "other_runtime": "RuntimeChanged",
        "other_program": "ResultsMalformed",
    }
    said = {act: (text, rows(act)) for act, text in expected.items()}
    stage.promise("9.5", "programs", **said)


def _deadline(act: str) -> float:
    return 1.0 if act == "late" else 60.0


SCENES = tuple(
    Scene(name=play.__name__, play=play)
    for play in (keys, kept_files, source_while_running, programs)
)
