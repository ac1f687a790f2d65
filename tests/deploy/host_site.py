"""A Prefect server with a launcher and hosts that share it and one storage URL alone.

Each worker has a home, a folder for temporary files and a cache of its own, and none of
them knows the evidence of the launcher.
"""

import os
import subprocess
import sys
from pathlib import Path

from flows.operator_deployments import ensure_pool
from flows.operator_worker import POOL
from tasks import hosts
from tests.deploy.site import PROJECT, Site

LAUNCHER = "launcher"
STUB = PROJECT / "tests" / "data" / "stub_controller"


class HostSite(Site):
    """A server, one worker for launchers, and one for each host."""

    def __init__(self, folder: Path, port: int, storage: str, **common: str) -> None:
        """Starts nothing yet; `common` is in the environment of everything."""
        super().__init__(folder, port)
        self.storage = storage
        self.common = common
        self.root = folder / "evidence"

    def environment(self, **changes: str) -> dict[str, str]:
        """Returns what every process of the site has in its environment."""
        found = super().environment(**self.common)
        found["PYTHONPATH"] += f"{os.pathsep}{STUB}"
        # Each home has a cache of its own.
        found.pop("JAX_COMPILATION_CACHE_DIR", None)
        return {**found, **changes}

    def prepare(self) -> None:
        """Makes both pools and deploys what the file declares, as an operator does."""
        with self.client() as client:
            for pool in (POOL, hosts.POOL):
                ensure_pool(client, self.url, pool)
        file = str(PROJECT / "deploy" / "prefect.yaml")
        done = self.prefect("--no-prompt", "deploy", "--prefect-file", file, "--all")
        assert done.returncode == 0, done.stdout + done.stderr

    def prefect(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of Prefect in the folder of the site."""
        return self.command("prefect", *arguments)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a module in the folder of the site, as a shell would."""
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.folder,
            env=self.environment(COLUMNS="500"),
            capture_output=True,
            text=True,
            timeout=900,
        )

    def logs(self) -> str:
        """Returns the ends of all logs, for the failure of a test."""
        files = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{f.name}: {f.read_text()[-3000:]}" for f in files)

    def start_launcher(self) -> None:
        """Starts the worker that gives orders; it alone has an evidence store."""
        self._own_worker(
            LAUNCHER,
            *("--pool", POOL, "--limit", "1"),
            HARNESS_ROOT=str(self.root),
            HARNESS_STORAGE_URL=self.storage,
        )

    def start_host(self, queue: str, **changes: str) -> None:
        """Starts the worker of a host."""
        pool = ("--pool", hosts.POOL, "--work-queue", queue, "--limit", "1")
        self._own_worker(queue, *pool, **changes)

    def _own_worker(self, name: str, *options: str, **changes: str) -> None:
        home = self.folder / name
        for own in ("home", "temporary", "cache"):
            (home / own).mkdir(parents=True)
        self.workers[name] = self._start(
            name,
            *("prefect", "worker", "start", "--name", name, *options),
            PREFECT_HOME=str(home / "prefect"),
            HOME=str(home / "home"),
            TMPDIR=str(home / "temporary"),
            XDG_CACHE_HOME=str(home / "cache"),
            **changes,
        )
