"""Days of an operator, through a real server and worker: each run reads as it ended.

A store in which all is finished; then the nightly regression without a baseline, with
one, and after a change; a target that is not there; and a night on which worker and run
are killed at once.
"""

import http.server
import json
import queue
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from flows.operator_processes import marked
from flows.operator_worker import flow_runs_of
from tests.flows.operated import Operated

pytestmark = pytest.mark.timeout(3600)
TWO_MINUTES = 120.0
SECONDS = 1800.0
CHANGED = {"train": {"optimizer": {"learning_rate": 0.004}}}


class Site(Operated):
    """What `harness up` starts, with the deployments that we ship."""

    compared: dict[str, "subprocess.CompletedProcess[str]"]
    """What `harness compare` said after a day."""

    def watch(self, deployment: str, **parameters: Any) -> tuple[int, Any]:
        """Runs a deployment as an operator does; returns exit code and flow run."""
        given = [
            word
            for name, value in parameters.items()
            for word in ("--param", f"{name}={json.dumps(value)}")
        ]
        done = self.prefect("deployment", "run", deployment, *given, "--watch")
        assert "Traceback" not in done.stdout + done.stderr
        return done.returncode, self.newest(deployment)

    def newest(self, deployment: str) -> Any:
        """Returns the flow run of a deployment that started last."""
        from prefect.client.schemas.filters import (
            DeploymentFilter,
            DeploymentFilterId,
            FlowRunFilter,
            FlowRunFilterStartTime,
        )
        from prefect.client.schemas.sorting import FlowRunSort

        with self.client() as client:
            found = client.read_deployment_by_name(deployment).id
            return client.read_flow_runs(
                deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[found])),
                flow_run_filter=FlowRunFilter(
                    start_time=FlowRunFilterStartTime(is_null_=False)
                ),
                sort=FlowRunSort.START_TIME_DESC,
                limit=1,
            )[0]

    def stages(self, flow_run: Any) -> dict[str, Any]:
        """Returns the states of the stages of a flow run."""
        from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

        only = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run]))
        with self.client() as client:
            runs = client.read_task_runs(flow_run_filter=only)
        return {run.name: run.state for run in runs}


@pytest.fixture(scope="module")
def received() -> Iterator[tuple[str, "queue.Queue[Any]"]]:
    """A web server of the one who wants to be told: its address, and what it got."""
    told: queue.Queue[Any] = queue.Queue()

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", told
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, qualified: Path, received: Any):
    site = Site(tmp_path_factory.mktemp("daily"))
    site.environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    site.seconds = SECONDS
    shutil.copytree(qualified, site.root)
    site.shipped = ("--port", site.port, "--root", site.root, "--webhook", received[0])
    done = site.harness("up", *site.shipped)
    assert done.returncode == 0, done.stderr
    try:
        yield site
    finally:
        site.harness("down")


@pytest.fixture(scope="module")
def days(site: Site) -> dict[str, tuple[int, Any]]:
    """Exit code and flow run of each run, one after another."""
    days = {"reused": site.watch("qualify/default")}
    days["no baseline"] = site.watch("regression/nightly", is_fresh=False)
    accepted = site.harness("accept", "latest", "--root", site.root)
    assert accepted.returncode == 0, accepted.stderr
    at = ("--root", site.root)
    days["agreeing"] = site.watch("regression/nightly")
    site.compared = {"agreeing": site.harness("compare", *at)}
    days["worse"] = site.watch("regression/nightly", is_fresh=False, settings=CHANGED)
    site.compared["worse"] = site.harness("compare", *at)
    days["target"] = site.watch("target/default")
    return days


@pytest.mark.parametrize(
    ("day", "code", "kind", "name", "words"),
    [
        ("reused", 0, "COMPLETED", "Completed", "nothing failed; "),
        ("no baseline", 0, "COMPLETED", "Not demonstrated", "no accepted baseline"),
        ("agreeing", 0, "COMPLETED", "Completed", " agrees with the baseline "),
        ("worse", 1, "FAILED", "Worse", " differs from the baseline "),
        ("target", 0, "COMPLETED", "Not demonstrated", " was asked for; "),
    ],
)
def test_each_run_reads_as_it_ended(day, code, kind, name, words, days):
    exit_code, run = days[day]
    state = run.state
    assert (state.type.value, state.name) == (kind, name), state.message
    assert words in state.message
    assert exit_code == code
    assert "could not be published" not in state.message


def test_a_finished_store_is_reused_and_each_stage_says_of_whom(days, site, qualified):
    stages = site.stages(days["reused"][1].id)
    assert len(stages) == 9
    (maker,) = [path.name for path in (qualified / "runs").iterdir()]
    for state in stages.values():
        assert state.name == "Reused"
        assert f"made by run {maker} at " in state.message


def test_what_was_changed_is_told_on_the_page_and_by_the_webhook(days, received):
    message = days["worse"][1].state.message
    assert "config train.optimizer.learning_rate 0.003 -> 0.004" in message
    told = received[1].get(timeout=60)
    assert told["text"] == message
    assert told["counts"]["differing_values"] > 0
    assert received[1].empty()


def test_the_same_computed_again_agrees_and_another_rate_does_not(days, site):
    """No false alarm where nothing changed, and an alarm where something did.

    Two fresh runs differ in process ids, times, nonces and traces, and in nothing else.
    """
    same, other = site.compared["agreeing"], site.compared["worse"]
    assert same.returncode == 0, same.stdout + same.stderr
    assert "stages recomputed 9, not recomputed 0" in same.stdout
    assert "nothing was changed" in same.stdout
    assert other.returncode == 1, other.stdout + other.stderr
    assert "the first is train_model: uninterrupted update 1 parameters" in other.stdout
    assert "train.optimizer.learning_rate 0.003 -> 0.004" in other.stdout


def _dead(site: Site) -> tuple[Any, float]:
    """Kills worker and run at once, in a training; returns the run, and when."""
    flow_run = site.ask_for("qualify/default", preset_name="fixture", is_fresh=True)
    site.until(
        lambda: (s := site.stages(flow_run).get("train_model")) and s.name == "Running",
        SECONDS,
    )
    processes = flow_runs_of(marked(site.record()["mark"]))[str(flow_run)]
    for process in (psutil.Process(site.record()["worker"]), *processes):
        process.send_signal(signal.SIGKILL)
    return flow_run, time.monotonic()


def test_when_worker_and_run_are_killed_at_once_the_page_is_true_in_time(days, site):
    """Of the run and of its stages, although nothing is started meanwhile."""
    flow_run, killed_at = _dead(site)
    state = site.ended(flow_run, SECONDS)
    assert (state.type.value, "No sign of life" in state.message) == ("CRASHED", True)
    ended = {"Running", "Pending"}
    site.until(lambda: not ended & {s.name for s in site.stages(flow_run).values()})
    assert time.monotonic() - killed_at <= TWO_MINUTES
    stages = site.stages(flow_run)
    assert stages["train_model"].message.startswith("The run of this stage has died")


def test_harness_up_ends_the_stages_of_a_dead_run_before_it_starts_anything(site):
    from prefect import flow, task
    from prefect.states import Crashed, Running

    with site.client() as client:
        died = client.create_flow_run(
            flow(lambda: None, name="qualify"), state=Crashed()
        )
        client.create_task_run(
            task(lambda: None, name="stage"),
            died.id,
            name="train_model",
            dynamic_key="0",
            state=Running(),
        )
    server = psutil.Process(site.record()["server"])
    server.send_signal(signal.SIGKILL)
    server.wait(60)
    done = site.harness("up", *site.shipped)
    assert done.returncode == 0, done.stderr
    # The server that has just been started does not look yet.
    assert site.stages(died.id)["train_model"].name == "Crashed"
