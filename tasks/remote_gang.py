"""A gang whose controllers run on hosts of a work pool: one queue and worker a host.

Each controller is a flow run of one deployment, given to the queue of its host. Prefect
would leave a run for ever that no worker takes, and start it when one comes back; and a
run that fails ends no other. So whoever starts a gang asks for live workers first,
watches all of its runs, and ends what is left of them in a stated time.
"""

import dataclasses
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.states import Cancelled, Cancelling, State

from tasks import children
from tasks.errors import ProgramsStopped
from tasks.gang import FOLLOWS, NO_END, Disturbance, GangRun, Patience
from tasks.host_workers import require_workers
from tasks.hosts import DEPLOYMENT, MARK
from tasks.meeting_place import forget_meeting_place
from tasks.remote_host import END, Order
from tasks.run_program import ProgramCall, ProgramRun
from tasks.storage import Storage

LOOK_SECONDS = 0.5
START_SECONDS = 120.0
"""From the start of a gang until every worker has started its controller."""
FOLLOW_SECONDS = 5.0
"""From the first failure, for those that it takes along to say so themselves."""
END_SECONDS = 60.0
"""From the order to end until every host has ended; a worker looks every 10 s."""


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
        with get_client(sync_client=True) as client:
            require_workers(client, self.queues)
        storage.check()
        self.checkpoints = f"{storage.url}/checkpoints"
        self.inputs = {}
        for name, path in inputs.items():
            with open(path, "rb") as file:  # noqa: PTH123
                self.inputs[name] = storage.put(name, file.read())

    def written(self) -> dict[str, bool]:
        """Returns the checkpoints that lie there, and whether each is committed."""
        return Storage(self.checkpoints).folders(MARK)

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
        with get_client(sync_client=True) as client:
            orders = [
                self._order(gang, place, call, patience, disturbance) for call in calls
            ]
            watched = _Watched(client, self.queues, orders)
            try:
                watched.wait()
            finally:
                watched.end_all()
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
        fields = {"tokens", "corpus", "coordinator"}
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


class _Watched:
    """The flow runs of one gang, watched until none of them runs."""

    def __init__(
        self, client: SyncPrefectClient, queues: Sequence[str], orders: Sequence[Order]
    ) -> None:
        """Starts one flow run a host."""
        self.client = client
        self.queues = queues
        self.started = time.monotonic()
        self.deadline = max(order.deadline_seconds for order in orders)
        self.cause = ""
        self.never_begun: set[UUID] = set()
        deployment = client.read_deployment_by_name(DEPLOYMENT).id
        self.runs: list[FlowRun] = []
        try:
            for order in orders:
                self.runs.append(self._start(deployment, order))
        except BaseException:
            self.end_all()
            raise

    def _start(self, deployment: UUID, order: Order) -> FlowRun:
        return self.client.create_flow_run_from_deployment(
            deployment,
            parameters={"order": dataclasses.asdict(order)},
            name=f"controller-{order.process}-{order.gang[:8]}",
            tags=[f"gang:{order.gang}"],
            # Asked again after a lost answer, it is the same run.
            idempotency_key=f"{order.gang}-{order.process}",
            work_queue_name=self.queues[order.process],
        )

    def wait(self) -> None:
        """Returns when all are over, or some have to be ended."""
        failed_since = None
        while True:
            self._look()
            if all(_is_over(run) for run in self.runs):
                return
            now = time.monotonic()
            if any(_is_over(run) and not _is_complete(run) for run in self.runs):
                failed_since = failed_since or now
            if failed_since and now - failed_since > FOLLOW_SECONDS:
                return
            self.cause = self._too_late(now - self.started)
            if self.cause:
                return
            if children.are_stopping():
                raise ProgramsStopped("The run is being interrupted.")
            time.sleep(LOOK_SECONDS)

    def _too_late(self, seconds: float) -> str:
        waiting = [n for n, run in enumerate(self.runs) if not _is_begun(run)]
        if waiting and seconds > START_SECONDS:
            return (
                f"controller {waiting[0]} was not started within {START_SECONDS:g} s: "
                f"no worker took it from the queue {self.queues[waiting[0]]!r}"
            )
        if seconds > self.deadline + START_SECONDS:
            return f"the gang did not end within {self.deadline:g} s"
        return ""

    def _look(self) -> None:
        # A server that does not answer for a moment has said nothing.
        with suppress(httpx.HTTPError):
            self.runs = [self.client.read_flow_run(run.id) for run in self.runs]

    def end_all(self) -> None:
        """Cancels what did not begin, ends what runs, and waits until all is over."""
        until = time.monotonic() + END_SECONDS
        for run in self.runs:
            if not _is_over(run):
                self._end(run)
        while not all(map(_is_over, self.runs)) and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
            self._look()

    def _end(self, run: FlowRun) -> None:
        message = self.cause or "Another controller of the gang has failed."
        is_waiting = run.state is not None and run.state.is_scheduled()
        if is_waiting:
            self.never_begun.add(run.id)
        wanted: State[Any] = (
            Cancelled(message=message) if is_waiting else Cancelling(message=message)
        )
        self.client.set_flow_run_state(run.id, wanted, force=True)


def _is_over(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_final()


def _is_complete(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_completed()


def _is_begun(run: FlowRun) -> bool:
    return run.state is not None and not (
        run.state.is_scheduled() or run.state.is_pending()
    )


def _came_back(
    place: Storage,
    calls: Sequence[ProgramCall],
    watched: _Watched,
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
    ends: Sequence[dict[str, Any] | None], watched: _Watched
) -> tuple[int | None, str]:
    """Returns the controller that failed first, and why; None when all completed."""
    failed = [
        (number, end, run)
        for number, (end, run) in enumerate(zip(ends, watched.runs, strict=True))
        if end is None or end["cause"] or not _is_complete(run)
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
