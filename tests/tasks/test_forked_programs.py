"""A forked program is a fresh process: of its own, and with nothing of another one."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tasks import fork_server
from tasks.errors import ProgramFailed
from tasks.forked_programs import IMPORTED, ForkServer, forking
from tasks.run_program import ProgramCall, run_program
from tests.processes import are_gone

TELLING = """
import json, os, sys
from pathlib import Path

request = json.loads(Path(sys.argv[1]).read_bytes())
facts = {
    "process": os.getpid(),
    "session": os.getsid(0),
    "parent": os.getppid(),
    "folder": os.getcwd(),
    "arguments": sys.argv[1:],
    "name": sys.modules["__main__"].__spec__.name,
    "environment": dict(os.environ),
    "path": sys.path,
    "threads": len(os.listdir("/proc/self/task")),
    "descriptors": sorted(os.listdir("/proc/self/fd"), key=int),
    "left": getattr(json, "left_behind", None),
    "backends": [],
}
json.left_behind = facts["process"]
bridge = sys.modules.get("jax._src.xla_bridge")
if bridge is not None:
    facts["backends"] = list(bridge._backends)
(Path(request["out"]) / "facts.json").write_text(json.dumps(facts))
(Path(request["out"]) / "program.json").write_text("{}")
"""
"""A program that says what it finds, and leaves something in a module for others."""


@pytest.fixture
def tell(tmp_path, monkeypatch):
    """Runs the telling program; returns what it found."""
    package = tmp_path / "modules" / "telling"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "facts.py").write_text(TELLING)
    monkeypatch.syspath_prepend(package.parent)

    def run(number, **options):
        folder = tmp_path / f"call-{number}"
        folder.mkdir()
        call = ProgramCall(
            program="telling.facts", request={}, folder=folder, **options
        )
        facts = json.loads((run_program(call).out / "facts.json").read_bytes())
        return folder, facts

    yield run
    sys.modules.pop("telling", None)


@pytest.fixture
def server():
    made = ForkServer(())
    yield made
    made.end()


def test_a_fork_finds_what_a_started_program_finds(tell, server):
    """Same arguments, modules and environment; session and folder of its own."""
    _, started = tell(1)
    folder, forked = tell(2, fork_server=server)
    assert forked["session"] == forked["process"] != started["process"]
    assert forked["folder"] == str(folder)
    assert forked["arguments"] == [str(folder / "request.json")]
    alike = ("name", "environment", "path", "threads", "descriptors")
    assert {name: forked[name] for name in alike} == {
        name: started[name] for name in alike
    }


def test_a_fork_has_nothing_of_the_one_before(tell, server):
    first, second = (tell(number, fork_server=server)[1] for number in (1, 2))
    assert first["process"] != second["process"]
    assert first["left"] is second["left"] is None


def test_jax_is_imported_before_a_fork_and_no_backend_is_there(tell):
    """A backend has threads, and no fork could use it."""
    with forking() as server:
        _, forked = tell(1, fork_server=server)
    assert forked["threads"] == 1
    assert forked["backends"] == []
    assert "jax" in IMPORTED


def test_a_program_under_other_variables_is_started(tell, server):
    """JAX has read its settings when it was imported."""
    _, forked = tell(1, fork_server=server)
    _, other = tell(2, fork_server=server, environment={"XLA_FLAGS": "--other"})
    assert other["environment"]["XLA_FLAGS"] == "--other"
    assert other["parent"] == os.getpid() != forked["parent"]


def test_a_program_under_the_variables_of_its_server_is_forked(tell):
    changes = {"XLA_FLAGS": "--other"}
    server = ForkServer((), changes)
    try:
        _, forked = tell(1, fork_server=server, environment=changes)
        _, started = tell(2, fork_server=server)
    finally:
        server.end()
    assert forked["environment"]["XLA_FLAGS"] == "--other"
    assert started["parent"] == os.getpid() != forked["parent"]


def test_nobody_has_to_collect_a_fork_that_has_ended(tell, server):
    """A gang waits until no process of a controller's session is left."""
    _, forked = tell(1, fork_server=server)
    assert are_gone([forked["process"], forked["parent"]])


def test_without_its_server_a_program_is_refused_in_a_sentence(tell):
    server = ForkServer(())
    os.killpg(server.process_id, signal.SIGKILL)
    assert are_gone([server.process_id])
    with pytest.raises(ProgramFailed, match=r"telling\.facts cannot be forked"):
        tell(1, fork_server=server)
    server.end()


def test_a_server_ends_with_its_socket_and_leaves_nobody(tell, server):
    _, forked = tell(1, fork_server=server)
    server.end()
    assert are_gone([server.process_id, forked["parent"], forked["process"]])


def test_the_server_itself_imports_nothing_of_the_project():
    """What it held, each fork would hold, whichever folder its modules are in."""
    source = Path(fork_server.__file__).read_text()
    assert not [
        package
        for package in ("model", "tasks", "warehouse", "flows")
        if f"import {package}" in source or f"from {package}" in source
    ]
