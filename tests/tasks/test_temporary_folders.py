"""A folder goes with its work, and one that a killed process left goes later."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tasks.temporary_folders import remove_abandoned, temporary_folder

SCRIPT = """
import os, signal
from tasks.temporary_folders import temporary_folder
with temporary_folder("train_model") as folder:
    (folder / "checkpoint").write_text("half")
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    tempfile.tempdir = None


def _age(folder):
    os.utime(folder, (1, 1))


def test_a_folder_goes_with_its_work(place):
    with temporary_folder("train_model") as folder:
        (folder / "x").write_text("x")
        assert folder.parent == place
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_is_removed_later(place):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL
    left = Path(done.stdout.strip())
    assert (left / "checkpoint").exists()
    remove_abandoned()
    assert left.exists(), "it is not old enough for its number to be surely free"
    _age(left)
    with temporary_folder("train_model"):
        assert not left.exists()


def test_what_somebody_may_need_stays(place):
    theirs = place / "harness-notes-of-mine"
    theirs.mkdir()
    with temporary_folder("train_model") as folder:
        for each in (folder, theirs):
            _age(each)
        remove_abandoned()
        assert folder.exists() and theirs.exists()
