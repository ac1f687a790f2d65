"""A flow ends as the flow inside it did, with its sentence."""

import pytest
from prefect.exceptions import CancelledRun, TerminationSignal

from flows.harness_flow import harness_flow
from flows.worker_watch import TERMINATED, UNDER_WORKER, WorkerGone

GONE = "The worker is gone; run again."


@pytest.fixture
def run(prefect_server, monkeypatch, tmp_path):
    """Runs a flow inside another one under a worker; answers the outer one's run."""
    from prefect.client.orchestration import get_client

    monkeypatch.setenv(UNDER_WORKER, "w")
    monkeypatch.setenv("HARNESS_ROOT", str(tmp_path / "evidence"))

    def run_nested(end):
        def qualify(preset_name: str) -> str:
            raise end

        inner = harness_flow(qualify)
        crashed = []

        def regression(preset_name: str) -> str:
            inner(preset_name)
            raise AssertionError("the flow inside went on")

        outer = harness_flow(regression)
        outer.on_crashed_hooks.append(lambda *told: crashed.append(told[1].id))
        state = outer("fixture", return_state=True)
        with get_client(sync_client=True) as client:
            flow_run = client.read_flow_run(state.state_details.flow_run_id)
        return flow_run, crashed

    return run_nested


@pytest.mark.parametrize(
    ("end", "sentence"),
    [(TerminationSignal(signal=15), TERMINATED), (WorkerGone(GONE), GONE)],
    ids=["sigterm", "worker-gone"],
)
def test_a_flow_whose_inner_one_crashed_has_crashed_and_has_not_failed(
    run, end, sentence
):
    flow_run, crashed = run(end)
    state = flow_run.state
    assert (state.type.value, state.name) == ("CRASHED", "Crashed"), state
    assert state.message == sentence
    assert crashed == [flow_run.id]


def test_a_flow_whose_inner_one_was_cancelled_is_cancelled(run):
    flow_run, crashed = run(CancelledRun("Nobody wants it."))
    state = flow_run.state
    assert (state.type.value, state.message) == ("CANCELLED", "Nobody wants it.")
    assert not crashed
