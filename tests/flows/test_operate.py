"""`harness up` and `harness down` with a real server and worker, one for the module."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
import yaml

from flows.operator_processes import is_ours, marked
from tests.flows.operated import DATA, Operated

FOREIGN = "https://example.org"
PROFILES = """active = "mine"

[profiles.mine]   # a comment that a rewritten file would lose
PREFECT_LOGGING_LEVEL = "WARNING"
"""


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory):
    operated = Operated(tmp_path_factory.mktemp("operated"))
    (operated.home / "profiles.toml").write_text(PROFILES)
    shipped = yaml.safe_load((DATA.parents[2] / "deploy/automations.yaml").read_text())
    for automation in shipped:
        if automation["trigger"]["within"]:
            automation["trigger"]["within"] = 10  # the least that Prefect takes
    operated.automations.write_text(yaml.safe_dump(shipped))
    # As a script that starts it in the background would: Ctrl-C is ignored there.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        operated.first = operated.up_json()
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        yield operated
    finally:
        mark = (
            operated.record()["mark"]
            if (operated.home / "text-harness" / "up.json").exists()
            else ""
        )
        operated.harness("down")
        for process in marked(mark) if mark else []:
            process.kill()


def answer(operated, path, method="GET", **headers):
    """Returns status, headers and body of a request without a browser's help."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{operated.port}{path}",
        method=method,
        headers=headers,
        data=b"{}" if method == "POST" else None,
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, dict(response.headers), response.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def test_the_page_is_reachable_at_the_address_that_up_prints(operated):
    assert operated.first["ui"] == f"http://127.0.0.1:{operated.port}"
    status, _, page = answer(operated, "/", Accept="text/html")
    assert status == 200 and b"<html" in page
    status, _, settings = answer(operated, "/ui-settings")
    assert b'"api_url":"/api"' in settings and b'"auth":"BASIC"' in settings
    assert any("Server started" in line for line in operated.first["changed"])
    assert any("Worker started" in line for line in operated.first["changed"])


def test_the_api_is_closed_without_credentials_and_to_pages_of_other_sites(operated):
    path = "/api/flow_runs/filter"
    headers = {"Content-Type": "application/json", "Origin": FOREIGN}
    status, given, _ = answer(operated, path, "POST", **headers)
    assert status == 401
    assert given.get("access-control-allow-origin") not in ("*", FOREIGN)
    preflight = {"Access-Control-Request-Method": "POST", "Origin": FOREIGN}
    status, given, _ = answer(operated, path, "OPTIONS", **preflight)
    assert status == 400
    assert given.get("access-control-allow-origin") is None


def test_the_server_listens_on_the_loopback_interface_only(operated):
    server = psutil.Process(operated.record()["server"])
    listening = [c for c in server.net_connections() if c.status == psutil.CONN_LISTEN]
    assert [c.laddr.ip for c in listening] == ["127.0.0.1"]


def test_secrets_are_readable_by_their_owner_only(operated):
    folder = operated.home / "text-harness"
    assert folder.stat().st_mode & 0o77 == 0
    for path in (folder / "credentials", operated.home / "profiles.toml"):
        assert path.stat().st_mode & 0o77 == 0
    words = psutil.Process(operated.record()["server"]).cmdline()
    assert operated.first["sign_in"] not in " ".join(words)
    for log in folder.glob("*.log"):
        assert operated.first["sign_in"] not in log.read_text()


def test_the_worker_can_be_ended_by_the_usual_signals(operated):
    """Started from a shell in which Ctrl-C is ignored, it would inherit that."""
    for name in ("server", "worker"):
        process = operated.record()[name]
        status = Path(f"/proc/{process}/status").read_text()
        (ignored,) = [x for x in status.splitlines() if x.startswith("SigIgn")]
        bits = int(ignored.split()[1], 16)
        assert not bits & (1 << (signal.SIGINT - 1) | 1 << (signal.SIGTERM - 1))
        assert os.getsid(process) == process


def test_a_second_call_changes_nothing(operated):
    before = operated.record()
    assert operated.up_json()["changed"] == []
    assert operated.record() == before
    plain = operated.up()
    assert plain.stdout.splitlines()[0].startswith("Everything runs already")
    assert plain.stdout.splitlines()[-1].strip() == "harness down"


def test_other_options_than_those_that_run_are_refused(operated):
    done = operated.harness("up", *operated.options(port=1))
    assert done.returncode == 2
    assert f"port {operated.port} (asked for: 1)" in done.stderr
    assert "harness down" in done.stderr
    done = operated.up("--limit", 2)
    assert done.returncode == 2 and "limit 1 (asked for: 2)" in done.stderr
    done = operated.up(PREFECT_LOGGING_LEVEL="DEBUG")
    assert done.returncode == 2
    assert "PREFECT_LOGGING_LEVEL 'INFO' (asked for: 'DEBUG')" in done.stderr
    done = operated.harness("up", *operated.options(root=operated.folder / "other"))
    assert done.returncode == 2 and str(operated.root) in done.stderr
    done = operated.up(PREFECT_API_URL="http://127.0.0.1:9/api")
    assert done.returncode == 2 and "unset it" in done.stderr


@pytest.mark.parametrize(
    ("pool", "entrypoint", "words"),
    [
        ("elsewhere", "operated_flows:quick", "names the work pool 'elsewhere'; http"),
        ("text-harness", "no_such_module:quick", "No module named 'no_such_module'"),
        ("text-harness", "operated_flows:none", "none"),
    ],
)
def test_a_deployment_that_cannot_be_is_told_and_changes_nothing(
    pool, entrypoint, words, operated
):
    other = operated.folder / "other.yaml"
    entry = {"name": "x", "entrypoint": entrypoint, "work_pool": {"name": pool}}
    other.write_text(yaml.safe_dump({"pull": [], "deployments": [entry]}))
    done = operated.harness("up", *operated.options(deployments=other))
    assert done.returncode == 2
    assert words in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert operated.up_json()["changed"] == []


def test_a_run_of_a_deployment_writes_to_the_store_of_the_worker(operated):
    done = operated.prefect("deployment", "run", "quick/now", "--watch")
    assert done.returncode == 0, done.stdout + done.stderr + operated.logs()
    assert "1 " in (operated.root / "quick.txt").read_text()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("number=maybe", "'maybe' is not of type 'integer'"),
        ("nonsense=1", "not found on the deployment"),
    ],
)
def test_a_parameter_of_the_wrong_type_is_refused_with_a_sentence(
    given, words, operated
):
    done = operated.prefect(
        "deployment", "run", "quick/now", "-p", given, COLUMNS="999"
    )
    assert done.returncode == 1
    assert words in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_runs_that_meet_wait_and_none_is_lost(operated):
    """Two more than the limit of the deployment, at once."""
    flow_runs = [operated.ask_for("quick/now", number=n) for n in (101, 102, 103)]
    states = [operated.ended(flow_run) for flow_run in flow_runs]
    assert [state.type.value for state in states] == ["COMPLETED"] * 3
    written = (operated.root / "quick.txt").read_text()
    assert all(f"{number} " in written for number in (101, 102, 103))


def test_a_run_that_no_worker_takes_says_so_and_runs_when_one_comes(operated):
    worker = psutil.Process(operated.record()["worker"])
    worker.suspend()
    try:
        flow_run = operated.ask_for("quick/now", number=201)
        waiting = operated.until(
            lambda: (s := operated.state(flow_run)).name == "AwaitingWorker" and s
        )
    finally:
        worker.resume()
    assert waiting.message.startswith("No worker of the pool text-harness has taken")
    assert operated.ended(flow_run).is_completed()


def test_a_worker_without_a_store_fails_the_run_with_a_sentence(operated):
    """What a worker runs, in the temporary folder where it runs it."""
    worker = psutil.Process(operated.record()["worker"])
    worker.suspend()
    try:
        flow_run = operated.ask_for("quick/now")
        done = operated.prefect(
            "flow-run", "execute", flow_run, HARNESS_ROOT="evidence"
        )
        state = operated.ended(flow_run)
    finally:
        worker.resume()
    assert state.is_failed(), done.stderr
    assert "The worker that runs this has HARNESS_ROOT 'evidence'" in state.message


def test_a_changed_file_removes_schedules_and_respects_pauses(operated):
    with operated.client() as client:
        found = client.read_deployment_by_name("quick/now")
        by_slug = {schedule.slug: schedule for schedule in found.schedules}
        client.update_deployment_schedule(found.id, by_slug["nightly"].id, active=False)
        own = by_slug["weekly"].schedule.model_copy(update={"cron": "5 5 * * *"})
        client.create_deployment_schedules(found.id, [(own, True)])
    document = yaml.safe_load(operated.deployments.read_text())
    document["deployments"][0]["description"] = "changed"
    del document["deployments"][0]["schedules"][1]
    operated.deployments.write_text(yaml.safe_dump(document))
    changed = operated.up_json()["changed"]
    assert "Quick/now: schedule 'weekly' removed." in changed
    assert "Quick/now: schedule 'nightly' stays paused." in changed
    with operated.client() as client:
        found = client.read_deployment_by_name("quick/now")
    assert found.description == "changed"
    left = {(s.slug, s.active, s.schedule.cron) for s in found.schedules}
    assert left == {("nightly", False, "30 1 * * *"), (None, True, "5 5 * * *")}
    assert operated.up_json()["changed"] == []


def test_what_died_is_started_again_and_old_scheduled_runs_are_superseded(operated):
    """SIGKILL of both, as a reboot does; then seven missed nights."""
    before = operated.record()
    with operated.client() as client:
        from prefect.states import Scheduled

        found = client.read_deployment_by_name("quick/now")
        os.kill(before["worker"], signal.SIGKILL)
        now = datetime.now(UTC)
        asked = [
            client.create_flow_run_from_deployment(
                found.id,
                state=Scheduled(scheduled_time=now - timedelta(days=age)),
                parameters={"number": 300 + age},
                tags=["auto-scheduled"] if age else [],
            ).id
            for age in (0, 3)
        ]
        nights = [
            client.create_flow_run_from_deployment(
                found.id,
                state=Scheduled(scheduled_time=now - timedelta(days=age)),
                parameters={"number": 400},
                tags=["auto-scheduled"],
            ).id
            for age in (1, 2, 3)
        ]
    os.kill(before["server"], signal.SIGKILL)
    changed = operated.up_json()["changed"]
    after = operated.record()
    assert any("Server started again" in line for line in changed)
    assert any("Worker started again" in line for line in changed)
    assert "Quick/now: 2 late scheduled runs superseded." in changed
    assert before["mark"] == after["mark"] and before["server"] != after["server"]
    ended = [operated.ended(flow_run) for flow_run in [*asked, *nights]]
    assert [state.type.value for state in ended] == [
        *["COMPLETED"] * 3,
        *["CANCELLED"] * 2,
    ]
    assert ended[-1].message.startswith("Superseded: nothing took this run at")


def test_down_ends_the_children_of_runs_and_nothing_of_anybody_else(operated):
    mine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    flow_run = operated.ask_for("waiting/now")
    file = operated.root / "waiting.txt"
    operated.until(file.exists)
    in_run = [psutil.Process(int(word)) for word in file.read_text().split()]
    record = operated.record()
    before = marked(record["mark"])
    assert {p.pid for p in in_run} <= {p.pid for p in before}
    done = operated.harness("down")
    try:
        assert done.returncode == 0, done.stderr
        assert f"Flow run {flow_run} was ended." in done.stdout
        assert "'mine' again" in done.stdout
        assert marked(record["mark"]) == []
        assert not any(process.is_running() for process in before)
        assert mine.poll() is None
    finally:
        mine.kill()
        mine.wait()
    assert (operated.home / "profiles.toml").read_text() == PROFILES
    assert not is_ours(record["server"], record["mark"])
    with socket.socket() as tried:
        assert tried.connect_ex(("127.0.0.1", operated.port)) != 0
    again = operated.harness("down")
    assert again.stdout == "Nothing that `harness up` started runs.\n"
    assert again.returncode == 0


def test_no_process_tried_to_reach_anything_outside(operated):
    """Every connection of server, worker, runs and commands of this module."""
    lines = operated.connections.read_text().splitlines()
    assert len({line.split()[0] for line in lines}) > 5, "several processes were heard"
    inside = ("127.0.0.1", "::1", "localhost", "/", "0.0.0.0")
    outside = [line for line in lines if not any(f"'{word}" in line for word in inside)]
    assert outside == []


def test_a_process_that_reaches_out_would_be_heard(operated):
    code = "import socket; s = socket.socket(); s.setblocking(False); "
    code += "s.connect_ex(('192.0.2.1', 9))"
    noted = operated.folder / "noted.txt"
    subprocess.run(
        [sys.executable, "-c", code],
        env={**operated.environment, "CONNECTIONS": str(noted)},
        check=True,
    )
    assert "'192.0.2.1'" in noted.read_text()
