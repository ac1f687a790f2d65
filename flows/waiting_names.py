"""Runs that wait are called as they will be called, and not by two random words.

Prefect asks a flow for the name of its run when the run starts, and neither deployments
nor schedules can name one. Until then a list of nights and of runs that no worker takes
would say nothing but "mauve-pillbug".
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.sorting import FlowRunSort

from flows.left_task_runs import FLOWS
from flows.run_labels import name_of

RANDOM = re.compile(r"[a-z]+(-[a-z]+)+")
"""What Prefect calls a run that nobody has named; ours have spaces."""
AHEAD = timedelta(days=7)
"""Prefect schedules a hundred nights; those further ahead are named later."""


def name_waiting_runs(client: SyncPrefectClient) -> None:
    """Gives the runs of our flows that wait, or that are due soon, their names."""
    flows = FlowFilter(name=FlowFilterName(any_=FLOWS))
    names = {flow.id: flow.name for flow in client.read_flows(flow_filter=flows)}
    due: Any = datetime.now(UTC) + AHEAD
    waiting = FlowRunFilter(
        state=FlowRunFilterState(
            type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])
        ),
        expected_start_time=FlowRunFilterExpectedStartTime(before_=due),
    )
    for run in client.read_flow_runs(
        flow_filter=flows,
        flow_run_filter=waiting,
        sort=FlowRunSort.EXPECTED_START_TIME_ASC,
    ):
        if RANDOM.fullmatch(run.name):
            name = name_of(names[run.flow_id], run.parameters)
            client.update_flow_run(run.id, name=name)
