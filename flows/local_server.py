"""Where Prefect keeps its view of a run when nobody has configured a server.

Prefect would start an embedded server of its own, which loses task runs when the
process ends and goes on running when the process is killed. Here it is a child that
ends with us, on a free port of the loopback interface, with its database in a private
folder. It starts while Prefect is still being imported.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from flows.configured_server import configured_api_url
from flows.server_check import ServerFailed
from tasks.program_environment import private_cache

SECONDS_TO_END = 15

SETTINGS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    # A server that marks silent runs as crashed has to hear of this one in time.
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
    "PREFECT_LOGGING_LEVEL": "WARNING",
    # Failures are told in one sentence by us; Prefect keeps its traceback.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    # Six seconds for a server to answer: a run is kept without it, and whoever waits
    # for the command shall not wait for minutes. A worker's runs wait for a minute.
    "PREFECT_CLIENT_MAX_RETRIES": "2",
}
PRIVATE = "HARNESS_PRIVATE_SERVER"
PRIVATE_SETTINGS = {
    # Nobody will look at its pages, so nothing is made for them.
    PRIVATE: "1",
    # Nobody looks at the log of a private server, and it ends before the last line.
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    # Without an address Prefect would start the embedded server after all.
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
}
SERVER_SETTINGS = {
    "PREFECT_SERVER_UI_ENABLED": "false",
    # Only what records flow runs, task runs, events and logs.
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
}


class LocalServer:
    """A private Prefect server that ends with this process."""

    def __init__(self) -> None:
        """Starts it without waiting."""
        self._home = private_cache("prefect")
        self._errors = (self._home / "server.log").open("wb")
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "flows.server_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # A Ctrl-C is for us; the server ends when it has written everything.
            start_new_session=True,
            text=True,
            env={
                **os.environ,
                **SETTINGS,
                **SERVER_SETTINGS,
                "PREFECT_HOME": str(self._home),
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            },
        )

    def api_url(self) -> str:
        """Returns the address of its API once it answers.

        Raises:
            ServerFailed: It ended before it answered.
        """
        line = self._announcement()
        if not line:
            # A start that was killed may have left half a database. It holds a view
            # of runs and nothing else, so a new one takes its place.
            self._end(self._process)
            for file in self._home.glob("prefect.db*"):
                file.unlink(missing_ok=True)
            self._process = self._start()
            line = self._announcement()
        if not line:
            raise ServerFailed(
                "The private Prefect server did not start; see "
                f"{self._errors.name!r}, or set PREFECT_API_URL to a running one."
            )
        return f"http://127.0.0.1:{json.loads(line)['port']}/api"

    def _announcement(self) -> str:
        return self._process.stdout.readline() if self._process.stdout else ""

    def stop(self) -> None:
        """Ends it in order, and by force if that takes too long."""
        self._end(self._process)
        self._errors.close()

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        try:
            process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def prefect_server() -> Iterator[LocalServer | None]:
    """Yields a private server that is starting, or None where one is configured."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    if configured_api_url():
        yield None
        return
    os.environ.update(PRIVATE_SETTINGS, PREFECT_HOME=str(private_cache("prefect")))
    server = LocalServer()
    try:
        yield server
    finally:
        server.stop()
