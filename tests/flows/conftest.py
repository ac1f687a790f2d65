"""A small store with one run, for commands that only look at evidence."""

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.config import TrainConfig, setting_paths, to_dict
from model.presets import fixture, override
from warehouse.evidence import from_parquet
from warehouse.reading import record_classes
from warehouse.records.claims import Measurement
from warehouse.runs import RunFinish, RunStart, StageLink
from warehouse.schema import record_from
from warehouse.store import Store

AT = "2026-01-02T03:04:05.000000006Z"
LATER = "2026-01-02T03:04:15.000000006Z"
RUN_ID = "20260102-030405-abcdef"
FILE_TEXT = "parameters, as it were"


def _components(updates: int) -> dict[str, str]:
    """Returns the key of a training, settings as a stage's key has them."""
    train = TrainConfig(updates=updates)
    settings = {
        f"config:train.{path}": json.dumps(
            functools.reduce(getattr, path.split("."), train)
        )
        for path in setting_paths(train)
    }
    return {"stage:name": "train_model", **settings}


def _commit(store: Store, folder: Path, key: str, updates: int, reason: str):
    file = folder / "parameters.npz"
    file.write_text(FILE_TEXT)
    return store.commit(
        stage="train_model",
        key=key * 64,
        components=_components(updates),
        artifacts=[store.put_artifact(file)],
        records=[
            Measurement(claim="1.3", measure="m\x1b[31m", value_count=1, unit="1")
        ],
        reason=reason,
        started_at=AT,
        finished_at=LATER,
        host="here",
    )


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one completed run of one stage that has been executed twice."""
    root = tmp_path_factory.mktemp("small") / "evidence"
    store = Store(root)
    folder = tmp_path_factory.mktemp("files")
    _commit(store, folder, "a", 300, "never executed")
    reason = "config changed: train.updates 300 -> 10"
    execution = _commit(store, folder, "b", 10, reason)
    store.start_run(
        RunStart(
            run_id=RUN_ID,
            flow="qualify",
            components={"system": "1", "data": "2"},
            preset="fixture",
            is_declared=False,
            configuration=to_dict(override(fixture(), ["train.updates=10"])),
            started_at=AT,
            host="here",
            process_id=1,
        )
    )
    link = StageLink(
        stage="train_model",
        key=execution.key,
        nonce=execution.nonce,
        state="executed",
        reason=reason,
        duration_ns=10_000_000_000,
    )
    store.finish_run(
        RunFinish(
            run_id=RUN_ID,
            status="completed",
            message="Every stage is done.",
            finished_at=LATER,
            links=(link,),
        )
    )
    return root


@pytest.fixture(scope="session")
def harness(project: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line in a process of its own, as a user does."""

    def run(*arguments: object, timeout: float = 280, **environment: str):
        return subprocess.run(
            [sys.executable, "-m", "flows.command_line", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(project), **environment},
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


@pytest.fixture
def tiny_harness(project: Path, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts `harness run` with two tiny stages in place of the nine."""
    shutil.copytree(
        project / "tests" / "data" / "tiny_project", tmp_path, dirs_exist_ok=True
    )

    def start(how: str, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(tmp_path / "tiny_harness.py"), "run", *arguments],
            env={
                **os.environ,
                "PYTHONPATH": f"{tmp_path}{os.pathsep}{project}",
                "HARNESS_ROOT": str(tmp_path / "evidence"),
                "HOW": how,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture(scope="session")
def qualified(
    harness: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A store with one run of the preset `fixture`, exactly as a user makes it.

    It takes a minute, so a test that changes it has to leave it whole, or copy it.
    """
    root = tmp_path_factory.mktemp("qualified") / "evidence"
    done = harness("run", "--root", root, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "9 stages executed, 0 reused" in done.stdout
    return root


@pytest.fixture(scope="session")
def recorded(qualified: Path) -> dict[str, list[Any]]:
    """The rows that each stage of that run has written, as records."""
    store, kinds = Store(qualified, is_writable=False), record_classes()
    recorded: dict[str, list[Any]] = {}
    for commit in store.commits():
        # Tests may have had a stage computed again since.
        recorded.setdefault(
            commit.stage,
            [
                record_from(kinds[file.table], row)
                for file in commit.files
                for row in from_parquet(
                    store.evidence_file(commit.nonce, file.table).read_bytes()
                ).to_pylist()
            ],
        )
    return recorded
