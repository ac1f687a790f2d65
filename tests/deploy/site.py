"""A Prefect server with workers, as an operator has them, that tests may kill.

Every process of it carries a marker in its environment, so that a test can count what
is left of a run however it was started.
"""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from flows.operator_automations import ensure_automations
from flows.operator_deployments import ensure_pool
from flows.operator_server import TENDED
from flows.operator_worker import POOL
from tests.processes import PATIENCE, is_running, wait_until

PROJECT = Path(__file__).parents[2]
TINY = PROJECT / "tests" / "data" / "tiny_project"
AUTOMATIONS = PROJECT / "deploy" / "automations.yaml"
DEPLOYMENTS = (
    ("tiny", "tiny_flow:qualify", None),
    ("limited", "tiny_flow:qualify", 1),
    ("default", "flows.qualify:qualify", None),
)
MARKER = f"HARNESS_TEST_MARKER_{os.getpid()}"
"""Of these tests alone: somebody else may run them on this machine too."""


def processes(marker: str, command: str = "") -> list[int]:
    """Returns the running processes with a marker and some text in their command."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"{MARKER}={marker}".encode() in environment and command in line:
            found.append(int(folder.name))
    return [process_id for process_id in found if is_running(process_id)]


class Site:
    """One server on a port of its own, its workers, and their runs."""

    def __init__(self, folder: Path, port: int) -> None:
        """Starts nothing yet."""
        self.folder = folder
        self.port = port
        self.url = f"http://127.0.0.1:{port}/api"
        self.server: subprocess.Popen[bytes] | None = None
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def environment(self, **changes: str) -> dict[str, str]:
        """Returns what every process of the site has in its environment."""
        paths = (str(PROJECT), str(TINY))
        return {
            **os.environ,
            "PREFECT_HOME": str(self.folder / "home"),
            "PREFECT_API_URL": self.url,
            "PREFECT_SERVER_API_PORT": str(self.port),
            "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
            "PREFECT_SERVER_UI_ENABLED": "false",
            "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
            "PREFECT_WORKER_QUERY_SECONDS": "2",
            "PYTHONPATH": os.pathsep.join(paths),
            MARKER: "site",
            **changes,
        }

    def _start(
        self, name: str, *command: str, **changes: str
    ) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *command],
                env=self.environment(**changes),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    # --- server ---

    def start_server(self) -> None:
        """Starts the server and waits until it answers."""
        host = ("--host", "127.0.0.1", "--port", str(self.port))
        self.server = self._start("server", TENDED, "server", "start", *host)
        wait_until(self.answers, "the server answers")

    def answers(self) -> bool:
        """Returns whether the server answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return answer.read() == b"true"
        except (OSError, urllib.error.URLError):
            return False

    def end_server(self, sent: signal.Signals) -> None:
        """Sends the server a signal and waits for its end."""
        assert self.server is not None
        self.server.send_signal(sent)
        self.server.wait(PATIENCE)

    # --- workers ---

    def start_worker(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        """Starts a worker of a queue of the same name."""
        queue = ("--pool", POOL, "--work-queue", name, "--name", name)
        self.workers[name] = self._start(
            f"worker-{name}",
            "prefect",
            "worker",
            "start",
            *queue,
            *options,
        )
        return self.workers[name]

    def stop(self) -> None:
        """Ends every process of the site, in whatever state tests left it."""
        for process in (*self.workers.values(), self.server):
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    # --- what the server says ---

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Yields a client of the server."""
        from prefect.client.orchestration import get_client
        from prefect.settings import PREFECT_API_URL, temporary_settings

        with (
            temporary_settings({PREFECT_API_URL: self.url}),
            get_client(sync_client=True) as client,
        ):
            yield client

    def prepare(self) -> None:
        """Brings pool, automations and deployments to the server."""
        with self.client() as client:
            ensure_pool(client, self.url)
            ensure_automations(client, self.url, AUTOMATIONS)
            flow = client.create_flow_from_name("qualify")
            for name, entrypoint, limit in DEPLOYMENTS:
                client.create_deployment(
                    flow_id=flow,
                    name=name,
                    entrypoint=entrypoint,
                    work_pool_name=POOL,
                    pull_steps=[],
                    concurrency_limit=limit,
                    concurrency_options={"collision_strategy": "ENQUEUE"},
                    parameter_openapi_schema={"type": "object", "properties": {}},
                )

    def ask(
        self, deployment: str, queue: str, marker: str, parameters: Any, **env: str
    ) -> UUID:
        """Asks for a run that the worker of a queue shall make."""
        variables = {"env": {MARKER: marker, **env}}

        def asked() -> Any:
            with self.client() as client:
                found = client.read_deployment_by_name(f"qualify/{deployment}")
                return client.create_flow_run_from_deployment(
                    found.id,
                    name=marker,
                    idempotency_key=marker,
                    work_queue_name=queue,
                    parameters=parameters,
                    job_variables=variables,
                )

        return UUID(str(wait_until(asked, f"the server takes {marker}").id))

    def states(self, *flow_runs: UUID) -> dict[UUID, Any]:
        """Returns the states of flow runs; nothing while the server is away."""
        from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

        only = FlowRunFilter(id=FlowRunFilterId(any_=list(flow_runs)))
        with self.client() as client:
            return {
                run.id: run.state for run in client.read_flow_runs(flow_run_filter=only)
            }

    def wait_for_end(self, flow_run: UUID) -> Any:
        """Returns the final state of a flow run."""

        def end() -> Any:
            state = self.states(flow_run)[flow_run]
            return state if state.is_final() else None

        return wait_until(end, f"flow run {flow_run} ends")

    def task_states(self, flow_run: UUID) -> dict[str, str]:
        """Returns the names of the states of a flow run's stages."""
        from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

        only = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run]))
        with self.client() as client:
            runs = client.read_task_runs(flow_run_filter=only)
        return {run.name: run.state.name for run in runs if run.state}

    def set_state(self, flow_run: UUID, state: Any) -> None:
        """Puts a flow run into a state, as the page or a worker does."""
        with self.client() as client:
            client.set_flow_run_state(flow_run, state)
