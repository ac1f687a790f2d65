"""The automations that end or tell of runs know all of our flows, and no other's."""

import pytest

from flows.left_task_runs import FLOWS
from flows.operator_automations import declared_automations
from flows.operator_deployments import declared_deployments
from flows.operator_settings import HEARTBEAT_SECONDS
from flows.outcome import NOT_DEMONSTRATED
from flows.regression import WORSE

WATCHED = [*FLOWS, "controller"]
"""A controller on a host has no stages of its own, and its launcher tells how it ended;
but one that is silent or cancelled has to be ended like any other run."""
SECONDS_TO_NOTICE = 110
"""Two minutes, less what server and machine take to act."""


@pytest.fixture(scope="module")
def declared(project):
    return declared_automations(project / "deploy" / "automations.yaml")


@pytest.fixture(scope="module")
def ending(declared):
    return [
        entry
        for entry in declared
        if entry["actions"][0].get("state") in ("CRASHED", "CANCELLED")
    ]


def test_each_flow_that_can_be_deployed_is_watched(ending, project):
    deployed = declared_deployments(project / "deploy" / "prefect.yaml")
    assert {entry["flow"] for entry in deployed} == set(WATCHED)
    assert len(ending) == 2
    for entry in ending:
        related = entry["trigger"]["match_related"]
        assert related == {
            "prefect.resource.role": "flow",
            "prefect.resource.name": WATCHED,
        }


def test_a_run_that_broke_is_told_whichever_of_our_flows_it_is_of(declared):
    (telling,) = [
        entry["trigger"]
        for entry in declared
        if "prefect.flow-run.Crashed" in entry["trigger"]["expect"]
        and entry["actions"][0]["type"] == "call-webhook"
    ]
    assert telling["match_related"][0]["prefect.resource.name"] == FLOWS
    assert f"prefect.flow-run.{WORSE}" not in telling["expect"]


def test_a_dead_run_is_noticed_in_time_and_a_late_word_does_no_harm(ending):
    for entry in ending:
        assert 3 * int(HEARTBEAT_SECONDS) <= entry["trigger"]["within"]
        assert entry["trigger"]["within"] <= SECONDS_TO_NOTICE


def test_every_run_of_a_deployment_says_often_enough_that_it_lives(project):
    """Whoever started the worker: its settings do not decide."""
    document = declared_deployments(project / "deploy" / "prefect.yaml")
    for entry in document:
        variables = entry["work_pool"]["job_variables"]["env"]
        assert variables["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] == HEARTBEAT_SECONDS


def test_no_run_that_ended_by_itself_is_cancelled_whatever_its_end_is_called(ending):
    """An event is named by the name of the state."""
    (cancelling,) = [e for e in ending if e["actions"][0]["state"] == "CANCELLED"]
    ends = ["Cancelled", "Crashed", "Completed", "Failed", WORSE, NOT_DEMONSTRATED]
    expected = cancelling["trigger"]["expect"]
    assert set(expected) == {f"prefect.flow-run.{name}" for name in ends}
