"""Whatever of a run dies, its page is true within two minutes and nothing is lost.

All of it is real: a server, workers and flow runs as an operator has them. Runs that
have to wait for an automation wait side by side, and meanwhile one qualification dies
at one stage after the other until it is complete.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.states import Cancelling, Pending, Submitting

from flows.reading import open_run, view_rows
from tests.deploy.chain import ENGINE, LINKS, TINY, TWO_MINUTES, Chain
from tests.deploy.site import Site, processes
from tests.free_ports import free_port
from tests.processes import wait_until
from warehouse.store import Store

pytestmark = pytest.mark.timeout(2400)
PROGRAM = "tiny.programs.misbehave"


@dataclass
class Death:
    """A run of two tiny stages that is killed in the second one, and what followed."""

    kill: Callable[["Deaths", "Death"], None]
    state: str
    """Type of the state that its page has to show."""
    message: str
    """Words that have to be in the message of that state."""
    queue: str = "shared"
    how: str = "hang"
    deployment: str = "tiny"
    status: str = "interrupted"
    """What `harness runs` has to say."""
    name: str = ""
    flow_run: UUID | None = None
    next_run: UUID | None = None
    killed_at: float = 0.0
    seconds_to_state: float | None = None
    seconds_to_end: float | None = None
    seen: Any = None
    stages: dict[str, str] = field(default_factory=dict)
    next_seen: Any = None
    next_stages: dict[str, str] = field(default_factory=dict)


def _kill(command: str, sent: signal.Signals) -> Callable[["Deaths", Death], None]:
    def kill(deaths: "Deaths", death: Death) -> None:
        os.kill(processes(death.name, command)[0], sent)

    return kill


def _kill_worker(sent: signal.Signals) -> Callable[["Deaths", Death], None]:
    def kill(deaths: "Deaths", death: Death) -> None:
        deaths.site.workers[death.queue].send_signal(sent)

    return kill


def _die_with_worker(deaths: "Deaths", death: Death) -> None:
    """Nothing to do: its worker was killed for another death before this one."""


def _cancel(deaths: "Deaths", death: Death) -> None:
    assert death.flow_run is not None
    deaths.site.set_state(death.flow_run, Cancelling())


SILENT = "No sign of life for 90 s"
GONE = "The worker that started this run has died"
DEATHS = {
    "program-sigterm": Death(
        _kill(PROGRAM, signal.SIGTERM), "FAILED", "ended with SIGTERM", status="failed"
    ),
    "program-sigkill": Death(
        _kill(PROGRAM, signal.SIGKILL), "FAILED", "killed by SIGKILL", status="failed"
    ),
    "engine-sigterm": Death(
        _kill(ENGINE, signal.SIGTERM), "CRASHED", "was ended by SIGTERM"
    ),
    "engine-sigkill": Death(
        _kill(ENGINE, signal.SIGKILL), "CRASHED", "SIGKILL", how="spawn"
    ),
    "cancelled": Death(_cancel, "CANCELLED", "cancelled"),
    "worker-sigterm": Death(
        _kill_worker(signal.SIGTERM), "CRASHED", f"{SILENT}|{GONE}", queue="sigterm"
    ),
    "worker-sigkill": Death(
        _kill_worker(signal.SIGKILL), "CRASHED", GONE, queue="sigkill", how="spawn"
    ),
    "limited": Death(
        _die_with_worker,
        "CRASHED",
        f"{SILENT}|{GONE}",
        queue="sigterm",
        deployment="limited",
    ),
}


class Deaths:
    """All deaths at once, and what a test wants to know about each."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site = site
        self.folder = folder
        self.deaths = DEATHS
        self.waiting: UUID
        self.held: dict[str, UUID] = {}
        self.cancelling: UUID
        self.foreign: UUID
        self.alive: UUID
        self.began_at = 0.0
        self.ended_at: dict[UUID, float] = {}

    def root(self, name: str) -> Path:
        """Returns the store of a death."""
        return self.folder / name

    def _ask(self, marker: str, death: Death, queue: str, how: str) -> UUID:
        root = str(self.root(death.name))
        env = {"HOW": how, "HARNESS_ROOT": root}
        return self.site.ask(death.deployment, queue, marker, TINY, **env)

    def begin(self) -> None:
        """Starts every run and waits until each is in its second stage."""
        for name, death in self.deaths.items():
            death.name = name
            death.flow_run = self._ask(name, death, death.queue, death.how)
        alive = Death(_cancel, "COMPLETED", "", name="alive")
        self.alive = self._ask("alive", alive, "shared", "outlast")
        for name, death in self.deaths.items():
            expected = 2 if death.how == "spawn" else 1
            wait_until(
                lambda name=name, expected=expected: (
                    len(processes(name)) > expected and processes(name, PROGRAM)
                ),
                f"{name} is in its second stage",
            )
        limited = self.deaths["limited"]
        self.waiting = self._ask("limited-next", limited, "shared", "behave")
        self._hold()

    def _hold(self) -> None:
        """Leaves runs in states in which a worker that dies leaves them."""
        tiny = self.deaths["cancelled"]
        for state in (Pending(), Submitting()):
            flow_run = self._ask(f"held {state.name}", tiny, "nobody", "hang")
            self.site.set_state(flow_run, state)
            self.held[str(state.name)] = flow_run
        self.cancelling = self._ask("cancelling", tiny, "nobody", "hang")
        with self.site.client() as client:
            foreign = client.create_flow_from_name("somebody else's")
            deployment = client.create_deployment(flow_id=foreign, name="theirs")
            self.foreign = client.create_flow_run_from_deployment(deployment).id
        for flow_run in (self.cancelling, self.foreign):
            self.site.set_state(flow_run, Pending())
        self.site.set_state(self.cancelling, Cancelling())
        self.began_at = time.time()

    def kill(self) -> None:
        """Kills, each in its way."""
        for death in self.deaths.values():
            death.killed_at = time.time()
            death.kill(self, death)

    def follow(self) -> None:
        """Watches every page until it is true, and runs each of them again."""
        wait_until(self._look, "every run has ended")
        for death in self.deaths.values():
            assert death.flow_run is not None and death.next_run is not None
            death.next_seen = self.site.wait_for_end(death.next_run)
            assert death.next_seen.is_completed(), death.next_seen.message
            death.stages = self.site.task_states(death.flow_run)
            death.next_stages = wait_until(
                lambda death=death: self._final_stages(death.next_run), "stages end"
            )

    def _final_stages(self, flow_run: UUID) -> dict[str, str] | None:
        stages = self.site.task_states(flow_run)
        return stages if not {"Running", "Pending"} & set(stages.values()) else None

    def _look(self) -> bool:
        runs = [death.flow_run for death in self.deaths.values() if death.flow_run]
        others = (self.waiting, *self.held.values(), self.cancelling, self.alive)
        states = self.site.states(*runs, *others)
        for flow_run, state in states.items():
            if state.is_final():
                self.ended_at.setdefault(flow_run, state.timestamp.timestamp())
        for death in self.deaths.values():
            self._look_at(death, states[death.flow_run])
        return len(self.ended_at) == len(states) and all(
            death.seconds_to_end is not None for death in self.deaths.values()
        )

    def _look_at(self, death: Death, state: Any) -> None:
        if death.seconds_to_end is None and not processes(death.name):
            death.seconds_to_end = time.time() - death.killed_at
        if death.seconds_to_state is None and state.is_final():
            death.seconds_to_state = state.timestamp.timestamp() - death.killed_at
            death.seen = state
            death.next_run = (
                self.waiting
                if death.name == "limited"
                else self._ask(f"{death.name}-next", death, "shared", "behave")
            )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with the automations that we ship, and three workers."""
    made = Site(tmp_path_factory.mktemp("site"), free_port())
    try:
        made.start_server()
        made.prepare()
        for queue in ("shared", "sigterm", "sigkill"):
            made.start_worker(queue)
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def chain(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    return Chain(site, tmp_path_factory.mktemp("chain") / "evidence")


@pytest.fixture(scope="module")
def deaths(site: Site, chain: Chain, tmp_path_factory: Any) -> Deaths:
    """Everything that happened; what is asserted about it stands in the tests."""
    made = Deaths(site, tmp_path_factory.mktemp("stores"))
    made.begin()
    made.kill()
    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(chain.run)
        try:
            made.follow()
        finally:
            chain.may_lose_server.set()
        running.result()
    return made


each_death = pytest.mark.parametrize("name", DEATHS)


@each_death
def test_the_page_is_true_within_two_minutes(name: str, deaths: Deaths) -> None:
    death = deaths.deaths[name]
    assert death.seen.type.value == death.state
    # A worker that is ended may leave its run the moment to say so itself.
    assert any(words in death.seen.message for words in death.message.split("|"))
    assert death.seconds_to_state is not None
    assert death.seconds_to_state <= TWO_MINUTES


@each_death
def test_no_process_goes_on(name: str, deaths: Deaths) -> None:
    """Engine, program and what the program started, all of which carry a marker.

    So does what the worker runs when a run has crashed. Left alone, they would run for
    ten minutes.
    """
    seconds = deaths.deaths[name].seconds_to_end
    assert seconds is not None and seconds <= TWO_MINUTES


@each_death
def test_the_next_run_reuses_what_was_finished(name: str, deaths: Deaths) -> None:
    death = deaths.deaths[name]
    assert death.next_seen.type.value == "COMPLETED"
    assert death.next_stages == {"scale_number": "Reused", "misbehave": "Executed"}


@each_death
def test_no_stage_of_a_dead_run_reads_as_running(name: str, deaths: Deaths) -> None:
    stages = deaths.deaths[name].stages
    assert set(stages) == {"scale_number", "misbehave"}
    assert not {"Running", "Pending"} & set(stages.values())


def _assert_valid(root: Path) -> None:
    store = Store(root, is_writable=False)
    commits = store.commits()
    assert len(commits) == len(list(root.glob("executions/*/*/*.json")))
    assert [store.commit_problem(commit) for commit in commits] == [""] * len(commits)
    assert view_rows(open_run(root, None), "damage") == []
    halves = [path for path in root.rglob("*.part") if path.parent.name != "temporary"]
    assert halves == []


@each_death
def test_the_store_is_valid_and_tells_the_truth(name: str, deaths: Deaths) -> None:
    root = deaths.root(name)
    _assert_valid(root)
    runs = view_rows(open_run(root, None), "runs")
    assert [run["status"] for run in runs] == ["completed", deaths.deaths[name].status]
    assert all(run["message"] for run in runs)


@pytest.mark.parametrize("name", ["Pending", "Submitting"])
def test_a_run_that_only_a_dead_worker_could_start_has_crashed(
    name: str, deaths: Deaths
) -> None:
    flow_run = deaths.held[name]
    state = deaths.site.states(flow_run)[flow_run]
    assert (state.type.value, SILENT in state.message) == ("CRASHED", True)
    assert deaths.ended_at[flow_run] - deaths.began_at <= TWO_MINUTES


def test_a_run_that_nobody_is_left_to_cancel_is_cancelled(deaths: Deaths) -> None:
    state = deaths.site.states(deaths.cancelling)[deaths.cancelling]
    assert state.type.value == "CANCELLED"
    assert "Nobody was left" in state.message
    assert deaths.ended_at[deaths.cancelling] - deaths.began_at <= TWO_MINUTES


def test_a_run_that_lives_and_those_of_others_are_left_alone(deaths: Deaths) -> None:
    """The one says that it lives; the other is silent, and none of ours."""
    states = deaths.site.states(deaths.alive, deaths.foreign)
    assert states[deaths.alive].type.value == "COMPLETED"
    assert states[deaths.foreign].type.value == "PENDING"


def test_a_dead_run_gives_its_slot_to_the_next(deaths: Deaths) -> None:
    """The next one waited for the slot and was not lost."""
    ended = deaths.ended_at[deaths.waiting]
    limited = deaths.deaths["limited"]
    assert limited.seconds_to_state is not None
    assert ended > limited.killed_at + limited.seconds_to_state


def test_a_qualification_that_dies_at_many_stages_computes_each_once(
    deaths: Deaths, chain: Chain
) -> None:
    """The last one loses its server instead, twice, and gets it back.

    So does its worker, which takes the next run all the same.
    """
    ends = [state for *_, state in LINKS]
    assert chain.states == [*ends, "COMPLETED", "COMPLETED"]
    assert chain.left == [[]] * (len(LINKS) + 1)
    _assert_valid(chain.root)
    counted = Counter(commit.stage for commit in Store(chain.root).commits())
    assert len(counted) == 9
    assert set(counted.values()) == {1}
    runs = view_rows(open_run(chain.root, None), "runs")
    statuses = ["completed", "interrupted", "interrupted", "failed", "interrupted"]
    assert [run["status"] for run in runs] == statuses


def test_a_server_that_comes_back_knows_every_stage(
    deaths: Deaths, chain: Chain
) -> None:
    assert len(chain.stages) == 9
    assert set(chain.stages.values()) == {"Reused", "Executed"}
