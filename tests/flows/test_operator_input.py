"""Whatever is wrong with a request is one sentence, said before anything is started."""

import http.server
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import prefect
import pytest
from prefect.settings import PREFECT_PROFILES_PATH, temporary_settings

from flows import operator_profile, operator_state
from flows.operator_automations import declared_automations, refuse_webhook
from flows.operator_deployments import DeploymentsUnusable, declared_deployments
from flows.operator_processes import PortTaken, refuse_taken_port
from flows.operator_server import reason_in
from flows.operator_settings import (
    SettingsUnusable,
    read_settings,
    server_environment,
    worker_environment,
)
from flows.server_check import ServerFailed, refuse_other_version
from tests.flows.operated import DATA
from tests.free_ports import free_port

MINE = 'active = "mine"\n\n[profiles.mine]\nPREFECT_LOGGING_LEVEL = "INFO"  # mine\n'


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home folder of Prefect that nothing else uses."""
    path = tmp_path / "home"
    monkeypatch.setenv("PREFECT_HOME", str(path))
    with temporary_settings({PREFECT_PROFILES_PATH: path / "profiles.toml"}):
        yield path


@pytest.fixture
def listening():
    """A server that answers what it was told to; `answers` is path to status, body."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = server.answers.get(self.path, (404, b"nothing"))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.answers = {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def refused(harness, *arguments, **environment):
    """Returns the one line with which a command could not run."""
    done = harness(*arguments, **environment)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = [x for x in done.stderr.splitlines() if x.startswith("harness: ")]
    return line


def up(harness, tmp_path, *arguments, **environment):
    return refused(
        harness, "up", "--root", tmp_path / "evidence", *arguments, **environment
    )


@pytest.mark.parametrize(
    ("version", "age"),
    [("3.8.9", "older"), ("2.99.0", "older"), ("3.10.0", "newer"), ("4.0.0", "newer")],
)
@pytest.mark.parametrize("command", ["run", "up"])
def test_a_server_of_another_release_is_refused(
    command, version, age, harness, listening, tmp_path
):
    listening.answers = {"/api/admin/version": (200, json.dumps(version).encode())}
    address = f"http://user:word@127.0.0.1:{listening.server_port}/api"
    arguments = [command, "--root", tmp_path / "evidence"]
    line = refused(harness, *arguments, PREFECT_API_URL=address)
    assert f"is {version}, {age} than the Prefect {prefect.__version__}" in line
    assert "user:word" not in line
    assert not list((tmp_path / "evidence").glob("runs/*"))


def test_another_patch_release_is_not_refused():
    minor = ".".join(prefect.__version__.split(".")[:2])
    refuse_other_version("here", f"{minor}.99")
    with pytest.raises(ServerFailed):
        refuse_other_version("here", "unknown")


@pytest.mark.parametrize("command", ["run", "up"])
def test_wrong_credentials_are_one_sentence(command, harness, listening, tmp_path):
    listening.answers = {"/api/admin/version": (401, b'{"exception_message": "no"}')}
    address = f"http://127.0.0.1:{listening.server_port}/api"
    arguments = [command, "--root", tmp_path / "evidence"]
    line = refused(harness, *arguments, PREFECT_API_URL=address)
    assert "refuses these credentials; set PREFECT_API_AUTH_STRING" in line


def test_what_is_no_prefect_server_is_one_sentence(harness, listening, tmp_path):
    address = f"http://127.0.0.1:{listening.server_port}"
    line = up(harness, tmp_path, PREFECT_API_URL=address)
    assert "is no Prefect server; its API's address mostly ends with /api" in line


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/api", "nonsense"])
def test_a_configured_server_that_does_not_answer_is_not_replaced(
    address, harness, tmp_path, home
):
    """A private server beside it would be one that nobody looks at."""
    line = up(harness, tmp_path, PREFECT_API_URL=address)
    assert f"at {address} does not answer" in line
    assert not (home / "text-harness" / "prefect.db").exists()


@pytest.mark.parametrize(
    ("option", "value"), [("--port", 0), ("--port", 70000), ("--limit", 0)]
)
def test_a_number_out_of_range_is_refused(option, value, harness, tmp_path):
    assert f"{value}" in up(harness, tmp_path, option, value)


def test_a_port_that_is_taken_says_by_whom(harness, tmp_path, home):
    with socket.socket() as taken:
        port = free_port()
        taken.bind(("127.0.0.1", port))
        taken.listen()
        line = up(harness, tmp_path, "--port", port)
        assert f"Port {port} of 127.0.0.1 is held by process {os.getpid()}" in line
        assert not (home / "profiles.toml").exists()
        # Nothing was started, so the next call may ask for something else.
        assert operator_state.recorded() is None
    refuse_taken_port("127.0.0.1", port)
    with pytest.raises(PortTaken), socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refuse_taken_port("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NAME", "Line 1 of .* is 'NAME'; a line is NAME=VALUE"),
        ("A=1\n2B=1", "Line 2 of"),
        ("SECRET_A=\nSECRET_B=", "SECRET_A, SECRET_B must be set in the environment"),
    ],
)
def test_a_malformed_file_of_settings_is_refused(text, words, tmp_path):
    path = tmp_path / "x.env"
    path.write_text(text)
    with pytest.raises(SettingsUnusable, match=words):
        read_settings(path)


def test_settings_take_the_environment_before_the_file(tmp_path, monkeypatch):
    path = tmp_path / "x.env"
    path.write_text("# a comment\n\nA=1\nB=2=3\nSECRET=\n")
    monkeypatch.setenv("A", "other")
    monkeypatch.setenv("SECRET", "known")
    assert read_settings(path) == {"A": "other", "B": "2=3", "SECRET": "known"}
    with pytest.raises(SettingsUnusable, match="No such file"):
        read_settings(tmp_path / "missing.env")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsUnusable, match="it is no text"):
        read_settings(path)


def test_a_worker_gets_no_secret_of_the_server(tmp_path, monkeypatch):
    monkeypatch.setenv(
        "PREFECT_SERVER_DATABASE_CONNECTION_URL", "postgresql://hush-hush"
    )
    settings = {
        "PREFECT_SERVER_API_AUTH_STRING": "a:hush-hush",
        "PREFECT_UI_API_URL": "x",
    }
    environment = worker_environment(
        settings, "mark", "/store", {"PREFECT_API_URL": "u"}
    )
    assert "hush-hush" not in "".join(
        v for k, v in environment.items() if "PREFECT" in k
    )
    assert environment["HARNESS_ROOT"] == "/store"
    assert environment["PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"] == "false"
    own = server_environment({}, "mark", 4, "a:b")
    assert own["PREFECT_SERVER_DATABASE_CONNECTION_URL"] == "postgresql://hush-hush"
    monkeypatch.delenv("PREFECT_SERVER_DATABASE_CONNECTION_URL")
    own = server_environment({}, "mark", 4, "a:b")
    assert str(tmp_path) in own["PREFECT_SERVER_DATABASE_CONNECTION_URL"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("]", "is no YAML"),
        ("{}", "declares no deployments"),
        ("deployments: [{name: a, entrypoint: 'b:c'}]", "has no 'work_pool'"),
        (
            "deployments: [{name: a, entrypoint: 'b:c', work_pool: {name: p}, "
            "schedules: [{cron: '* * * * *'}]}]",
            "A schedule of 'a' .* has no slug",
        ),
    ],
)
def test_a_malformed_file_of_deployments_is_refused(text, words, tmp_path):
    path = tmp_path / "prefect.yaml"
    path.write_text(text)
    with pytest.raises(DeploymentsUnusable, match=words):
        declared_deployments(path)
    with pytest.raises(DeploymentsUnusable, match="No such file"):
        declared_deployments(tmp_path / "missing.yaml")


def test_a_malformed_list_of_automations_is_refused(tmp_path):
    path = tmp_path / "automations.yaml"
    path.write_text("[{description: without a name}]")
    with pytest.raises(DeploymentsUnusable, match="no list of automations"):
        declared_automations(path)
    path.write_text("")
    assert declared_automations(path) == []


@pytest.mark.parametrize("url", ["example.org/hook", "file:///etc/passwd", "http://"])
def test_what_is_no_webhook_is_refused(url):
    with pytest.raises(DeploymentsUnusable, match="is no address such as"):
        refuse_webhook(url)
    refuse_webhook("https://example.org/hook")
    refuse_webhook(None)


@pytest.mark.parametrize("before", [MINE, None, 'active = "ephemeral"\n'])
def test_the_profiles_come_back_byte_by_byte(before, home):
    home.mkdir()
    path = home / "profiles.toml"
    if before is not None:
        path.write_text(before)
        path.chmod(0o644)
    assert operator_profile.activate("http://127.0.0.1:1/api", "a:b")
    assert operator_profile.active_profile() == "text-harness"
    assert path.stat().st_mode & 0o777 == 0o600
    assert not operator_profile.activate("http://127.0.0.1:1/api", "a:b")
    assert operator_profile.activate("http://127.0.0.1:2/api", "a:b")
    earlier = "mine" if before == MINE else "ephemeral"
    assert operator_profile.restore() == earlier
    assert (path.read_text() if path.exists() else None) == before
    if before is not None:
        assert path.stat().st_mode & 0o777 == 0o644
    assert operator_profile.restore() is None


def test_a_profile_that_was_made_meanwhile_stays(home):
    home.mkdir()
    path = home / "profiles.toml"
    path.write_text(MINE)
    operator_profile.activate("http://127.0.0.1:1/api", "a:b")
    text = path.read_text() + '\n[profiles.later]\nPREFECT_LOGGING_LEVEL = "INFO"\n'
    path.write_text(text)
    assert operator_profile.restore() == "mine"
    left = operator_profile.read_profiles()
    assert left["active"] == "mine"
    assert set(left["profiles"]) == {"mine", "later"}


def test_profiles_that_cannot_be_read_are_told(harness, tmp_path, home):
    home.mkdir()
    (home / "profiles.toml").write_text("active = [")
    line = up(harness, tmp_path)
    assert "Prefect's profiles in" in line and "cannot be read" in line


def test_a_shell_with_another_profile_is_told(harness, tmp_path):
    line = up(harness, tmp_path, PREFECT_PROFILE="test")
    assert "PREFECT_PROFILE is 'test'" in line


def test_a_record_that_cannot_be_read_is_told(harness, home):
    folder = operator_state.state_folder()
    (folder / "up.json").write_text("{}")
    assert "is not what `harness up` writes" in refused(harness, "down")


def test_after_a_reboot_nothing_on_record_is_taken_for_ours(harness, home):
    """The numbers belong to other processes then, such as this test."""
    operator_state.record(
        operator_state.Operated(
            mark=operator_state.new_mark(),
            api_url="http://127.0.0.1:1/api",
            root="/store",
            settings="/settings",
            port=1,
            server=1,
            worker=os.getpid(),
        )
    )
    done = harness("down")
    assert done.returncode == 0
    assert done.stdout == "Nothing that `harness up` started runs.\n"
    assert operator_state.recorded() is None


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("", "it wrote nothing"),
        ("Port 1 is already in use.\nServer stopped!\n", "Port 1 is already in use"),
        (
            "  raise x from y\nsqlalchemy.exc.DBAPIError: (E) password failed\n"
            "(Background on this error)\n\n"
            "ERROR:    Application startup failed. Exiting.\nServer stopped!\n",
            "sqlalchemy.exc.DBAPIError: (E) password failed",
        ),
    ],
)
def test_the_reason_is_found_in_the_log_of_a_server_that_did_not_start(log, reason):
    assert reason_in(log) == reason


def test_a_home_that_cannot_be_used_is_told(harness, tmp_path):
    (tmp_path / "file").write_text("no folder")
    line = refused(harness, "down", PREFECT_HOME=str(tmp_path / "file"))
    assert "set PREFECT_HOME to a folder that you can write to" in line


def test_a_run_of_a_worker_needs_an_absolute_store(monkeypatch, tmp_path):
    from tasks.errors import StoreUnnamed
    from tasks.reuse import store_root

    monkeypatch.delenv("HARNESS_ROOT", raising=False)
    assert store_root() == Path("evidence").absolute()
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", "x")
    for named in ("", "evidence"):
        monkeypatch.setenv("HARNESS_ROOT", named)
        with pytest.raises(StoreUnnamed, match="temporary folders"):
            store_root()
    monkeypatch.setenv("HARNESS_ROOT", str(tmp_path))
    assert store_root() == tmp_path


def test_without_an_address_a_worker_makes_no_private_database(tmp_path):
    """What Prefect does by itself would be a database that nobody looks at."""
    client = {"PREFECT_API_URL": ""}
    environment = worker_environment({}, "mark", str(tmp_path / "evidence"), client)
    done = subprocess.run(
        [sys.executable, "-c", "import operated_flows; operated_flows.quick()"],
        env={**environment, "PYTHONPATH": f"{DATA}{os.pathsep}{Path.cwd()}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "No Prefect API URL provided" in done.stderr
    assert not list((tmp_path / "home").glob("*.db"))
