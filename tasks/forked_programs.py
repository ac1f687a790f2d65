"""Programs that are forked from a process that has imported JAX.

A trial starts one program after another, hundreds in a drill, and half of the time of
each would go into importing JAX; the controllers of a rehearsal would import it side by
side. A forked one is a process of its own as any other: with its own session, streams,
environment and memory, ended in the same ways.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from tasks import fork_server
from tasks.errors import ProgramFailed
from tasks.program_environment import program_environment, root_of

IMPORTED = ("jax", "jax.numpy", "jax.export", "jax.monitoring", "jax.profiler")
"""What programs import, of others than the project; JAX imports the rest."""


class Forked:
    """A program that was forked, with what `subprocess.Popen` has of one."""

    def __init__(self, pid: int, stdin: IO[str], stdout: IO[str], answer: IO[str]):
        """Takes over its number and its streams."""
        self.pid = pid
        self.returncode: int | None = None
        self.stdin = stdin
        self.stdout = stdout
        self._answer = answer

    def wait(self) -> int:
        """Waits for its end and returns its return code, as `Popen` tells it."""
        if self.returncode is None:
            # Without an answer whoever waited for it was killed, and so was it.
            told = self._answer.readline()
            self.returncode = int(told) if told else -signal.SIGKILL
            self._answer.close()
        return self.returncode


class ForkServer:
    """The process that programs are forked from."""

    def __init__(
        self,
        imported: Sequence[str] = IMPORTED,
        changes: Mapping[str, str] | None = None,
    ) -> None:
        """Starts it; the first program waits until everything is imported.

        Args:
            imported: Modules that are there before a program is forked.
            changes: Variables that differ, for JAX to read and for each program.
        """
        self.changes = dict(changes) if changes is not None else None
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = program_environment(root_of("model"), changes)
        # Each fork is told where its own modules lie; here is nothing to find.
        del environment["PYTHONPATH"]
        self._control = own
        with other:
            self._process = subprocess.Popen(
                [sys.executable, fork_server.__file__, *imported],
                stdin=other.fileno(),
                stdout=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )

    def start(
        self,
        program: str,
        request: Path,
        *,
        folder: Path,
        environment: Mapping[str, str],
        errors: BinaryIO,
    ) -> Forked:
        """Returns a program that has begun, in a session and with pipes of its own.

        Args:
            program: Module name.
            request: Its only argument.
            folder: The folder it starts in.
            environment: Its whole environment; JAX's settings are the server's.
            errors: The file its standard error goes to.

        Raises:
            ProgramFailed: The server has ended.
        """
        call = {
            "program": program,
            "request": str(request),
            "folder": str(folder),
            "environment": dict(environment),
        }
        given, stdin = os.pipe()
        stdout, output = os.pipe()
        answer, told = os.pipe()
        own = os.fdopen(stdin, "w"), os.fdopen(stdout), os.fdopen(answer)
        theirs = [given, output, errors.fileno(), told]
        reason = ""
        try:
            socket.send_fds(self._control, [json.dumps(call).encode()], theirs)
        except OSError as error:
            reason = f" ({error.strerror})"
        finally:
            for descriptor in (given, output, told):
                os.close(descriptor)
        process_id = own[2].readline()
        if not process_id:
            for stream in own:
                stream.close()
            raise ProgramFailed(
                f"{program} cannot be forked{reason}; memory or processes may be short."
            )
        return Forked(int(process_id), *own)

    @property
    def process_id(self) -> int:
        """Number of its process."""
        return self._process.pid

    def end(self) -> None:
        """Ends it; what was forked from it goes on."""
        self._control.close()
        self._process.wait()


@contextmanager
def forking(changes: Mapping[str, str] | None = None) -> Iterator[ForkServer | None]:
    """Has a fork server for as long as the block takes, where the system has sockets
    for it; None elsewhere, and every program is started anew.

    Args:
        changes: Variables that differ for the programs that are forked from it.
    """
    if sys.platform != "linux":
        yield None
        return
    server = ForkServer(changes=changes)
    try:
        yield server
    finally:
        server.end()
