"""The process that programs of a trial are forked from: Python with JAX imported.

Importing JAX takes a program about a second, and a drill starts hundreds. Here it is
imported once, and nothing of the system is: each fork imports that itself, so one that
has functions replaced leaves nothing to the next. No backend has started and no thread
runs when a process is forked; JAX has to be as unused there as after its import.

Runs as a script, with a socket for its standard input. A message is JSON with `program`
(module), `request` (path), `folder` (to start in) and `environment`; beside it come
descriptors for standard input, output and error, and for the answer: process id and,
when it has ended, return code, a line each. The server ends with its socket.
"""

import array
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

LONGEST_MESSAGE_BYTES = 1 << 20
DESCRIPTORS = 4


def serve(modules: list[str]) -> dict[str, Any] | None:
    """Forks a process for each message, and returns in it; None at the very end.

    Args:
        modules: What is imported before anything is forked.
    """
    for name in modules:
        importlib.import_module(name)
    # What is there already will not be collected, so forks keep sharing it.
    gc.freeze()
    # Nobody waits for those who wait for programs.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=os.dup(0)) as control:
        while True:
            message, descriptors = _receive(control)
            if not message:
                return None
            if not os.fork():
                break
            for descriptor in descriptors:
                os.close(descriptor)
    return _divide(json.loads(message), *descriptors)


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    descriptors = array.array("i")
    room = socket.CMSG_LEN(DESCRIPTORS * descriptors.itemsize)
    message, beside, _, _ = control.recvmsg(LONGEST_MESSAGE_BYTES, room)
    for level, kind, data in beside:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data)
    return message, list(descriptors)


def _divide(
    call: dict[str, Any], given: int, output: int, errors: int, answer: int
) -> dict[str, Any]:
    """Returns in the process of the program; another waits for it and ends here."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    process = os.fork()
    if process:
        for descriptor in (output, errors):
            os.close(descriptor)
        _wait(process, given, answer)
        os._exit(0)
    os.setsid()
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.path.insert(0, os.environ["PYTHONPATH"])
    for number, descriptor in enumerate((given, output, errors)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    # Only now, when its session is its own, may anyone kill it.
    os.write(answer, f"{os.getpid()}\n".encode())
    os.close(answer)
    return call


def _wait(process: int, given: int, answer: int) -> None:
    """Tells how a program ended, and keeps its number until its input is closed."""
    ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert ended is not None, "a child that is waited for ends"
    is_exit = ended.si_code == os.CLD_EXITED
    code = ended.si_status if is_exit else -ended.si_status
    # What it started may hold its standard output open, which is read to the end.
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    with suppress(BrokenPipeError):  # whoever asked is gone
        os.write(answer, f"{code}\n".encode())
    os.close(answer)
    while os.read(given, 4096):
        pass  # nothing is sent; only the end counts
    # Whoever inherits it may take seconds to collect it, and some never do.
    os.waitpid(process, 0)


if __name__ == "__main__":
    asked = serve(sys.argv[1:])
    if asked is not None:
        sys.argv = [asked["program"], asked["request"]]
        runpy.run_module(asked["program"], run_name="__main__", alter_sys=True)
