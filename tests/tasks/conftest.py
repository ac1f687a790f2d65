"""A tiny project of two stages, on disk, so that a test may change its source."""

import importlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.tasks.certificates import Certified, Plant
from tests.tasks.stage_maker import change_model

PACKAGES = ("tiny", "tiny_tasks")


class TinyProject:
    """The tiny project and the store its stages write to."""

    def __init__(self, sources: Path, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "evidence"
        shutil.copytree(sources, folder, dirs_exist_ok=True)

    def replace(self, name: str, old: str, new: str) -> None:
        """Changes a source file, and fails if there is nothing to change."""
        text = (self.folder / name).read_text()
        if old not in text:
            raise AssertionError(f"{name} does not contain {old!r}")
        (self.folder / name).write_text(text.replace(old, new))

    @property
    def stages(self) -> SimpleNamespace:
        """The stages as Prefect tasks."""
        names = ("scale_number", "add_one", "misbehave")
        found = {n: importlib.import_module(f"tiny_tasks.{n}") for n in names}
        return SimpleNamespace(**{n: getattr(found[n], n) for n in names})


@pytest.fixture
def tiny(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TinyProject]:
    tiny_project = TinyProject(project / "tests" / "data" / "tiny_project", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("HARNESS_ROOT", str(tiny_project.root))
    importlib.invalidate_caches()
    yield tiny_project
    for name in [n for n in sys.modules if n.partition(".")[0] in PACKAGES]:
        del sys.modules[name]


@pytest.fixture
def run_both(tiny: TinyProject, prefect_server: None) -> Callable[..., dict[str, str]]:
    """Runs both stages in a flow; answers the state and message of each."""
    from prefect import flow

    @flow
    def both(number: int, runtime: dict[str, str], is_fresh: bool) -> dict[str, str]:
        stages = tiny.stages
        if is_fresh:
            fresh = stages.scale_number.with_options(refresh_cache=True)
            stages.scale_number = fresh
        scaled = stages.scale_number.submit(number, place="here", runtime=runtime)
        added = stages.add_one.submit(scaled, runtime=runtime)
        states = {}
        for name, future in (("scale_number", scaled), ("add_one", added)):
            future.wait()
            states[name] = f"{future.state.name}: {future.state.message}"
            future.result()
        return states

    def run(
        number: int = 3, runtime: dict[str, str] | None = None, is_fresh: bool = False
    ) -> dict[str, str]:
        return both(number, runtime or {"jax": "0.0"}, is_fresh)

    return run


@pytest.fixture(scope="session")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    """The small training that certificates are made of, once for all of them."""
    return Certified(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def plant(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Lets programs run from a copy of the model with one planted defect."""

    def plant_defect(module: str, right: str, wrong: str) -> None:
        change_model(project, tmp_path, module, right, wrong)
        monkeypatch.setattr("tasks.run_program.root_of", lambda program: tmp_path)

    return plant_defect
