"""Notes where every Python process that loads it tries to connect to."""

import os
import sys


def _note(event: str, arguments: tuple) -> None:
    if event == "socket.connect":
        what = arguments[1]
    elif event == "socket.getaddrinfo":
        what = arguments[0]
    else:
        return
    with open(os.environ["CONNECTIONS"], "a") as file:  # noqa: PTH123
        file.write(f"{os.getpid()} {event} {what!r}\n")


if "CONNECTIONS" in os.environ:
    sys.addaudithook(_note)
