"""A regression is told where people look: state, event, artifact and notification.

A whole Prefect server runs, because automations need its event services; the flow, the
store, the views and the automation of deploy/ are the real ones. Only the nine stages
are left out: what they would have measured is written into the store.
"""

import http.server
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from model.config import to_dict
from model.presets import fixture
from tests.free_ports import free_port
from tests.store_maker import StoreMaker
from warehouse.acceptance import accept_run
from warehouse.contract import Claim, Requirement
from warehouse.records.claims import Comparison
from warehouse.store import Store

SECONDS_TO_TELL = 60.0
STAGE = "tokenize_corpus"
CONTRACT = [
    Claim(
        id="1.3",
        statement="The token table is what was expected.",
        requirements=(
            Requirement(
                claim="1.3",
                stage=STAGE,
                measure="token_table",
                relation="identical",
                limit=None,
                unit="",
                cases=(),
                required_count=1,
                presets=(),
                scope="any",
                sampling="",
                reason="made up",
            ),
        ),
    )
]
CASE = 'train/"quoted" {{ 7 * 7 }}'
"""Words that come from evidence reach the receiver as they are."""


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            assert server.poll() is None, "the Prefect server ended"
            time.sleep(0.2)
    raise AssertionError("the Prefect server did not answer")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A whole Prefect server, used by this process; yields the address of its API."""
    from prefect.events.worker import EventsWorker
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        temporary_settings,
    )

    home = tmp_path_factory.mktemp("prefect")
    port = str(free_port())
    started = subprocess.Popen(
        [sys.executable, "-m", "prefect", "server", "start", "--port", port],
        env={**os.environ, "PREFECT_HOME": str(home), "PREFECT_SERVER_UI_ENABLED": "0"},
        stdout=(home / "server.log").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}/api"
    settings = {PREFECT_API_URL: url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
    try:
        wait_for(f"{url}/health", started)
        # A process has one that sends events, to the server of its first event.
        EventsWorker.drain_all()
        with temporary_settings(settings):
            yield url
            EventsWorker.drain_all()
    finally:
        os.killpg(started.pid, signal.SIGTERM)
        try:
            started.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


@pytest.fixture(scope="module")
def receiver() -> Iterator[tuple[str, "queue.Queue[bytes]"]]:
    """A web server of the one who wants to be told: its address, and what it got."""
    received: queue.Queue[bytes] = queue.Queue()

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.server_port}/hook", received
    listening.shutdown()
    listening.server_close()


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """A maker of runs that measured one digest; the flow qualifies with the newest."""
    monkeypatch.setenv("HARNESS_ROOT", str(tmp_path / "evidence"))
    monkeypatch.setattr("warehouse.load.read_contract", lambda: CONTRACT)
    made = StoreMaker(Store(tmp_path / "evidence"))
    asked: list[tuple[Any, ...]] = []

    def make(digest: str, key: str = "key", config: str = "0.003") -> str:
        run_id = f"20300101-00000{len(made.store.commits()) + 1}-abcdef"
        row = Comparison(
            claim="1.3",
            measure="token_table",
            case_name=CASE,
            expected=digest,
            measured=digest,
            expected_from="here",
        )
        components = {"config:train.optimizer.learning_rate": config}
        made.execute(STAGE, [row], key=key, components=components)
        made.run(
            run_id, is_declared=False, system=config, configuration=to_dict(fixture())
        )

        def qualify(*arguments: Any) -> str:
            asked.append(arguments)
            return run_id

        monkeypatch.setattr("flows.regression.qualify", qualify)
        return run_id

    make.root = made.store.root  # type: ignore[attr-defined]
    make.asked = asked  # type: ignore[attr-defined]
    return make


def run_regression(**parameters: Any) -> Any:
    from flows.regression import regression

    return regression(**parameters, return_state=True)


def register(url: str, project: Path) -> None:
    """Brings the automations of deploy/ to the server, as `harness up` does."""
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL

    from flows.operator_automations import ensure_automations, ensure_webhook

    address = str(PREFECT_API_URL.value())
    with get_client(sync_client=True) as client:
        ensure_webhook(client, address, url)
        lines = ensure_automations(
            client, address, project / "deploy" / "automations.yaml"
        )
    for what in ("a regression got worse", "a run broke"):
        assert any(f"tell that {what}" in line for line in lines), lines


@pytest.mark.timeout(400)
def test_a_worse_run_reaches_the_receiver_and_an_agreeing_one_does_not(
    server: str, receiver: Any, measured: Any, project: Path, monkeypatch, tmp_path
) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    address, received = receiver
    register(address, project)
    accept_run(measured.root, measured("abc"), "")

    agreeing = measured("abc")
    state = run_regression(is_fresh=True)
    assert (state.is_completed(), state.name) == (True, "Completed"), state
    assert f"Run {agreeing} agrees with the baseline" in state.message

    worse = measured("abd", key="other", config="0.004")
    state = run_regression(is_fresh=True)
    assert (state.is_failed(), state.name) == (True, "Worse"), state
    assert f"Run {worse} differs from the baseline" in state.message
    assert "changed: config train.optimizer.learning_rate 0.003 -> 0.004" in (
        state.message
    )
    told = json.loads(received.get(timeout=SECONDS_TO_TELL))
    assert told["text"] == state.message
    assert CASE in told["text"]
    assert told["run"] == worse
    assert told["counts"]["differing_values"] == 1
    # The one before had its time to be told, if it ever was to be.
    time.sleep(2)
    assert received.empty()
    assert [arguments[2] for arguments in measured.asked] == [True, True]


@pytest.mark.timeout(400)
def test_a_deployed_run_that_broke_is_told_once_and_a_worse_one_is_not(
    server: str, receiver: Any, project: Path, monkeypatch, tmp_path
) -> None:
    """A worse one is told by the event of its own; a flow inside another not at all."""
    from prefect import flow
    from prefect.client.orchestration import get_client
    from prefect.states import Completed, Crashed, Failed

    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    address, received = receiver
    register(address, project)
    body = flow(lambda: None, name="regression")
    foreign = flow(lambda: None, name="somebody else's")
    with get_client(sync_client=True) as client:

        def end(run_of: Any, *states: Any, deployed: bool = True) -> None:
            flow_id = client.create_flow(run_of)
            run = (
                client.create_flow_run_from_deployment(
                    client.create_deployment(flow_id, name="nightly"), name=CASE
                )
                if deployed
                else client.create_flow_run(run_of)
            )
            for state in states:
                client.set_flow_run_state(run.id, state, force=True)

        end(body, Failed(name="Worse", message="It got worse."))
        end(body, Completed(message="It agrees."))
        end(body, Failed(message="Inside."), deployed=False)
        end(foreign, Failed(message="Not ours."))
        end(body, Failed(message=CASE))
        end(body, Crashed(message="It died."))
    told = {json.loads(received.get(timeout=SECONDS_TO_TELL))["text"] for _ in "ab"}
    assert told == {
        f"The run {CASE} of regression/nightly ended Failed: {CASE}",
        f"The run {CASE} of regression/nightly ended Crashed: It died.",
    }
    # The ones before had their time to be told, if they ever were to be.
    time.sleep(2)
    assert received.empty()


def test_a_missing_baseline_is_not_demonstrated_and_no_failure(
    server: str, measured: Any
) -> None:
    run_id = measured("abc")
    state = run_regression()
    assert (state.is_completed(), state.name) == (True, "Not demonstrated")
    assert state.message.startswith("not demonstrated: no accepted baseline")
    assert f"harness accept {run_id}" in state.message


def test_the_comparison_is_an_artifact_with_a_history(
    server: str, measured: Any
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

    accept_run(measured.root, measured("abc"), "")
    sentences = []
    for digest in ("abc", "a|b <script>\n| c |"):
        measured(digest, key=digest[:1])
        sentences.append(run_regression().message)
    key = ArtifactFilter(key=ArtifactFilterKey(any_=["fixture-comparison"]))
    with get_client(sync_client=True) as client:
        pages = client.read_artifacts(artifact_filter=key)
    by_sentence = {page.description: page.data for page in pages}
    assert set(sentences) <= set(by_sentence)
    page = by_sentence[sentences[1]]
    assert "### What differs" in page
    assert "<script>" not in page
    (line,) = [line for line in page.splitlines() if line.startswith("| differs")]
    assert line.replace("\\|", "").count("|") == 5
