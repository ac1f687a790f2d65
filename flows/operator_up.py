"""`harness up`: step after step, each of which finds what is there before it acts.

A second call repairs what has ended and changes nothing else, so the same code starts
everything, survives a reboot, and goes on after an interruption.
"""

import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flows import operator_server, operator_worker
from flows.configured_server import configured_api_url
from flows.display import note
from flows.operator_automations import (
    ensure_automations,
    ensure_webhook,
    refuse_webhook,
)
from flows.operator_deployments import (
    declared_deployments,
    ensure_deployments,
    ensure_pool,
    full_name,
)
from flows.operator_late import supersede_late
from flows.operator_processes import is_ours
from flows.operator_profile import activate, active_profile
from flows.operator_settings import (
    AUTH,
    PROFILE,
    read_settings,
    server_environment,
    worker_environment,
)
from flows.operator_state import (
    Operated,
    alone,
    credentials,
    keep_credentials,
    new_mark,
    record,
    recorded,
)
from flows.operator_wanted import (
    AlreadyRuns,
    Wanted,
    given_settings,
    refuse_difference,
)
from flows.server_check import check_server
from tasks import hosts

DEFAULT_PORT = 4200
DEFAULT_LIMIT = 1


def bring_up(wanted: Wanted) -> dict[str, Any]:
    """Starts or repairs everything; returns what runs, and what was changed for it."""
    from flows.left_task_runs import crash_left_task_runs

    # What is wrong with the request is said before anything is started.
    settings = read_settings(wanted.settings)
    declared = declared_deployments(wanted.deployments)
    refuse_webhook(wanted.webhook)
    with alone():
        running = refuse_difference(recorded(), wanted, settings)
        if running is None:
            running = _planned(wanted, settings)
        changed: list[str] = []
        auth = ""
        if running.port is not None:
            if not is_ours(running.server, running.mark):
                keep_credentials(settings.get(AUTH) or os.environ.get(AUTH))
            auth = credentials()
            running, lines = _ensure_server(running, settings, auth)
            changed += lines
        client = _client_settings(running, auth)
        with _using(client):
            check_server(running.api_url)
            crash_left_task_runs()
            environment = worker_environment(
                settings, running.mark, running.root, client
            )
            changed += _ensure_registered(running, wanted, environment)
            running, lines = _ensure_worker(running, wanted, environment)
            changed += lines
    return _shown(running, changed, [full_name(entry) for entry in declared], auth)


def _planned(wanted: Wanted, settings: Mapping[str, str]) -> Operated:
    """Returns what is to run: on a server that a user has configured, or on our own."""
    profile = os.environ.get("PREFECT_PROFILE")
    address = configured_api_url() if active_profile() != PROFILE else None
    running = Operated(
        mark=new_mark(),
        api_url=address or "",
        root=str(wanted.root),
        settings=str(wanted.settings),
        given=given_settings(settings),
        limit=wanted.limit or DEFAULT_LIMIT,
    )
    if address:
        return running
    if profile not in (None, PROFILE):
        raise AlreadyRuns(
            f"PREFECT_PROFILE is {profile!r}, so this shell would not find the server; "
            "unset it."
        )
    port = wanted.port or int(settings.get("PREFECT_SERVER_API_PORT") or DEFAULT_PORT)
    environment = server_environment(settings, running.mark, port, "")
    url = f"{operator_server.base_url(environment)}/api"
    return dataclasses.replace(running, api_url=url, port=port)


def _ensure_server(
    running: Operated, settings: Mapping[str, str], auth: str
) -> tuple[Operated, list[str]]:
    changed = []
    assert running.port is not None
    if not is_ours(running.server, running.mark):
        verb = "started" if running.server is None else "started again"
        note("Starting the Prefect server (about ten seconds).")
        environment = server_environment(settings, running.mark, running.port, auth)
        started = operator_server.start_server(environment)
        running = dataclasses.replace(running, server=started.process_id)
        record(running)
        started.wait()
        changed.append(f"Server {verb}: process {running.server}.")
    if activate(running.api_url, auth):
        changed.append(f"Prefect's active profile is {PROFILE!r}.")
    return running, changed


def _client_settings(running: Operated, auth: str) -> dict[str, str]:
    """Returns how the server is reached; nothing where a user has configured it."""
    if running.port is None:
        return {}
    return {
        "PREFECT_PROFILE": PROFILE,
        "PREFECT_API_URL": running.api_url,
        "PREFECT_API_AUTH_STRING": auth,
    }


@contextmanager
def _using(client: Mapping[str, str]) -> Iterator[None]:
    from prefect.settings import (
        PREFECT_API_AUTH_STRING,
        PREFECT_API_URL,
        temporary_settings,
    )

    settings = (PREFECT_API_URL, PREFECT_API_AUTH_STRING)
    updates = {s: client[s.name] for s in settings if s.name in client}
    with temporary_settings(updates):
        yield


def _ensure_registered(
    running: Operated, wanted: Wanted, environment: Mapping[str, str]
) -> list[str]:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        changed = []
        for pool in (operator_worker.POOL, hosts.POOL):
            if ensure_pool(client, running.api_url, pool):
                changed.append(f"Work pool {pool!r} made.")
        note("Bringing the deployments up to date.")
        lines = ensure_deployments(
            client, running.api_url, wanted.deployments, environment
        )
        if wanted.webhook:
            lines += ensure_webhook(client, running.api_url, wanted.webhook)
        lines += ensure_automations(client, running.api_url, wanted.automations)
        if not is_ours(running.worker, running.mark):
            declared = declared_deployments(wanted.deployments)
            lines += supersede_late(client, map(full_name, declared))
    return [*changed, *(f"{line[:1].upper()}{line[1:]}." for line in lines)]


def _ensure_worker(
    running: Operated, wanted: Wanted, environment: Mapping[str, str]
) -> tuple[Operated, list[str]]:
    if is_ours(running.worker, running.mark):
        if wanted.is_foreground:
            raise AlreadyRuns(
                f"The worker runs already as process {running.worker}; `harness down` "
                "first."
            )
        return running, []
    if wanted.is_foreground:
        note("This process is the worker now; Ctrl-C ends it.")
        operator_worker.become_worker(environment, running.limit)
    verb = "started" if running.worker is None else "started again"
    note("Starting the worker.")
    started = operator_worker.start_worker(environment, running.limit)
    running = dataclasses.replace(running, worker=started.process_id)
    record(running)
    started.wait()
    return running, [f"Worker {verb}: process {running.worker}."]


def _shown(
    running: Operated, changed: list[str], names: list[str], auth: str
) -> dict[str, Any]:
    is_own = running.port is not None
    return {
        "changed": changed,
        "ui": running.api_url.removesuffix("/api"),
        "api_url": running.api_url,
        "sign_in": auth if is_own else None,
        "root": running.root,
        "server_log": str(operator_server.log_file()) if is_own else None,
        "worker_log": str(operator_worker.log_file()),
        "deployments": names,
    }
