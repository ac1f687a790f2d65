"""Starts the worker of `harness up`, and ends the runs that it has started."""

import dataclasses
import hashlib
import os
import platform
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import psutil

from flows.operator_processes import is_ours, start, value_of
from flows.operator_state import MARK, state_folder
from tasks.errors import StageError

POOL = "text-harness"
"""Work pool of the worker that `harness up` starts."""
SECONDS_TO_START = 90.0
SECONDS_TO_INTERRUPT = 10.0
FLOW_RUN = "PREFECT__FLOW_RUN_ID"
LOG = "worker.log"


class WorkerFailed(StageError):
    """The worker did not come up."""


def log_file() -> Path:
    """Returns the file that takes what the worker and its runs write."""
    return state_folder() / LOG


def worker_name() -> str:
    """Returns the name under which the pool knows this worker: machine and home.

    Two homes of one machine may have a worker each; neither may pass for the other.
    """
    home = hashlib.sha256(str(state_folder()).encode()).hexdigest()
    return f"{platform.node() or 'worker'}-{home[:6]}"


@dataclasses.dataclass(frozen=True)
class Starting:
    """A worker that has been started and that its pool may not know yet."""

    process_id: int
    mark: str
    heartbeat: object
    """When the pool had last heard of a worker of this name."""

    def wait(self) -> None:
        """Waits until the pool has heard of it.

        Raises:
            WorkerFailed: It ended, or did not register in time.
        """
        deadline = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < deadline and is_ours(self.process_id, self.mark):
            heartbeat = _heartbeat()
            if heartbeat is not None and heartbeat != self.heartbeat:
                return
            time.sleep(0.5)
        raise WorkerFailed(
            f"The worker did not register in the pool {POOL!r}; see "
            f"{str(log_file())!r}."
        )


def start_worker(environment: Mapping[str, str], limit: int) -> Starting:
    """Starts the worker without waiting for it; it takes `limit` runs at a time."""
    before = _heartbeat()
    process_id = start(_arguments(limit), environment, log_file())
    return Starting(process_id, environment[MARK], before)


def become_worker(environment: Mapping[str, str], limit: int) -> NoReturn:
    """Turns this process into the worker, for containers and service managers."""
    arguments = [sys.executable, "-m", *_arguments(limit)]
    os.chdir(state_folder())
    os.execve(sys.executable, arguments, dict(environment))


def _arguments(limit: int) -> list[str]:
    return [
        *("prefect", "worker", "start", "--pool", POOL, "--type", "process"),
        *("--name", worker_name(), "--limit", str(limit)),
        "--no-create-pool-if-not-found",
    ]


def _heartbeat() -> object:
    """Returns when the pool last heard of the worker, null if never."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        workers = client.read_workers_for_work_pool(POOL)
    times = [w.last_heartbeat_time for w in workers if w.name == worker_name()]
    return times[0] if times else None


def flow_runs_of(processes: list[psutil.Process]) -> dict[str, list[psutil.Process]]:
    """Returns the processes of each flow run by its id."""
    runs: dict[str, list[psutil.Process]] = {}
    for process in processes:
        if flow_run := value_of(process, FLOW_RUN):
            runs.setdefault(flow_run, []).append(process)
    return runs


def interrupt(processes: list[psutil.Process]) -> None:
    """Asks the processes of runs to end, so that each can write that it was ended."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
    psutil.wait_procs(processes, timeout=SECONDS_TO_INTERRUPT)
