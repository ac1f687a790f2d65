"""A Ctrl-C while the command line is still being loaded is no traceback."""

import subprocess
import sys

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
