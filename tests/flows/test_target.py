"""The flow `target` makes a release and says what its target lacks, on real input."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from flows.target_finding import target_finding

ASKED = """
from flows.parameters import Settings
from flows.start_flow import run_flow
settings = Settings.from_overrides(["target.accelerator=v5litepod-4"])
print(run_flow("target", preset_name="fixture", settings=settings))
"""


@pytest.mark.timeout(600)
def test_a_target_that_is_not_there_is_not_demonstrated(
    qualified, tmp_path, monkeypatch
):
    """The stages of the whole run are reused; only the other target is asked for."""
    root = tmp_path / "evidence"
    shutil.copytree(qualified, root)
    monkeypatch.setenv("HARNESS_ROOT", str(root))
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(" reused in ") == 4
    run_id = done.stdout.strip()
    told = target_finding(run_id)
    assert told.startswith("Not demonstrated: v5litepod-4 was asked for; ")
    assert "libtpu" in told or "platform 'tpu'" in told
    assert re.search(r"\. The \d+ steps that would .* are in target_plan\.$", told)


def test_a_target_that_is_there_is_not_called_missing(monkeypatch):
    import flows.target_finding as finding

    rows = {"refusals": [{"received": None, "message": ""}]}
    rows["target_plan"] = [{"accelerator": "v5litepod-4"}]
    monkeypatch.setattr(finding, "open_run", lambda root, run: None)
    monkeypatch.setattr(finding, "view_rows", lambda _, view, **wanted: rows[view])
    assert target_finding("run").startswith("Not demonstrated: v5litepod-4 is there; ")
