"""Stages of a dead run read as crashed, and nothing else is touched."""

import pytest

from flows.left_task_runs import MESSAGE, crash_left_task_runs


@pytest.fixture
def client(prefect_server):
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        yield client


@pytest.fixture
def leave(client):
    """Makes a flow run in one state with a task run in another; answers their ids."""
    from prefect import flow, task

    def make(flow_name, flow_state, task_state):
        body = flow(lambda: None, name=flow_name)
        stage = task(lambda: None, name="stage")
        flow_run = client.create_flow_run(body, state=flow_state)
        task_run = client.create_task_run(
            stage, flow_run.id, dynamic_key="0", state=task_state
        )
        return flow_run, task_run.id

    return make


def _state(client, task_run):
    state = client.read_task_run(task_run).state
    return state.type.value, state.name, state.message


def test_a_stage_that_its_run_left_running_has_crashed(client, leave):
    from prefect.states import Cancelled, Crashed, Pending, Running

    left = [
        leave("qualify", Crashed(), Running()),
        leave("certify", Cancelled(), Running()),
        leave("regression", Crashed(), Pending()),
    ]
    crash_left_task_runs()
    for _, task_run in left:
        assert _state(client, task_run) == ("CRASHED", "Crashed", MESSAGE)


def test_what_still_runs_has_ended_or_is_not_ours_is_left_alone(client, leave):
    from prefect.states import Completed, Crashed, Failed, Pending, Running

    for flow_name, flow_state, task_state in (
        ("qualify", Running(), Running()),
        ("qualify", Crashed(), Completed(name="Executed", message="as it was")),
        ("qualify", Failed(), Pending(name="NotReady", message="one before failed")),
        ("somebody else's", Crashed(), Running()),
    ):
        _, task_run = leave(flow_name, flow_state, task_state)
        before = _state(client, task_run)
        crash_left_task_runs()
        assert _state(client, task_run) == before


def test_when_a_run_has_crashed_its_own_stages_are_told_and_no_others(client, leave):
    from prefect.states import Crashed, Running

    flow_run, task_run = leave("drill", Crashed(), Running())
    _, other = leave("drill", Crashed(), Running())
    crash_left_task_runs(None, flow_run, flow_run.state)
    assert _state(client, task_run)[0] == "CRASHED"
    assert _state(client, other)[0] == "RUNNING"


def test_every_flow_has_the_worker_call_it():
    from flows.certify import certify
    from flows.qualify import qualify

    for flow in (qualify, certify):
        assert crash_left_task_runs in flow.on_crashed_hooks


def test_a_server_that_is_away_fails_no_run(client, leave):
    """Nothing is raised, and what could not be told is told the next time."""
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_CLIENT_MAX_RETRIES,
        temporary_settings,
    )
    from prefect.states import Crashed, Running

    nowhere = {
        PREFECT_API_URL: "http://127.0.0.1:9/api",
        PREFECT_CLIENT_MAX_RETRIES: 0,
    }
    _, task_run = leave("qualify", Crashed(), Running())
    with temporary_settings(nowhere):
        crash_left_task_runs()
    assert _state(client, task_run)[0] == "RUNNING"
    crash_left_task_runs()
    assert _state(client, task_run)[0] == "CRASHED"
