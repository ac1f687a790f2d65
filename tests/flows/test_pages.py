"""What an operator sees: every page of the default UI, in a real browser, offline.

`harness up` starts server and worker as an operator does; the deployment's form starts
two runs of a store in which all is finished, so that they reuse what they can. Pictures
of the pages are left in the folder that PAGES names, for somebody to look at.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.free_ports import free_port
from warehouse.report_parts import PLANS

pytestmark = [pytest.mark.needs("browser"), pytest.mark.timeout(600)]
SECONDS = 240.0


class Operated:
    """A server, its worker and the store they work in."""

    def __init__(self, folder: Path, qualified: Path) -> None:
        self.root = folder / "evidence"
        shutil.copytree(qualified, self.root)
        home = folder / "prefect"
        home.mkdir()
        self.environment = {**os.environ, "PREFECT_HOME": str(home)}
        del self.environment["PREFECT_LOGGING_TO_API_ENABLED"]
        up = ("up", "--json", "--port", str(free_port()), "--root", str(self.root))
        self.shown: dict[str, Any] = json.loads(self.harness(*up))

    def harness(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "flows.command_line", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, method: str, path: str, **body: Any) -> Any:
        """Returns what the API of the server answers."""
        import httpx

        user, _, password = self.shown["sign_in"].partition(":")
        answer = httpx.request(
            method,
            f"{self.shown['api_url']}{path}",
            auth=(user, password),
            json=body or None,
            timeout=30,
        )
        assert answer.is_success, answer.text
        return answer.json()

    def newest_run(self) -> Any:
        """Returns the newest run of the one flow that has no schedule here."""
        sort, flows = "EXPECTED_START_TIME_DESC", {"name": {"any_": ["qualify"]}}
        runs = self.ask("POST", "/flow_runs/filter", sort=sort, flows=flows, limit=1)
        return runs[0] if runs else None

    def ended(self, run_id: str) -> Any:
        """Waits until a flow run has ended and returns it."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            run = self.ask("GET", f"/flow_runs/{run_id}")
            if run["end_time"]:
                return run
            time.sleep(0.5)
        log = Path(self.shown["worker_log"]).read_text()[-3000:]
        raise AssertionError(f"{run['state']}\n{log}")


@pytest.fixture(scope="module")
def operated(
    tmp_path_factory: pytest.TempPathFactory, qualified: Path
) -> Iterator[Operated]:
    operated = Operated(tmp_path_factory.mktemp("pages"), qualified)
    try:
        yield operated
    finally:
        operated.harness("down")


@pytest.fixture(scope="module")
def window(operated: Operated, tmp_path_factory: pytest.TempPathFactory):
    from tests.flows.browser import Browser

    window = Browser(
        operated.shown["ui"],
        tmp_path_factory.mktemp("profile"),
        dark=os.environ.get("PAGES_DARK") == "1",
    )
    try:
        window.sign_in(operated.shown["sign_in"])
        yield window
    finally:
        window.close()


@pytest.fixture
def look(window, tmp_path: Path):
    """Leaves a picture of the page under a name."""
    folder = Path(os.environ.get("PAGES") or tmp_path)

    def save(name: str) -> None:
        time.sleep(1.0 if os.environ.get("PAGES") else 0.0)
        folder.mkdir(parents=True, exist_ok=True)
        window.screenshot(folder / f"{name}.png")

    return save


def submitted(operated: Operated, window, before: str = "") -> Any:
    """Presses Submit until there is another run, and returns it.

    A form that has just been drawn may not listen yet; one that has started a run is
    gone, so a second press cannot start another.
    """
    for _ in range(5):
        window.click("Submit")
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            run = operated.newest_run()
            if run and run["id"] != before:
                return run
            time.sleep(0.3)
    raise AssertionError(f"the form started no run:\n{window.text()[:3000]}")


@pytest.fixture(scope="module")
def started(operated: Operated, window) -> dict[str, Any]:
    """Two runs that the form has started: one setting changed, and nothing filled in.

    Before that the form refuses a value that means nothing, beside its field.
    """
    deployment = operated.ask("GET", "/deployments/name/qualify/default")
    form = f"/deployments/deployment/{deployment['id']}/run"
    window.open(form, "The preset the configuration starts from.", "Submit")
    window.field("updates", "train").send_keys("0")
    window.click("Submit")
    window.sees("0 is less than or equal to the minimum of 0")
    assert operated.newest_run() is None
    window.open(form, "The preset the configuration starts from.", "Submit")
    window.field("warm_samples", "profile").send_keys("31")
    changed = submitted(operated, window)
    window.open(form, "The preset the configuration starts from.", "Submit")
    plain = submitted(operated, window, before=changed["id"])
    return {
        "form": form,
        "changed": operated.ended(changed["id"]),
        "plain": operated.ended(plain["id"]),
    }


def test_the_form_explains_each_field_and_starts_runs(started, window, look):
    page = window.open(started["form"], "settings", "Submit")
    assert "Updates of the training that nothing interrupts. Preset: 300" in page
    assert "Path of a corpus manifest on the worker" in page
    look("form")
    assert started["changed"]["parameters"]["settings"] == {
        "profile": {"warm_samples": 31}
    }
    assert started["plain"]["parameters"].get("settings") in ({}, None)


def test_names_and_tags_tell_runs_apart(started, window, look):
    window.open("/runs", "qualify fixture profile.warm_samples=31")
    page = window.sees("changed settings", "reuse")
    assert "qualify fixture\n" in page
    look("runs")
    assert set(started["plain"]["tags"]) == {"qualify", "fixture", "reuse"}
    assert set(started["changed"]["tags"]) == {
        *("qualify", "fixture", "reuse", "changed settings"),
    }


def test_a_run_says_in_a_sentence_what_came_of_it(started, window, look):
    run = started["changed"]
    window.open(f"/runs/flow-run/{run['id']}", "9 Task runs")
    window.click("Details", role="tab")
    page = window.sees("State Message", "1 stage executed, 8 reused.")
    sentence = run["state"]["message"]
    assert sentence in page
    assert "nothing failed; " in sentence
    assert " claims accepted; not demonstrated: " in sentence
    look("run-details")


def test_each_stage_reads_executed_or_reused(operated, started, window, look):
    run = started["changed"]
    window.open(f"/runs/flow-run/{run['id']}", "9 Task runs")
    window.click("Task Runs", role="tab")
    window.sees("profile_runtime", "train_model", "Executed", "Reused")
    window.counts(9, "Executed", "Reused")
    look("run-tasks")
    wanted = {"id": {"any_": [run["id"]]}}
    tasks = operated.ask("POST", "/task_runs/filter", flow_runs=wanted)
    states = {task["name"]: task["state"] for task in tasks}
    assert {name for name, state in states.items() if state["name"] == "Executed"} == {
        "profile_runtime"
    }
    reused = next(task for task in tasks if task["name"] == "train_model")
    window.open(f"/runs/task-run/{reused['id']}", "train_model", "Reused")
    window.sees("Finished in state Reused('source, settings, inputs and runtime ")
    look("task")


def test_the_artifacts_of_a_run_have_keys_that_stay(started, window, look):
    run = started["plain"]
    window.open(f"/runs/flow-run/{run['id']}", "9 Task runs")
    window.click("Artifacts", role="tab")
    page = window.sees("fixture-report", *(f"fixture-{name}" for name in PLANS))
    assert set(re.findall(r"fixture-[a-z-]+", page)) == {
        "fixture-report",
        *(f"fixture-{name}" for name in PLANS),
    }
    look("run-artifacts")


@pytest.mark.usefixtures("started")
def test_the_page_of_a_key_is_the_history_over_runs(window, look):
    window.open(
        "/artifacts/key/fixture-verdicts", "Created", "qualify fixture profile.warm"
    )
    page = window.counts(2, "Flow run: qualify fixture")
    assert page.count("Flow run: qualify fixture") == 2
    look("history")


@pytest.mark.parametrize(
    ("part", "texts"),
    [
        ("verdicts", ("Verdicts of the claims", "What would change a verdict")),
        ("learning-curve", ("Training loss is the loss before each update",)),
        ("recovery", ("Recovery after a kill", "resumed_parameters")),
        ("caches", ("Logit errors of each release policy", "int8")),
        ("latency", ("How long an endpoint takes", "95th percentile")),
        ("trace", ("Regions of the profiler trace", "text-cached-decode")),
        ("report", ("file:///", "harness report")),
    ],
)
@pytest.mark.usefixtures("started")
def test_each_artifact_is_a_page_that_fits(part, texts, operated, window, look):
    (newest,) = operated.ask(
        "POST",
        "/artifacts/latest/filter",
        artifacts={"key": {"any_": [f"fixture-{part}"]}},
    )
    window.open(f"/artifacts/artifact/{newest['latest_id']}", *texts)
    look(f"artifact-{part}")
    if part in ("learning-curve", "caches"):
        picture = window.until(lambda: window.one("img[src^='data:image/svg']"))
        width = "return arguments[0].naturalWidth"
        assert window.until(lambda: window.driver.execute_script(width, picture)) > 100
    fits = "return document.documentElement.scrollWidth <= window.innerWidth"
    assert window.until(lambda: window.driver.execute_script(fits), fits)


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        ("/dashboard", ("Flow Runs", "Active Work Pools", "text-harness")),
        ("/deployments", ("default", "recovery", "crash", "target")),
        ("/automations", ("text-harness: no worker took the run",)),
        ("/work-pools", ("text-harness",)),
        ("/flows", ("qualify", "certify")),
    ],
)
@pytest.mark.usefixtures("started")
def test_the_other_pages_show_what_was_set_up(path, texts, window, look):
    page = window.open(path, *texts)
    assert "Something went wrong" not in page
    # The page may add its own filters to the address that it was opened with.
    assert urlsplit(window.driver.current_url).path == f"/v2{path}"
    look(path.strip("/"))


@pytest.mark.usefixtures("started")
def test_a_page_asks_one_foreign_host_and_works_without_its_answer(window):
    """The pages above were shown although no name but our own could be resolved."""
    window.open("/dashboard", "Flow Runs")
    assert window.hosts_beside_ours() <= {"sr-client-cfg.amplitude.com"}
    assert {"net::ERR_NAME_NOT_RESOLVED"} >= {
        error for error in window.failed if error != "net::ERR_ABORTED"
    }
