"""A private Prefect server answers, belongs to one run, and ends with it."""

import os
import signal
import subprocess
import sys
import urllib.request

import pytest

from flows.local_server import LocalServer, ServerFailed
from tasks.program_environment import private_cache
from tests.processes import are_gone

NOT_STARTED = 3
"""Exit code of a server that was not needed before it answered."""


def test_a_server_answers_and_ends_with_its_pipe():
    server = LocalServer()
    try:
        url = server.api_url()
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{url}/health") as answer:
            assert answer.read() == b"true"
        os.kill(server._process.pid, 0)
    finally:
        server.stop()
    # Its own orderly end, not the force that follows when it takes too long.
    assert server._process.returncode in (0, -signal.SIGTERM)


def test_a_server_that_is_not_needed_after_all_ends_at_once():
    """By itself, and before it has started: not by the force that would follow."""
    server = LocalServer()
    server.stop()
    assert server._process.returncode == NOT_STARTED


def test_a_broken_database_is_replaced(monkeypatch, tmp_path):
    """A start that was killed while it made the database must not be the last one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    database = private_cache("prefect") / "prefect.db"
    database.write_bytes(b"half a database")
    script = (
        "import pathlib, sys\n"
        "sys.exit(1) if pathlib.Path(sys.argv[1]).exists() else print('{\"port\": 7}')"
    )

    def start(server):
        command = [sys.executable, "-c", script, str(database)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    monkeypatch.setattr(LocalServer, "_start", start)
    server = LocalServer()
    try:
        assert server.api_url() == "http://127.0.0.1:7/api"
    finally:
        server.stop()


def test_a_server_that_cannot_start_says_where_to_look(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def start(server):
        command = [sys.executable, "-c", "raise SystemExit(1)"]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    monkeypatch.setattr(LocalServer, "_start", start)
    server = LocalServer()
    with pytest.raises(ServerFailed, match=r"server\.log"):
        server.api_url()
    server.stop()


def test_a_server_ends_when_its_parent_is_killed(project):
    script = (
        "from flows.local_server import LocalServer\n"
        "import time\n"
        "server = LocalServer()\n"
        "server.api_url()\n"
        "print(server._process.pid, flush=True)\n"
        "time.sleep(99)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=project,
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    assert are_gone([child])
