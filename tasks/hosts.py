"""Where the controllers of a rehearsal run: on this machine, or on hosts elsewhere.

A rehearsal asks the same of both, so that what is shown of one is shown of the other.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from tasks.forked_programs import ForkServer
from tasks.gang import Disturbance, GangRun, Patience, run_gang
from tasks.run_program import ProgramCall

POOL = "text-harness-hosts"
"""Work pool of the hosts of a gang; each has a queue of its own there."""
DEPLOYMENT = "controller/host"
"""What a host runs of a gang."""
MARK = "COMMITTED"
"""File that makes a checkpoint one that counts."""


class Hosts(Protocol):
    """Machines that run gangs, and the place of checkpoints that all of them see."""

    checkpoints: str
    """Path or URL of the folder of checkpoints."""
    platform: str
    """JAX platform that controllers start on."""

    def run(
        self,
        calls: Sequence[ProgramCall],
        patience: Patience,
        disturbance: Disturbance | None,
    ) -> GangRun:
        """Runs a gang to its end; its results lie in the folders of the calls."""

    def written(self) -> dict[str, bool]:
        """Returns the checkpoints that lie there, and whether each is committed."""

    def read(self, name: str) -> bytes:
        """Returns a file of the checkpoints."""


class ThisMachine:
    """Controllers as processes beside each other on this CPU."""

    platform = "cpu"

    def __init__(self, folder: Path, fork_server: ForkServer | None = None) -> None:
        """Has checkpoints lie in a folder.

        Args:
            folder: That folder.
            fork_server: What controllers are forked from; None starts each anew.
        """
        self.checkpoints = str(folder)
        self.fork_server = fork_server

    def run(
        self,
        calls: Sequence[ProgramCall],
        patience: Patience,
        disturbance: Disturbance | None,
    ) -> GangRun:
        """Runs a gang on this machine."""
        own = [replace(call, fork_server=self.fork_server) for call in calls]
        return run_gang(own, patience, disturbance)

    def written(self) -> dict[str, bool]:
        """Returns the checkpoints that lie there, and whether each is committed."""
        folders = sorted(Path(self.checkpoints).glob("update-*"))
        return {each.name: (each / MARK).exists() for each in folders}

    def read(self, name: str) -> bytes:
        """Returns a file of the checkpoints."""
        return (Path(self.checkpoints) / name).read_bytes()
