"""A run whose Prefect server goes away ends in one sentence and within seconds."""

import os
import signal
import time

import pytest

from flows.local_server import LocalServer
from flows.reading import open_run, view_rows
from tests.processes import are_gone, descendants, read_until
from warehouse.store import Store

SECONDS = {"private": 30.0, "configured": 60.0}
"""Far below the minutes that Prefect takes by itself; pages are made for a server that
somebody has configured, on a machine that may be busy."""
SECONDS_OF_CTRL_C = 12.0


@pytest.fixture(autouse=True)
def shown(monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")


@pytest.fixture(params=["private", "configured"])
def kind(request):
    """Whose server it is."""
    return request.param


@pytest.fixture
def lose_server(kind, monkeypatch):
    """Answers how to kill the server of a run: its own, or one that it was given."""
    if kind == "private":
        yield lambda process: os.kill(
            descendants(process.pid, "flows.server_process")[0], signal.SIGKILL
        )
        return
    server = LocalServer()
    monkeypatch.setenv("PREFECT_API_URL", server.api_url())
    yield lambda process: server._process.kill()
    server.stop()


def _end(process):
    """Returns exit code, output and the seconds until a run had ended."""
    started = time.monotonic()
    out, err = process.communicate(timeout=150)
    return process.returncode, out, err, time.monotonic() - started


def _status(root):
    (_,) = Store(root).commits("scale_number")
    return [run["status"] for run in view_rows(open_run(root, None), "runs")]


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_an_interruption_ends_a_run_that_has_lost_its_server(
    sent, code, lose_server, tiny_harness, tmp_path
):
    process = tiny_harness("hang")
    read_until(process, "ready")
    (program,) = descendants(process.pid, "misbehave")
    lose_server(process)
    process.send_signal(sent)
    returned, _, err, seconds = _end(process)
    assert returned == code, err
    assert seconds < SECONDS_OF_CTRL_C
    assert err.splitlines()[-1].startswith("Interrupted. What was finished is kept")
    assert len(err.splitlines()) < 5 and "Traceback" not in err
    assert _status(tmp_path / "evidence") == ["interrupted"]
    assert are_gone([program])


def test_a_run_without_its_server_is_completed_all_the_same(
    kind, lose_server, tiny_harness, tmp_path
):
    """The evidence is in our store; only the page of the run has no end."""
    process = tiny_harness("linger")
    read_until(process, "ready")
    lose_server(process)
    code, out, err, seconds = _end(process)
    assert code == 0, err
    assert seconds < SECONDS[kind]
    assert "2 stages executed" in out
    assert "The Prefect server went away during the run" in err
    assert "Traceback" not in err
    assert _status(tmp_path / "evidence") == ["completed"]


def test_a_run_that_fails_without_its_server_says_why_it_failed(
    kind, lose_server, tiny_harness, tmp_path
):
    process = tiny_harness("hang")
    read_until(process, "ready")
    lose_server(process)
    os.kill(descendants(process.pid, "misbehave")[0], signal.SIGTERM)
    code, out, err, seconds = _end(process)
    assert (code, out) == (2, ""), err
    assert seconds < SECONDS[kind]
    assert "harness: misbehave failed: " in err and "SIGTERM" in err
    assert "Traceback" not in err
    assert _status(tmp_path / "evidence") == ["failed"]
