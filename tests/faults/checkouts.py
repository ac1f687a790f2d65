"""The same checkout in another folder: no defect, and it changes no byte.

A program is really run from both: what is lowered is the part of a release into which
paths of a host like to find their way. That the key of a stage stays is another scene.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from model.config import to_dict
from model.presets import fixture
from tasks.program_environment import root_of
from tasks.run_program import ProgramCall, run_program
from tests.faults import NO_REPORT, Fault, Scene, Stage
from tests.faults.declaring import of_file

LOWER = "model.programs.export_for_targets"
WRITES, WITH_PATH = "write_bytes(data)", "write_bytes(data + __file__.encode())"


def checkouts(stage: Stage) -> None:
    """Programs of a target lowered from this checkout, and from one that is given."""
    here = root_of("model")
    home = SimpleNamespace(root=here, folder=stage.folder)
    stage.spoil(home)
    there = _lowered(home.root, stage.folder / "lowered")
    stage.promise("9.3", "checkouts", lowered=(_here(), there))


@functools.cache
def _here() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return _lowered(root_of("model"), Path(folder))


def _lowered(root: Path, folder: Path) -> str:
    """Returns one digest of all files that the program of a checkout makes."""
    folder.mkdir(parents=True, exist_ok=True)
    config = fixture()
    request = {"model": to_dict(config.model), "train": to_dict(config.train)}
    call = ProgramCall(program=LOWER, request=request, folder=folder, module_root=root)
    digest = hashlib.sha256()
    for path in sorted((run_program(call).out / "artifacts").iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _copied(home: Any) -> None:
    copy = home.folder / "another folder"
    shutil.copytree(home.root / "model", copy / "model")
    home.root = copy


def _with_paths(home: Any) -> None:
    _copied(home)
    program = home.root / "model" / "programs" / "export_for_targets.py"
    text = program.read_text()
    assert text.count(WRITES) == 1
    program.write_text(text.replace(WRITES, WITH_PATH))


def _moved(own: Any) -> None:
    """Takes the source of a made stage to another folder."""
    folder = own.package.parent
    elsewhere = folder.rename(folder.with_name("elsewhere"))
    own.package = elsewhere / own.package.name
    sys.path[sys.path.index(str(folder))] = str(elsewhere)
    importlib.invalidate_caches()


_file: Callable[..., Fault] = partial(of_file, "workflow")
FOLDER = "the folder of the checkout"
SCENES = (Scene(name="checkouts", play=checkouts),)
FAULTS = (
    _file(
        "paths-of-the-host-in-a-program",
        *("checkouts", "reuse", FOLDER),
        "A lowered program holds the path of the checkout that lowered it.",
        NO_REPORT,
        _with_paths,
    ),
    Fault(
        name="another-checkout-folder",
        group="workflow",
        summary="A program is run from a copy of the checkout in another folder.",
        source="none needed: the same source is the same system",
        claim="reuse",
        replaces=FOLDER,
        scene="checkouts",
        file=_copied,
        is_benign=True,
    ),
    Fault(
        name="source-in-another-folder",
        group="workflow",
        summary="The source of a stage lies in another folder than when it ran.",
        source="none needed: the same source is the same system",
        claim="reuse",
        replaces=FOLDER,
        scene="keys",
        file=_moved,
        is_benign=True,
    ),
)
