"""What the system refuses is one sentence and exit code 2, never a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")


def sentence_of(done: subprocess.CompletedProcess[str]) -> str:
    """Returns the one sentence of a command that could not run."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("harness: ")
    return last


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize(
    "arguments",
    [("sql", "select 1"), ("runs",), ("review", "--json"), ("--help",)],
    ids=" ".join,
)
def test_output_that_cannot_be_written_is_told(arguments, project, small_store):
    root = [] if arguments == ("--help",) else ["--root", str(small_store)]
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "flows.command_line", *arguments, *root],
            cwd=project,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert "No space left on device" in sentence_of(done)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["sql 'select unnest(range(60000))'", "runs"])
def test_a_reader_that_leaves_at_once_ends_quietly(command, project, small_store):
    """The reader is gone before the first line, however little is written."""
    done = subprocess.run(
        f"set -o pipefail; {sys.executable} -m flows.command_line {command} "
        f"--root {small_store} | (exec <&-; exec sleep 0)",
        shell=True,
        executable="/bin/bash",
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("folder", ["file/folder", "file"])
def test_an_export_to_an_impossible_folder_is_told(
    folder, harness, small_store, tmp_path
):
    (tmp_path / "file").write_text("no folder")
    done = harness("export", "latest", tmp_path / folder, "--root", small_store)
    assert "cannot be written" in sentence_of(done)
    assert "Not a directory" in sentence_of(done)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("home", ["/proc", "file"])
def test_a_run_without_a_cache_folder_is_told(home, harness, tmp_path):
    (tmp_path / "file").write_text("no folder")
    done = harness(
        *("run", "--root", tmp_path / "evidence"),
        HOME=str(tmp_path / home),
        XDG_CACHE_HOME="",
        PREFECT_API_URL="",
    )
    assert "text-harness" in sentence_of(done)
    assert "set XDG_CACHE_HOME" in sentence_of(done)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/api", "nonsense"])
def test_a_prefect_server_that_does_not_answer_is_named(address, harness, tmp_path):
    done = harness("run", "--root", tmp_path / "evidence", PREFECT_API_URL=address)
    assert f"at {address}" in sentence_of(done)
    assert "unset PREFECT_API_URL" in sentence_of(done)
