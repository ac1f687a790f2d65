"""Runs a flow from a process that has not loaded Prefect yet.

Three things take seconds before the first stage can start: Prefect's server, Prefect
itself, and the program that reports the runtime. They start side by side.
"""

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from flows.configured_server import configured_api_url
from flows.display import note
from flows.interruption import ending_soon_when_interrupted
from flows.local_server import LocalServer, prefect_server
from flows.progress_lines import ProgressLines
from flows.runtime_fingerprint import runtime_fingerprint
from flows.server_check import ServerFailed, check_server
from flows.server_loss import RunEnd
from tasks import children, progress

SECONDS_TO_RECORD = 10.0


def run_flow(name: str, *, overrides: Sequence[str] = (), **parameters: Any) -> str:
    """Runs a flow with progress on stderr and returns the id of the run.

    Args:
        name: Name of the flow and of its module in `flows`.
        overrides: Settings that differ, such as "train.updates=10".
        parameters: What else the flow takes, by name.

    Raises:
        StageError: A stage failed.
        WarehouseError: The store could not be used.
    """
    note("Starting: Prefect, its server, and the report of the runtime.")
    with prefect_server() as server, ThreadPoolExecutor(max_workers=1) as pool:
        try:
            measuring = pool.submit(runtime_fingerprint)
            flow = getattr(importlib.import_module(f"flows.{name}"), name)
            if overrides:
                parameters["settings"] = _settings(overrides)
            if server is None:
                check_server(configured_api_url() or "")
            measuring.result()
            with (
                _using(server),
                progress.listening(ProgressLines().hear),
                ending_soon_when_interrupted(),
            ):
                return _run(lambda: flow(**parameters, return_state=True), server)
        except BaseException:
            # A program that still reports would hold this process until it ends.
            children.stop_all()
            raise


def _settings(overrides: Sequence[str]) -> Any:
    from flows.parameters import Settings

    return Settings.from_overrides(overrides)


def _run(call: Callable[[], Any], server: LocalServer | None) -> str:
    """Returns the id of a run of which Prefect, or our store, knows the end."""
    import httpx

    ended = RunEnd()
    with progress.listening(ended.hear):
        try:
            state = _reached(call)
            if server is not None:
                _wait_until_recorded(state.state_details.flow_run_id)
        except httpx.TransportError:
            return ended.without_server()
    run_id: str = state.result()
    return run_id


def _reached(call: Callable[[], Any]) -> Any:
    """Returns what a call of Prefect returns, if its configured server answers.

    Raises:
        ServerFailed: It does not.
    """
    try:
        return call()
    except RuntimeError as error:
        # Prefect has no class for it; its text holds the address without a password.
        words, at, address = str(error).partition(" at ")
        if not words.startswith("Failed to reach API"):
            raise
        raise ServerFailed(
            f"The Prefect server{at}{address} does not answer; start it, or unset "
            "PREFECT_API_URL (or the profile that names it) to run with a private one."
        ) from None


@contextmanager
def _using(server: LocalServer | None) -> Iterator[None]:
    if server is None:
        yield
        return
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: server.api_url()}):
        yield


def _wait_until_recorded(flow_run_id: UUID | None) -> None:
    """Waits until the server has written every task run; it gets them as events."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
    from prefect.events.worker import EventsWorker

    EventsWorker.drain_all(timeout=SECONDS_TO_RECORD)
    if flow_run_id is None:
        return
    only = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id]))
    deadline = time.monotonic() + SECONDS_TO_RECORD
    with get_client(sync_client=True) as client:
        while time.monotonic() < deadline:
            task_runs = client.read_task_runs(flow_run_filter=only)
            if task_runs and all(
                run.state and run.state.is_final() for run in task_runs
            ):
                return
            time.sleep(0.1)
