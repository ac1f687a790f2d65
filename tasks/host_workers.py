"""Whether every host of a gang has a live worker, asked before anything is started.

Prefect takes a run for a queue that nobody polls and leaves it there, and a worker does
not make the queue that it is told to poll. So a queue that is missing is made, a worker
gets the time of one look at it, and what is then silent is named.
"""

import time
from collections.abc import Sequence
from typing import Any

from prefect.client.orchestration import SyncPrefectClient
from prefect.exceptions import ObjectNotFound

from tasks.errors import StageError
from tasks.hosts import DEPLOYMENT, POOL

SECONDS_TO_POLL = 20.0
"""A worker looks every 10 s; twice that for one that has just started."""
LOOK_SECONDS = 0.5
START = f"prefect worker start --pool {POOL} --limit 1 --work-queue"


class HostsNotReady(StageError):
    """A gang of hosts lacks a pool, a deployment, or a live worker."""


def require_workers(
    client: SyncPrefectClient, queues: Sequence[str], seconds: float = SECONDS_TO_POLL
) -> None:
    """Refuses to start a gang where a host has no live worker.

    Args:
        client: A client of the server.
        queues: The queue of each host.
        seconds: How long a worker has to look at its queue.

    Raises:
        HostsNotReady: A pool, deployment or worker is missing, each named.
    """
    if len(set(queues)) != len(queues) or not all(queues):
        raise HostsNotReady(
            f"The queues are {', '.join(map(repr, queues))}; each host has its own."
        )
    _require_deployment(client)
    made = _make_missing(client, queues)
    until = time.monotonic() + seconds
    silent = _silent(client, queues)
    while silent and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
        silent = _silent(client, queues)
    if not silent:
        return
    for name in silent:
        # Nobody shall take a misspelt name for a queue of ours.
        if name in made:
            client.delete_work_queue_by_id(made[name])
    raise HostsNotReady(
        f"No worker is alive for {', '.join(map(repr, silent))} of the work pool "
        f"{POOL!r}, so nothing was started. On that host: {START} {silent[0]}"
    )


def _require_deployment(client: SyncPrefectClient) -> None:
    try:
        client.read_work_pool(POOL)
        client.read_deployment_by_name(DEPLOYMENT)
    except ObjectNotFound:
        raise HostsNotReady(
            f"The server has no work pool {POOL!r} with the deployment "
            f"{DEPLOYMENT!r}; `harness up` brings both to it, and `{START} QUEUE` "
            "starts the worker of a host."
        ) from None


def _make_missing(client: SyncPrefectClient, queues: Sequence[str]) -> dict[str, Any]:
    known = {each.name for each in client.read_work_queues(work_pool_name=POOL)}
    missing = [name for name in queues if name not in known]
    return {
        name: client.create_work_queue(name=name, work_pool_name=POOL).id
        for name in missing
    }


def _silent(client: SyncPrefectClient, queues: Sequence[str]) -> list[str]:
    """Returns the queues that no worker has polled within a minute."""
    found = {q.name: q.status for q in client.read_work_queues(work_pool_name=POOL)}
    states = {name: str(getattr(s, "value", s)).upper() for name, s in found.items()}
    return [name for name in queues if states.get(name) != "READY"]
