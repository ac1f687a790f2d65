"""`harness up` in a home of its own, for tests that need a server and a worker."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.free_ports import free_port

DATA = Path(__file__).parents[1] / "data" / "operated"
PROJECT = Path(__file__).parents[2]
SECONDS = 180.0


class Operated:
    """A home folder with a deployments file, in which `harness` is called."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.seconds = SECONDS
        self.port = free_port()
        self.root = folder / "evidence"
        self.home = folder / "prefect"
        self.home.mkdir()
        shutil.copytree(DATA, folder / "flows")
        self.deployments = folder / "flows" / "prefect.yaml"
        self.automations = folder / "flows" / "automations.yaml"
        self.connections = folder / "connections.txt"
        self.environment = {
            **os.environ,
            "PYTHONPATH": f"{PROJECT}{os.pathsep}{folder / 'flows'}",
            "PREFECT_HOME": str(self.home),
            "PREFECT_SERVER_SERVICES_LATE_RUNS_AFTER_SECONDS": "2",
            "CONNECTIONS": str(self.connections),
            # What `python -m` finds beside the folder it is called in.
            "PYTHONSAFEPATH": "1",
            **environment,
        }
        self.environment.pop("PREFECT_LOGGING_TO_API_ENABLED", None)

    def run(self, *arguments: object, **environment: str):
        """Runs a module in a process of its own, as a shell would."""
        return subprocess.run(
            [sys.executable, "-m", *map(str, arguments)],
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=self.seconds,
        )

    def harness(self, *arguments: object, **environment: str):
        return self.run("flows.command_line", *arguments, **environment)

    def up(self, *arguments: object, **environment: str):
        return self.harness("up", *self.options(), *arguments, **environment)

    def options(self, **others: object) -> list[object]:
        options: dict[str, object] = {
            "port": self.port,
            "root": self.root,
            "deployments": self.deployments,
            "automations": self.automations,
            **others,
        }
        return [word for name in options for word in (f"--{name}", options[name])]

    def up_json(self, *arguments: object) -> dict[str, Any]:
        done = self.up("--json", *arguments)
        assert done.returncode == 0, done.stderr
        shown: dict[str, Any] = json.loads(done.stdout)
        return shown

    def record(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(
            (self.home / "text-harness" / "up.json").read_text()
        )
        return document

    def prefect(self, *arguments: object, **environment: str):
        return self.run("prefect", *arguments, **environment)

    @contextmanager
    def client(self):
        """Yields a client of the server, as the profile describes it."""
        from prefect.client.orchestration import get_client
        from prefect.settings import (
            PREFECT_API_AUTH_STRING,
            PREFECT_API_URL,
            temporary_settings,
        )

        credentials = (self.home / "text-harness" / "credentials").read_text()
        settings = {
            PREFECT_API_URL: self.record()["api_url"],
            PREFECT_API_AUTH_STRING: credentials,
        }
        with temporary_settings(settings), get_client(sync_client=True) as client:
            yield client

    def ask_for(self, deployment: str, **parameters: object) -> Any:
        """Creates a flow run and returns its id."""
        with self.client() as client:
            found = client.read_deployment_by_name(deployment)
            return client.create_flow_run_from_deployment(
                found.id, parameters=parameters
            ).id

    def state(self, flow_run: Any) -> Any:
        with self.client() as client:
            return client.read_flow_run(flow_run).state

    def until(self, what: Callable[[], Any], seconds: float = SECONDS) -> Any:
        """Waits until something holds, and returns it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := what():
                return found
            time.sleep(0.3)
        raise AssertionError(f"{what} did not hold within {seconds} s; {self.logs()}")

    def ended(self, flow_run: Any, seconds: float = SECONDS) -> Any:
        """Waits until a flow run has ended, and returns its state."""
        return self.until(lambda: (s := self.state(flow_run)).is_final() and s, seconds)

    def logs(self) -> str:
        files = sorted((self.home / "text-harness").glob("*.log"))
        return "\n".join(f"{f.name}: {f.read_text()[-2000:]}" for f in files)
