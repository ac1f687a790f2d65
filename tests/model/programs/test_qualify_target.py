"""The script for a target ends every program that it starts, however it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from model.programs import qualify_target

HANGING = 'import time; print(\'{"event": "update"}\', flush=True); time.sleep(60)'


def started(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_program_that_never_comes_to_its_kill_is_ended_in_time(monkeypatch) -> None:
    monkeypatch.setattr(qualify_target, "DEADLINE_SECONDS", 0.5)
    begun = time.monotonic()
    process = started(HANGING)
    code = qualify_target._ended(process, "paused")
    assert code == qualify_target.KILLED_BY_DEADLINE
    assert time.monotonic() - begun < 20
    assert process.poll() is not None


def test_a_program_is_killed_at_its_event_and_not_as_late() -> None:
    assert qualify_target._ended(started(HANGING), "update") == -signal.SIGKILL
    assert qualify_target._ended(started("print('{}')"), "update") == 0


def test_a_script_that_is_told_to_end_leaves_no_program(tmp_path: Path) -> None:
    """Its child would go on with the devices, and with files that nobody reads."""
    out = tmp_path / "out"
    script = subprocess.Popen(
        [
            *(sys.executable, "-m", "model.programs.qualify_target", str(out)),
            *("--expect-platform", "cpu"),
        ],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert script.stderr is not None
    assert script.stderr.readline() == "probe ...\n"
    children: list[int] = []
    patient_until = time.monotonic() + 60
    while not children and time.monotonic() < patient_until:
        tasks = Path(f"/proc/{script.pid}/task/{script.pid}/children")
        children = [int(number) for number in tasks.read_text().split()]
        time.sleep(0.05)
    script.terminate()
    told = script.communicate(timeout=60)[1]
    assert script.returncode != 0 and "told to end by SIGTERM" in told
    for number in children:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["stopped_at"] == "probe"
