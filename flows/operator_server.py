"""Starts the Prefect server of `harness up` and waits until it answers."""

import dataclasses
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from flows.operator_processes import end, is_ours, marked, refuse_taken_port, start
from flows.operator_settings import HOST
from flows.operator_state import MARK, state_folder
from flows.server_check import ServerFailed

SECONDS_TO_START = 180.0
LOG = "server.log"
TENDED = "flows.tended_server"
EXCEPTION = re.compile(r"[\w.]*(?:Error|Exception): ")
QUIET = ("Server stopped!", "Application startup failed. Exiting.")
"""What the log of a server that did not start ends with, and says nothing about why."""
EVERYWHERE = ("0.0.0.0", "::")


def log_file() -> Path:
    """Returns the file that takes what the server writes."""
    return state_folder() / LOG


def base_url(environment: Mapping[str, str]) -> str:
    """Returns where a browser on this machine finds a server with this environment."""
    host = environment[HOST]
    host = "127.0.0.1" if host in EVERYWHERE else host
    return f"http://{host}:{environment['PREFECT_SERVER_API_PORT']}"


@dataclasses.dataclass(frozen=True)
class Starting:
    """A server that has been started and may not answer yet."""

    process_id: int
    environment: Mapping[str, str]
    log_bytes: int
    """Size of the log before it was started."""

    def wait(self) -> None:
        """Waits until it answers; ends it if it does not.

        Raises:
            ServerFailed: It ended, or did not answer in time.
        """
        mark = self.environment[MARK]
        deadline = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < deadline:
            if not is_ours(self.process_id, mark):
                raise ServerFailed(
                    "The Prefect server ended before it answered: "
                    f"{self._last_line()}; see {str(log_file())!r}."
                )
            if answers(f"{base_url(self.environment)}/api/health"):
                return
            time.sleep(0.2)
        end(marked(mark))
        raise ServerFailed(
            f"The Prefect server did not answer within {SECONDS_TO_START:.0f} s; see "
            f"{str(log_file())!r}."
        )

    def _last_line(self) -> str:
        """Returns the last line of the log that says what went wrong."""
        text = log_file().read_bytes()[self.log_bytes :].decode(errors="replace")
        return reason_in(text)


def reason_in(log: str) -> str:
    """Returns why a server ended: its last exception, else its last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if EXCEPTION.match(line)]
    told = errors or [line for line in lines if not line.endswith(QUIET)]
    return (told or ["it wrote nothing"])[-1].rstrip(".")


def start_server(environment: Mapping[str, str]) -> Starting:
    """Starts the server without waiting for it.

    Raises:
        PortTaken: Somebody else listens there.
    """
    port = environment["PREFECT_SERVER_API_PORT"]
    refuse_taken_port(environment[HOST], int(port))
    size = log_file().stat().st_size if log_file().exists() else 0
    process_id = start(
        [TENDED, "server", "start", "--host", environment[HOST], "--port", port],
        environment,
        log_file(),
    )
    return Starting(process_id, environment, size)


def answers(address: str) -> bool:
    """Returns whether an address of a server answers."""
    try:
        with urllib.request.urlopen(address, timeout=5) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.URLError, ValueError):
        return False
