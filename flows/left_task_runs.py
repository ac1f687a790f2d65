"""Task runs whose flow run is over are over too.

A process that was killed cannot say what became of its stages, and Prefect leaves them
running for ever. The worker says it when a run of its own crashed. What a worker could
not say, because it died itself, is said by the server of `harness up`, by `harness up`,
and by the next run.
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterEndTime,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.states import Crashed

FLOWS = ["qualify", "certify", "regression", "drill", "target"]
"""Ours; a server may have runs of other people too."""
OVER = [StateType.CRASHED, StateType.FAILED, StateType.CANCELLED]
NOT_OVER = [StateType.PENDING, StateType.RUNNING]
NOT_READY = "NotReady"
MESSAGE = "The run of this stage has died; run again: finished stages are reused."
SECONDS_TO_ANSWER = 10.0


def crash_left_task_runs(
    flow: Any = None, flow_run: Any = None, state: Any = None
) -> None:
    """Marks task runs as crashed that still read as running in a run that is over.

    Args:
        flow: Ignored; Prefect calls this when a run has crashed, with these three.
        flow_run: The run that is over; every run that is over by default.
        state: Ignored.
    """
    chosen = FlowRunFilter()
    if flow_run is not None:
        chosen = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run.id]))
    # The page is not worth a run: a server that does not answer keeps its view.
    with (
        suppress(httpx.HTTPError),
        get_client(
            sync_client=True, httpx_settings={"timeout": SECONDS_TO_ANSWER}
        ) as client,
    ):
        _crash(client, chosen)


def crash_settled_task_runs(client: SyncPrefectClient, settled: timedelta) -> None:
    """Does the same for runs that have been over for a while.

    Args:
        client: A client of the server.
        settled: How long; what their stages said last may still be on the way.
    """
    before: Any = datetime.now(UTC) - settled
    _crash(client, FlowRunFilter(end_time=FlowRunFilterEndTime(before_=before)))


def _crash(client: SyncPrefectClient, chosen: FlowRunFilter) -> None:
    over = FlowRunFilterState(type=FlowRunFilterStateType(any_=OVER))
    not_over = TaskRunFilterState(type=TaskRunFilterStateType(any_=NOT_OVER))
    for left in client.read_task_runs(
        flow_filter=FlowFilter(name=FlowFilterName(any_=FLOWS)),
        flow_run_filter=chosen.model_copy(update={"state": over}),
        task_run_filter=TaskRunFilter(state=not_over),
    ):
        # A stage that never began, because one before it failed, says so.
        if left.state_name != NOT_READY:
            client.set_task_run_state(left.id, Crashed(message=MESSAGE), force=True)
