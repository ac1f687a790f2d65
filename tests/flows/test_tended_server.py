"""What a server that `harness up` has started puts right, without any run."""

from datetime import UTC, datetime, timedelta

import pytest

from flows.tended_server import tend_once
from flows.waiting_names import AHEAD


@pytest.fixture
def client(prefect_server):
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        yield client


@pytest.fixture
def tend(client):
    from prefect.settings import PREFECT_API_URL

    def look(settled=timedelta()):
        tend_once(str(PREFECT_API_URL.value()), None, settled)

    return look


def test_a_stage_is_ended_when_what_it_said_last_has_arrived(client, tend):
    """An end that came after ours would count for nothing."""
    from prefect import flow, task
    from prefect.states import Crashed, Running

    died = client.create_flow_run(flow(lambda: None, name="qualify"), state=Crashed())
    stage = client.create_task_run(
        task(lambda: None, name="stage"), died.id, dynamic_key="0", state=Running()
    )
    tend(timedelta(minutes=5))
    assert client.read_task_run(stage.id).state.name == "Running"
    tend()
    assert client.read_task_run(stage.id).state.name == "Crashed"


def test_a_run_that_waits_is_called_as_it_will_be(client, tend):
    """One that somebody has named, that is far ahead or not ours keeps its name."""
    from prefect.states import Completed, Scheduled

    asked = {"preset_name": "fixture", "settings": {"train": {"updates": 60}}}

    def wait(flow_name="qualify", state=None, name=None):
        flow_id = client.create_flow_from_name(flow_name)
        deployment = client.create_deployment(flow_id, name="default")
        return client.create_flow_run_from_deployment(
            deployment, parameters=asked, state=state or Scheduled(), name=name
        )

    far = datetime.now(UTC) + AHEAD + timedelta(hours=1)
    near = datetime.now(UTC) + AHEAD - timedelta(hours=1)
    named = [wait(), wait(state=Scheduled(scheduled_time=near))]
    kept = [
        wait(name="Before the upgrade"),
        wait(state=Scheduled(scheduled_time=far)),
        wait(flow_name="somebody else's"),
        wait(state=Completed()),
    ]
    tend()
    for run in named:
        assert client.read_flow_run(run.id).name == "qualify fixture train.updates=60"
    for run in kept:
        assert client.read_flow_run(run.id).name == run.name


def test_a_server_that_does_not_answer_is_looked_at_later(caplog):
    tend_once("http://127.0.0.1:9/api", "me:secret", timedelta())
    assert "secret" not in caplog.text
