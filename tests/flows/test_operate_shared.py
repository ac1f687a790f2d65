"""A shared server: PostgreSQL, credentials, and a worker that only knows an address."""

import asyncio
import subprocess
import sys

import psutil
import pytest

from flows.operator_processes import marked
from tests.flows.operated import PROJECT, Operated
from tests.free_ports import free_port
from tests.postgresql import running_postgresql

pytestmark = pytest.mark.needs("postgresql")
AUTH = "operator:open sesame"


@pytest.fixture(scope="module")
def database():
    with running_postgresql(free_port()) as address:
        yield address


@pytest.fixture(scope="module")
def shared(tmp_path_factory, database):
    shared = Operated(
        tmp_path_factory.mktemp("shared"),
        PREFECT_SERVER_API_AUTH_STRING=AUTH,
        PREFECT_SERVER_DATABASE_CONNECTION_URL=database,
    )
    shared.automations.write_text("[]")
    settings = PROJECT / "deploy" / "shared.env"
    shared.first = shared.up_json("--env-file", settings)
    try:
        yield shared
    finally:
        done = shared.harness("down")
        assert "Server ended" in done.stdout, done.stderr


def ask(database, query):
    import asyncpg

    async def answer():
        connection = await asyncpg.connect(database.replace("+asyncpg", ""))
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    return asyncio.run(answer())


def test_a_run_is_recorded_in_postgresql_and_nowhere_else(shared, database):
    done = shared.prefect("deployment", "run", "quick/now", "--watch")
    assert done.returncode == 0, done.stdout + done.stderr + shared.logs()
    completed = "select count(*) from flow_run where state_type = 'COMPLETED'"
    assert ask(database, completed) >= 1
    assert not list(shared.home.rglob("*.db"))
    assert shared.first["sign_in"] == AUTH


def test_wrong_credentials_are_one_sentence_and_run_nothing(shared, tmp_path):
    address = shared.first["api_url"]
    for auth in ("operator:wrong", ""):
        done = shared.harness(
            *("run", "--root", tmp_path / "evidence"),
            PREFECT_API_URL=address,
            PREFECT_API_AUTH_STRING=auth,
            PREFECT_HOME=str(tmp_path / "home"),
        )
        assert done.returncode == 2
        last = done.stderr.splitlines()[-1]
        assert last.startswith(
            f"harness: The Prefect server at {address} refuses these"
        )
    assert not list((tmp_path / "evidence").glob("runs/*"))


def test_without_its_secrets_the_shared_server_does_not_start(shared):
    settings = PROJECT / "deploy" / "shared.env"
    done = shared.up("--env-file", settings, PREFECT_SERVER_API_AUTH_STRING="")
    assert done.returncode == 2
    assert "PREFECT_SERVER_API_AUTH_STRING must be set" in done.stderr


def test_a_wrong_password_of_the_database_is_one_sentence(tmp_path, database):
    wrong = Operated(
        tmp_path,
        PREFECT_SERVER_API_AUTH_STRING=AUTH,
        PREFECT_SERVER_DATABASE_CONNECTION_URL=database.replace("pass-word", "wrong"),
    )
    wrong.automations.write_text("[]")
    done = wrong.up("--env-file", PROJECT / "deploy" / "shared.env")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert "The Prefect server ended before it answered" in last
    assert "password authentication failed" in last
    assert "Traceback" not in done.stderr
    assert marked(wrong.record()["mark"]) == []


def _becomes_the_worker(other):
    """A container ends what it started by a signal; nothing is left on record."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "flows.command_line", "up", "--foreground"),
            *map(str, other.options()[2:]),
        ],
        env=other.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        for line in process.stdout:
            if line.startswith("Worker "):
                break
        assert "started" in line
        assert psutil.Process(process.pid).cmdline()[1:4] == ["-m", "prefect", "worker"]
        process.terminate()
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert not (other.home / "text-harness" / "up.json").exists()


def test_a_worker_joins_a_server_that_somebody_else_runs(shared, tmp_path):
    """It starts no server, touches no profile, and goes without ending the server."""
    other = Operated(
        tmp_path,
        PREFECT_API_URL=shared.first["api_url"],
        PREFECT_API_AUTH_STRING=AUTH,
    )
    other.automations.write_text("[]")
    arguments = [*other.options()[2:], "--json"]
    done = other.harness("up", *arguments)
    assert done.returncode == 0, done.stderr
    record = other.record()
    assert record["server"] is None and record["worker"]
    assert not (other.home / "profiles.toml").exists()
    assert [p.pid for p in marked(record["mark"])] == [record["worker"]]
    ended = other.harness("down")
    assert ended.stdout == f"Worker ended: process {record['worker']}.\n"
    _becomes_the_worker(other)
    assert shared.prefect("version").returncode == 0
    with shared.client() as client:
        assert client.api_healthcheck() is None
