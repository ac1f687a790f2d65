"""The private Prefect API server, as a process that ends with the run it serves.

Prefect's embedded server outlives a parent that dies and drops task runs that it had
not written yet. This one is started with a pipe on its standard input: when the other
end closes, for whatever reason, it shuts down in order.
"""

import fcntl
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from socket import socket

import uvicorn

SECONDS_TO_END = 10

_answers = threading.Event()


class AnnouncingServer(uvicorn.Server):
    """A server that writes its port to standard output once it answers."""

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Starts up, one such server at a time, and then says where."""
        # Two that bring a new database up to date at once would break it.
        with Path(os.environ["PREFECT_HOME"], "startup.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            await super().startup(sockets)
        if sockets and self.started:
            _answers.set()
            port = sockets[0].getsockname()[1]
            sys.stdout.write(json.dumps({"port": port}) + "\n")
            sys.stdout.flush()


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    if not _answers.is_set():
        # Nothing was entrusted to it yet, and to finish its start takes seconds.
        os._exit(3)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SECONDS_TO_END)
    os._exit(3)


def main() -> None:
    """Serves Prefect's API on a free port of the loopback interface."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    config = uvicorn.Config(
        "prefect.server.api.server:create_app",
        factory=True,
        host="127.0.0.1",
        port=0,
        log_level="error",
        lifespan="on",
        timeout_graceful_shutdown=SECONDS_TO_END // 2,
    )
    AnnouncingServer(config).run(sockets=[config.bind_socket()])


if __name__ == "__main__":
    main()
