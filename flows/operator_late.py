"""Scheduled runs that nothing took while nothing ran: the newest stands for all.

A laptop that was closed for a week would wake up to seven nightly runs. Prefect starts
each of them; here the older ones of a schedule are cancelled with a sentence. What a
person asked for is never touched.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

AUTOMATIC = "auto-scheduled"
"""Prefect's tag of a run that a schedule made."""
GRACE = timedelta(minutes=1)


def supersede_late(client: Any, names: Iterable[str]) -> list[str]:
    """Cancels late scheduled runs of which a newer one waits too.

    Args:
        client: A client of the server.
        names: The deployments, each "flow/name".

    Returns:
        A line for each deployment with such runs.
    """
    from prefect.states import Cancelled

    lines = []
    for name in names:
        older = _older(client, name)
        for run in older:
            when = f"{run.expected_start_time:%Y-%m-%d %H:%M} UTC"
            message = (
                f"Superseded: nothing took this run at {when}, and a newer one of the "
                "same schedule waits."
            )
            client.set_flow_run_state(run.id, Cancelled(message=message), force=True)
        if older:
            lines.append(f"{name}: {len(older)} late scheduled runs superseded")
    return lines


def _older(client: Any, name: str) -> list[Any]:
    """Returns the late scheduled runs of a deployment without the newest of each kind.

    Runs with other parameters come from another schedule.
    """
    from prefect.client.schemas.filters import (
        DeploymentFilter,
        DeploymentFilterId,
        FlowRunFilter,
        FlowRunFilterExpectedStartTime,
        FlowRunFilterState,
        FlowRunFilterStateType,
        FlowRunFilterTags,
    )
    from prefect.client.schemas.objects import StateType
    from prefect.client.schemas.sorting import FlowRunSort

    deployment = client.read_deployment_by_name(name)
    due: Any = datetime.now(UTC) - GRACE
    runs = client.read_flow_runs(
        deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment.id])),
        flow_run_filter=FlowRunFilter(
            state=FlowRunFilterState(
                type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])
            ),
            tags=FlowRunFilterTags(all_=[AUTOMATIC]),
            expected_start_time=FlowRunFilterExpectedStartTime(before_=due),
        ),
        sort=FlowRunSort.EXPECTED_START_TIME_DESC,
    )
    seen: list[Any] = []
    older = []
    for run in runs:
        if run.parameters in seen:
            older.append(run)
        else:
            seen.append(run.parameters)
    return older
