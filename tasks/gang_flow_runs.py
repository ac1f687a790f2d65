"""The flow runs of one gang, watched until none of them runs.

Prefect would leave a run for ever that no worker takes, and start it when one comes
back; and a run that fails ends no other. So whoever starts the runs of a gang watches
all of them, and ends what is left in a stated time.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.states import Cancelled, Cancelling, State

from tasks import children
from tasks.errors import ProgramsStopped, StageError
from tasks.hosts import DEPLOYMENT
from tasks.remote_host import Order

LOOK_SECONDS = 0.5
START_SECONDS = 120.0
"""From the start of a gang until every worker has started its controller."""
FOLLOW_SECONDS = 5.0
"""From the first failure, for those that it takes along to say so themselves."""
END_SECONDS = 60.0
"""From the order to end until every host has ended; a worker looks every 10 s."""


class ServerUnheard(StageError):
    """The Prefect server did not answer while a gang was started or ended."""


@contextmanager
def server() -> Iterator[SyncPrefectClient]:
    """Yields a client; a server that gives no answer becomes one sentence."""
    try:
        with get_client(sync_client=True) as client:
            yield client
    except httpx.HTTPError as error:
        words = " ".join([type(error).__name__, *str(error).splitlines()[:1]])
        raise ServerUnheard(
            f"The Prefect server gave no answer about a gang ({words}); controllers "
            "were told to end. Run again when it answers."
        ) from error


class GangFlowRuns:
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

    def wait(self, beat: Callable[[], None]) -> None:
        """Returns when all are over, or some have to be ended.

        Args:
            beat: Shows the hosts that this process lives.
        """
        failed_since = None
        while True:
            beat()
            self._look()
            if all(_is_over(run) for run in self.runs):
                return
            now = time.monotonic()
            if any(_is_over(run) and not is_complete(run) for run in self.runs):
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
            named = [f"controller {n} (queue {self.queues[n]!r})" for n in waiting]
            return f"not started by a worker in {START_SECONDS:g} s: {', '.join(named)}"
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
        told: set[UUID] = set()
        while not all(map(_is_over, self.runs)) and time.monotonic() < until:
            for run in self.runs:
                if not _is_over(run) and run.id not in told:
                    # A busy server is told again.
                    with suppress(httpx.HTTPError):
                        self._end(run)
                        told.add(run.id)
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


def is_complete(run: FlowRun) -> bool:
    """Returns whether a flow run has completed."""
    return run.state is not None and run.state.is_completed()


def _is_begun(run: FlowRun) -> bool:
    return run.state is not None and not (
        run.state.is_scheduled() or run.state.is_pending()
    )
