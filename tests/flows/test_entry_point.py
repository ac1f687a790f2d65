"""A Ctrl-C while the command line is loaded, or while a query runs, is no traceback."""

import os
import signal
import subprocess
import sys
import threading
from typing import Any

import duckdb
import pytest

from flows import command_line

SCRIPT = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "cyclopts":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from flows.entry_point import main
main()
"""


def test_an_interrupt_during_the_imports_is_one_sentence(project):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=project, capture_output=True, text=True
    )
    assert done.returncode == 130
    assert done.stderr == "Interrupted. Nothing was started yet.\n"


def test_the_entry_point_runs_a_command(project, small_store):
    done = subprocess.run(
        [sys.executable, "-m", "flows.entry_point", "runs", "--root", small_store],
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "harness review" in done.stdout


def test_an_interrupt_of_a_query_is_one_sentence(monkeypatch, capsys):
    """DuckDB raises an error of its own where Python would raise its interrupt."""

    def ask(arguments: Any, **options: Any) -> int:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        endless = "select count(*) from range(100000000) a, range(100000) b"
        with duckdb.connect() as connection:
            connection.execute(endless)
        return 0

    monkeypatch.setattr(command_line, "app", ask)
    with pytest.raises(SystemExit) as ended:
        command_line.main([])
    assert ended.value.code == 130
    assert capsys.readouterr().err.startswith("Interrupted. What was finished is kept")
