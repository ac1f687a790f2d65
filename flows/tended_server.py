"""Prefect's server, and a thread of it that puts right what automations cannot.

An automation marks a run as crashed that has stopped without a word, but automations
cannot touch task runs. Where the worker died with its run, nobody else is left to say
what became of the stages: they would read as running until the next run begins. And no
automation can name a run that waits.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta

from flows.operator_settings import AUTH, HOST

PORT = "PREFECT_SERVER_API_PORT"
SECONDS_BEFORE = 30.0
"""Time that the server has for its own start."""
SECONDS_BETWEEN = 5.0
SECONDS_TO_ANSWER = 10.0
SETTLED = timedelta(seconds=10)
"""What a stage has said itself is on its page this long after the end of its run."""


def main() -> None:
    """Runs Prefect's command line, such as `prefect server start`, with the thread."""
    threading.Thread(target=_tend, daemon=True).start()
    from prefect.cli import app

    app()


def _tend() -> None:
    time.sleep(SECONDS_BEFORE)
    # Prefect is loaded by now: two threads that load it at once may meet halves of it.
    from flows.operator_server import base_url

    address = f"{base_url({HOST: '127.0.0.1', PORT: '4200', **os.environ})}/api"
    while True:
        tend_once(address, os.environ.get(AUTH), SETTLED)
        time.sleep(SECONDS_BETWEEN)


def tend_once(address: str, auth: str | None, settled: timedelta) -> None:
    """Looks at a server once; one that does not answer is looked at later.

    Args:
        address: Of its API.
        auth: Its credentials, USER:PASSWORD.
        settled: How long a run has to be over before its stages are looked at.
    """
    import httpx
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.exceptions import PrefectException

    from flows.left_task_runs import crash_settled_task_runs
    from flows.waiting_names import name_waiting_runs

    settings = {"timeout": SECONDS_TO_ANSWER}
    with (
        suppress(httpx.HTTPError, PrefectException, RuntimeError),
        SyncPrefectClient(address, auth_string=auth, httpx_settings=settings) as client,
    ):
        crash_settled_task_runs(client, settled)
        name_waiting_runs(client)


if __name__ == "__main__":
    sys.argv[0] = "prefect"
    main()
