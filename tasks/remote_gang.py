"""A gang whose controllers run on hosts of a work pool: one queue and worker a host.

Each controller is a flow run of one deployment, given to the queue of its host. What it
reads and what it leaves goes through one storage; a gang that ended is told as the same
value as one of this machine, with its files in place.
"""

import dataclasses
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from tasks.gang import FOLLOWS, NO_END, Disturbance, GangRun, Patience
from tasks.gang_flow_runs import GangFlowRuns, is_complete, server
from tasks.host_workers import require_workers
from tasks.hosts import MARK
from tasks.launcher_watch import LauncherPulse
from tasks.meeting_place import forget_meeting_place
from tasks.remote_host import END, Order
from tasks.run_program import ProgramCall, ProgramRun
from tasks.storage import Storage


class RemoteHosts:
    """Hosts of the work pool, and the storage that they share."""

    def __init__(
        self,
        queues: Sequence[str],
        storage: Storage,
        inputs: Mapping[str, str],
        platform: str,
    ) -> None:
        """Looks whether all is there, and brings the inputs to the storage.

        Args:
            queues: The queue of each host, in the order of controllers.
            storage: Folder of this occasion that all of them and we can open.
            inputs: Files of a request, field to path.
            platform: JAX platform that controllers start on.

        Raises:
            StageError: A worker, the deployment or the storage is missing.
        """
        self.queues = tuple(queues)
        self.storage = storage
        self.platform = platform
        with server() as client:
            require_workers(client, self.queues)
        storage.check()
        self.checkpoints = f"{storage.url}/checkpoints"
        self.inputs = {}
        for name, path in inputs.items():
            self.inputs[name] = storage.put(name, Path(path).read_bytes())

    def written(self) -> dict[str, bool]:
        """Returns the checkpoints that lie there, and whether each is committed."""
        return Storage(self.checkpoints).folders(MARK)

    def read(self, name: str) -> bytes:
        """Returns a file of the checkpoints."""
        return Storage(self.checkpoints).get(name)

    def run(
        self,
        calls: Sequence[ProgramCall],
        patience: Patience,
        disturbance: Disturbance | None,
    ) -> GangRun:
        """Runs a gang on the hosts; its results come back through the storage."""
        gang = secrets.token_hex(16)
        place = self.storage.within(gang)
        started_at_ns = time.monotonic_ns()
        orders = [
            self._order(gang, place, call, patience, disturbance) for call in calls
        ]
        with server() as client:
            watched = GangFlowRuns(client, self.queues, orders)
            try:
                watched.wait(LauncherPulse(place).beat)
            finally:
                watched.end_all()
                with suppress(httpx.HTTPError):
                    forget_meeting_place(client, gang)
        return _came_back(place, calls, watched, started_at_ns)

    def _order(
        self,
        gang: str,
        place: Storage,
        call: ProgramCall,
        patience: Patience,
        disturbance: Disturbance | None,
    ) -> Order:
        fields = {*self.inputs, "coordinator"}
        request = {n: value for n, value in call.request.items() if n not in fields}
        is_disturbed = (
            disturbance is not None and disturbance.victim == request["process"]
        )
        if disturbance is not None:
            assert disturbance.teller == disturbance.victim, "told on another host"
        return Order(
            gang=gang,
            storage=place.url,
            program=call.program,
            inputs=self.inputs,
            request=request | {"coordinator": None},
            patience=dataclasses.asdict(patience),
            disturbance=dataclasses.asdict(disturbance)  # type: ignore[arg-type]
            if is_disturbed
            else None,
            deadline_seconds=call.deadline_seconds,
        )


def _came_back(
    place: Storage,
    calls: Sequence[ProgramCall],
    watched: GangFlowRuns,
    started_at_ns: int,
) -> GangRun:
    """Returns the gang as its hosts told of it, with their files in place."""
    ended_at_ns = time.monotonic_ns()
    ends, runs = [], []
    for number, call in enumerate(calls):
        sent = place.within(f"controller-{number}")
        end = sent.get_json(END)
        (call.folder / "out").mkdir()
        if end is not None:
            sent.get_folder(call.folder / "out", end["files"])
        ends.append(end)
        runs.append(_program_run(call, end))
    failed, cause = _failure(ends, watched)
    told = [end["disturbed_at_ns"] for end in ends if end and end["disturbed_at_ns"]]
    # Hosts tell by the clock on the wall, we by one of this machine.
    offset_ns = time.time_ns() - time.monotonic_ns()
    return GangRun(
        runs=tuple(runs),
        failed=failed,
        cause=cause,
        disturbed_at_ns=told[0] - offset_ns if told else None,
        started_at_ns=started_at_ns,
        ended_at_ns=ended_at_ns,
        # Of a host that began and sent no end nobody knows; it counts as one.
        processes_left=sum(
            end["processes_left"] if end else int(run.id not in watched.never_begun)
            for end, run in zip(ends, watched.runs, strict=True)
        ),
    )


def _failure(
    ends: Sequence[dict[str, Any] | None], watched: GangFlowRuns
) -> tuple[int | None, str]:
    """Returns the controller that failed first, and why; None when all completed."""
    failed = [
        (number, end, run)
        for number, (end, run) in enumerate(zip(ends, watched.runs, strict=True))
        if end is None or end["cause"] or not is_complete(run)
    ]
    if watched.cause:
        late = [number for number, end, _ in failed if end is None]
        return (late or [0])[0], watched.cause
    own = [each for each in failed if each[1] and _is_own(each[1])]
    for number, end, run in own or failed:
        state = run.state.message if run.state else ""
        return number, (end["cause"] if end else "") or f"controller {number}: {state}"
    return None, ""


def _is_own(end: Mapping[str, Any]) -> bool:
    """Returns whether a controller ended by itself, and no other took it along."""
    return not end["was_told_to_end"] and end["return_code"] not in FOLLOWS


def _program_run(call: ProgramCall, end: dict[str, Any] | None) -> ProgramRun:
    told = end or {}
    return ProgramRun(
        program=call.program,
        label=call.label,
        process_id=told.get("process_id", 0),
        return_code=told.get("return_code", NO_END),
        duration_ns=told.get("duration_ns", 0),
        peak_memory_bytes=told.get("peak_memory_bytes"),
        out=call.folder / "out",
        events=told.get("events", []),
        runtime=told.get("runtime"),
        started_at_ns=told.get("started_at_ns", time.time_ns()),
    )
