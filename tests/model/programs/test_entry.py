"""A program dies with its parent, refuses in one sentence, and leaves whole rows."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from model.programs import entry

PROGRAM = """
import subprocess, sys, time
from pathlib import Path
from model.programs import entry
from model.refusal import ReasonCode, Refused

def main(request, out):
    how = request["how"]
    print("a library that prints")
    entry.report(event="started", how=how)
    entry.write_rows(out, "numbers", [{"number": 1}])
    entry.write_rows(out, "numbers", [{"number": 2}])
    if how == "refuse":
        fields = ["splits.train", "splits.heldout"]
        raise Refused(ReasonCode.SPLIT_EMPTY, "one sentence", fields)
    if how == "crash":
        raise ZeroDivisionError("a bug")
    if how == "not finite":
        entry.write_rows(out, "numbers", [{"number": float("nan")}])
    if how == "spawn":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        entry.report(event="spawned")
    if how in ("wait", "spawn"):
        time.sleep(60)
    entry.artifact(out, "made.txt").write_text("made")

entry.run(main)
"""


class Program:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "program.py").write_text(PROGRAM)

    def start(self, how: str, **options: Any) -> subprocess.Popen[str]:
        out = self.folder / "out"
        out.mkdir()
        request = self.folder / "request.json"
        request.write_text(json.dumps({"out": str(out), "how": how}))
        return subprocess.Popen(
            [sys.executable, str(self.folder / "program.py"), str(request)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def run(self, how: str) -> tuple[int, str, str]:
        process = self.start(how, stdin=subprocess.DEVNULL)
        stdout, stderr = process.communicate(timeout=30)
        return process.returncode, stdout, stderr

    def written(self, name: str) -> Any:
        return json.loads((self.folder / "out" / name).read_bytes())


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_a_program_that_ends_well_describes_its_process(program: Program) -> None:
    status, stdout, stderr = program.run("well")
    assert status == 0, stderr
    described = program.written("program.json")
    assert described["process_id"] > 0
    assert described["duration_ns"] > 0
    assert 2**20 < described["peak_memory_bytes"] < 2**30
    assert described["runtime"] is None, "JAX was not imported"
    assert program.written("records/numbers.json") == [{"number": 1}, {"number": 2}]
    assert (program.folder / "out/artifacts/made.txt").read_text() == "made"
    assert [json.loads(line) for line in stdout.splitlines()] == [
        {"event": "started", "how": "well"}
    ]
    assert "a library that prints" in stderr


def test_a_refusal_is_one_line_exit_code_2_and_a_file_with_its_code(
    program: Program,
) -> None:
    status, _, stderr = program.run("refuse")
    assert status == entry.EXIT_REFUSED == 2
    assert stderr.splitlines()[-1] == "one sentence"
    assert "Traceback" not in stderr
    assert program.written("refused.json") == {
        "code": "split_empty",
        "message": "one sentence",
        "fields": ["splits.train", "splits.heldout"],
    }


@pytest.mark.parametrize(("how", "words"), [("crash", "a bug"), ("not finite", "nan")])
def test_a_bug_fails_with_a_traceback_and_keeps_the_rows_before_it(
    program: Program, how: str, words: str
) -> None:
    status, _, stderr = program.run(how)
    assert status == 1
    assert "Traceback" in stderr
    assert words in stderr
    assert not (program.folder / "out/program.json").exists()
    assert program.written("records/numbers.json") == [{"number": 1}, {"number": 2}]


def test_a_program_started_by_hand_does_not_mind_a_closed_input(
    program: Program,
) -> None:
    """Over ssh without a terminal, stdin is a pipe that is at its end at once."""
    process = program.start("well", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 0, stderr


def test_a_program_dies_when_the_pipe_of_its_parent_closes(program: Program) -> None:
    watching = {**os.environ, entry.WATCHES_PARENT: "1"}
    process = program.start("wait", stdin=subprocess.PIPE, env=watching)
    assert process.stdout is not None
    assert process.stdin is not None
    assert "started" in process.stdout.readline()
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(timeout=10) == entry.EXIT_PARENT_DIED
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()


def test_what_a_program_started_dies_with_it(program: Program) -> None:
    """Both hold the program's output, which ends only when neither is left."""
    watching = {**os.environ, entry.WATCHES_PARENT: "1"}
    process = program.start(
        "spawn", stdin=subprocess.PIPE, env=watching, start_new_session=True
    )
    assert process.stdout is not None and process.stdin is not None
    assert "started" in process.stdout.readline()
    assert "spawned" in process.stdout.readline()
    process.stdin.close()
    process.stdin = None
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"out": 3}', None])
def test_a_request_that_is_none_is_refused_in_one_line(
    tmp_path: Path, content: str | None
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    request = tmp_path / "request.json"
    if content is not None:
        request.write_text(content)
    finished = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), str(request)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 2
    assert len(finished.stderr.splitlines()) == 1
    assert "request" in finished.stderr
