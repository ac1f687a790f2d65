"""A program is watched from start to end and never outlives the one who started it.

All of it holds for one that is started as a command and for one that is forked.
"""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from model.called import Call, Notes
from tasks import children
from tasks.errors import (
    FolderUnusable,
    ProgramFailed,
    ProgramRefused,
    ProgramsStopped,
    ProgramTimedOut,
)
from tasks.forked_programs import ForkServer
from tasks.program_environment import private_cache, program_environment
from tasks.run_program import KILLED, ProgramCall, run_program
from tests.processes import are_gone, is_running

HANGS_SECONDS = 600
"""How long a program that hangs would go on by itself."""


@pytest.fixture(params=["started", "forked"])
def fork_server(request, tiny):
    """What programs are forked from, or None."""
    if request.param == "started":
        yield None
        return
    server = ForkServer(())
    yield server
    server.end()


@pytest.fixture
def call(tiny, tmp_path_factory, fork_server):
    """Answers a call of the misbehaving program."""

    def make(how, **options):
        return ProgramCall(
            program="tiny.programs.misbehave",
            request={"how": how},
            folder=tmp_path_factory.mktemp("program"),
            fork_server=fork_server,
            **options,
        )

    return make


def test_a_program_that_ends_well_is_described(call):
    heard = []
    run = run_program(call("behave", on_event=heard.append, label="once"))
    assert run.return_code == 0
    assert run.events == heard == [{"event": "ready", "pid": run.process_id}]
    assert run.label == "once"
    assert run.peak_memory_bytes == 1
    assert run.duration_ns > 0
    assert (run.out / "artifacts" / "misbehaved.txt").read_text() == "0"
    assert run.process_id != os.getpid()
    assert os.getpgid(0) != run.process_id


def test_a_refusal_keeps_its_code_and_sentence(call):
    with pytest.raises(ProgramRefused, match=r"^The split is empty\.$") as refused:
        run_program(call("refuse"))
    assert refused.value.code == "split_empty"


def test_a_crash_quotes_the_last_lines_of_standard_error(call):
    with pytest.raises(ProgramFailed, match="exit code 1") as failed:
        run_program(call("crash"))
    assert "ValueError: the loss is a walnut" in str(failed.value)


def test_anything_but_events_on_standard_output_is_a_failure(call):
    with pytest.raises(ProgramFailed, match="'hello"):
        run_program(call("chatter"))


def test_a_deadline_ends_a_program_that_hangs(call):
    heard = []
    started = time.monotonic()
    with pytest.raises(ProgramTimedOut, match=r"deadline of 0\.5 s"):
        run_program(call("hang", deadline_seconds=0.5, on_event=heard.append))
    assert time.monotonic() - started < HANGS_SECONDS / 10
    assert are_gone([event["pid"] for event in heard])


def test_a_wanted_kill_is_a_signal_and_no_error(call):
    run = run_program(call("hang", kill_when=lambda event: event["event"] == "ready"))
    assert run.return_code == KILLED == -signal.SIGKILL
    assert run.peak_memory_bytes is None
    assert are_gone([run.process_id])


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (signal.SIGTERM, "ended with SIGTERM"),
        (signal.SIGKILL, "killed by SIGKILL, by hand or because memory was short; run"),
        (signal.SIGRTMIN + 1, r"ended with signal \d\d"),
    ],
)
def test_a_signal_that_ends_a_program_is_told_by_its_name(sent, told, call):
    def kill(event):
        os.kill(event["pid"], sent)

    with pytest.raises(ProgramFailed, match=told):
        run_program(call("hang", on_event=kill))


def test_what_a_program_started_ends_with_it(call):
    run = run_program(call("spawn", kill_when=lambda event: event["event"] == "child"))
    grandchild = run.events[-1]["pid"]
    assert grandchild != run.process_id
    assert are_gone([grandchild])


def test_a_fork_that_outlives_its_program_does_not_hold_up_the_end(call):
    """It holds the other end of the pipe that the progress is read from."""
    started = time.monotonic()
    run = run_program(call("fork"))
    assert run.return_code == 0
    assert time.monotonic() - started < HANGS_SECONDS / 10


def test_a_program_that_never_said_that_it_was_done_is_a_failure(call):
    with pytest.raises(ProgramFailed, match="ended with exit code 0"):
        run_program(call("vanish_well"))


def test_a_program_that_ended_in_a_users_function_is_refused_in_its_name(call):
    """The sentence was written before the call; how the program ended is put in."""
    given = call("vanish_well", on_event=lambda event: _noted(given.folder / "out"))
    with pytest.raises(ProgramRefused, match=r"^mine\.py: the program ended with"):
        run_program(given)


def test_a_program_killed_in_a_users_function_is_told_with_its_name(call):
    def kill(event):
        _noted(given.folder / "out")
        os.kill(event["pid"], signal.SIGKILL)

    given = call("hang", on_event=kill)
    with pytest.raises(ProgramFailed, match="killed by SIGKILL in a call of `encode`"):
        run_program(given)


def _noted(out: Path) -> None:
    Notes(out, 1.0).write(Call(Path("/x/mine.py"), "encode"), is_running=True)


def test_stopping_all_ends_a_program_and_lets_no_other_start(call):
    def stop(event):
        children.stop_all()

    try:
        with pytest.raises(ProgramFailed, match="killed by SIGKILL"):
            run_program(call("hang", on_event=stop))
        with pytest.raises(ProgramsStopped):
            run_program(call("behave"))
    finally:
        children.allow()
    assert run_program(call("behave")).return_code == 0


def test_a_program_dies_when_its_parent_is_killed(call, fork_server, tiny, project):
    """Nothing of the parent runs after SIGKILL; the closed pipe tells the child."""
    script = (
        "import sys, pathlib\n"
        "from tasks.forked_programs import ForkServer\n"
        "from tasks.run_program import ProgramCall, run_program\n"
        "run_program(ProgramCall(program='tiny.programs.misbehave',\n"
        f"    fork_server={'None' if fork_server is None else 'ForkServer(())'},\n"
        "    request={'how': 'hang'}, folder=pathlib.Path(sys.argv[1]),\n"
        "    on_event=lambda event: print(event['pid'], flush=True)))\n"
    )
    folder = call("hang").folder
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        env={**os.environ, "PYTHONPATH": f"{tiny.folder}{os.pathsep}{project}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(parent.stdout.readline())
    assert is_running(child)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert are_gone([child])


def test_the_environment_pins_numerics_and_keeps_what_the_user_set(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    monkeypatch.setenv("PREFECT_API_URL", "http://nowhere")
    monkeypatch.delenv("NPROC", raising=False)
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    environment = program_environment(Path("/somewhere"), {"EXTRA": "1"})
    assert environment["XLA_FLAGS"] == "--xla_cpu_enable_fast_math=false"
    assert environment["NPROC"] == "2"
    assert environment["JAX_PLATFORMS"] == "cpu"
    assert environment["PYTHONPATH"] == "/somewhere"
    assert environment["EXTRA"] == "1"
    assert environment["JAX_NUMPY_RANK_PROMOTION"] == "raise"
    assert not [name for name in environment if name.startswith("PREFECT")]
    monkeypatch.setenv("HARNESS_PLATFORM", "tpu")
    assert program_environment(Path("/"))["JAX_PLATFORMS"] == "tpu"


def test_the_private_cache_is_readable_by_its_user_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = private_cache("compiled")
    assert folder.is_relative_to(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("home", ["/proc", "file"])
def test_a_cache_that_cannot_be_made_is_one_sentence(home, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / home))
    with pytest.raises(FolderUnusable, match=r"text-harness.* set XDG_CACHE_HOME"):
        private_cache("compiled")


@pytest.fixture
def full(monkeypatch):
    """Answers no write of a file in this process, as a full disk would."""

    def refuse(self, *arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill():
        monkeypatch.setattr(Path, "write_text", refuse)
        monkeypatch.setattr(Path, "write_bytes", refuse)

    return fill


def test_a_full_temporary_folder_is_named(call, full):
    made = call("behave")
    full()
    with pytest.raises(ProgramFailed, match=r"temporary folder '.*' is full; .*TMPDIR"):
        run_program(made)


def test_a_program_that_found_no_place_for_its_error_is_explained(call, full):
    made = call("vanish", on_event=lambda event: full())
    with pytest.raises(ProgramFailed, match=r"exit code 1: the temporary folder"):
        run_program(made)


def test_a_program_that_says_nothing_is_no_full_disk(call):
    with pytest.raises(ProgramFailed, match="wrote nothing to standard error"):
        run_program(call("vanish"))


def test_the_request_is_plain_json_with_the_result_folder(call):
    made = call("behave")
    run = run_program(made)
    request = json.loads((made.folder / "request.json").read_bytes())
    assert request == {"how": "behave", "out": str(run.out)}
