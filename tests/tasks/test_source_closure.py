"""The closure of a stage holds what it imports, found without importing any of it."""

import os
import subprocess
import sys

import pytest

from tasks.source_closure import NOT_INSTALLED, UnknownModule, source_closure


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes modules of a package `sample`; answers a function that adds one."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, source):
        file = tmp_path / "sample" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)

    write("__init__.py", "")
    yield write
    sys.modules.pop("sample", None)


def _names(*modules):
    return [name for name, _ in source_closure(*modules).modules]


def test_imports_are_followed_through_functions_and_relative_names(package):
    package("top.py", "def f():\n    from .inner import deep\n")
    package("inner/__init__.py", "")
    package("inner/deep.py", "from .. import side\nfrom ..other import value\n")
    package("side.py", "import json\n")
    package("other.py", "value = 1\n")
    package("stranger.py", "value = 1\n")
    assert _names("sample.top") == [
        "sample",
        "sample.inner",
        "sample.inner.deep",
        "sample.other",
        "sample.side",
        "sample.top",
    ]


def test_imports_for_type_checking_count_and_cycles_end(package):
    package(
        "a.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import sample.b\n",
    )
    package("b.py", "import sample.a\n")
    assert _names("sample.a") == ["sample", "sample.a", "sample.b"]


def test_comments_and_layout_change_nothing_but_a_constant_does(package):
    package("a.py", "X = 1\n")
    before = source_closure("sample.a")
    package("a.py", "# why\nX   =  1   # one\n\n")
    assert source_closure("sample.a") == before
    package("a.py", "X = 2\n")
    assert source_closure("sample.a") != before


def test_a_parent_package_is_part_of_what_its_modules_are(package):
    package("a.py", "X = 1\n")
    before = source_closure("sample.a")
    package("__init__.py", "Y = 1\n")
    assert source_closure("sample.a") != before


def test_nothing_is_imported_to_find_out(package):
    package("a.py", "import sample.explodes\n")
    package("explodes.py", "raise SystemExit('imported')\n")
    assert "sample.explodes" in _names("sample.a")
    assert "sample" not in sys.modules


def test_installed_versions_of_imported_distributions_are_listed(package):
    package("a.py", "import numpy.linalg, json, no_such_thing\nimport PIL.Image\n")
    found = dict(source_closure("sample.a").distributions)
    numpy = pytest.importorskip("numpy")
    assert found.pop("numpy") == numpy.__version__
    assert found.pop("no_such_thing") == NOT_INSTALLED
    # A distribution named unlike its package: PIL comes with pillow, where installed.
    assert set(found) <= {"PIL", "pillow"} and len(found) == 1


def test_a_named_module_that_does_not_exist_is_an_error(package):
    with pytest.raises(UnknownModule, match="no source file"):
        source_closure("sample.absent")


def test_finding_the_closure_of_a_stage_does_not_load_jax(project):
    script = (
        "import sys\n"
        "from tasks.source_closure import source_closure\n"
        "found = dict(source_closure('model.programs.entry').modules)\n"
        "assert 'model.refusal' in found, found\n"
        "loaded = {'jax', 'numpy', 'model', 'prefect'} & sys.modules.keys()\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=project, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


_AT_ONCE = """
import ast, gc, pathlib, sys, threading, time
from tasks import source_closure
class Yielding:
    def __init__(self): self.me = self
    def __del__(self): time.sleep(0)
sys.setswitchinterval(1e-6)
gc.set_threshold(50, 2, 2)
sources = [path.read_bytes() for path in pathlib.Path("model").rglob("*.py")]
def analyse():
    for source in sources:
        for _ in range(20): Yielding()
        source_closure._analyse.__wrapped__(source, "model", True)
def parse():
    for source in sources:
        for _ in range(20): Yielding()
        try: ast.parse(source)
        except SystemError: pass
threads = [threading.Thread(target=target) for target in (analyse, analyse, parse)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_stages_that_start_at_once_can_all_be_analysed(project):
    """Python 3.11 fails where threads make syntax trees at the same time.

    A collection of garbage within `ast.parse` lets the other thread in, which happens
    in one run of many; here it is made to happen, beside a library that makes trees.
    """
    ended = subprocess.run(
        [sys.executable, "-c", _AT_ONCE],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.stderr == ""
