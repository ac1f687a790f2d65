"""A result of a target rests besides on what runs at home of the same system showed."""

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows import target_import
from flows.reading import open_run, view_rows
from flows.target_home import HOME_STAGES, Home, home_of
from tasks.accelerators import known_accelerator
from tasks.errors import StageError
from tests.store_maker import StoreMaker
from tests.target_rows import CONTRACT, TARGET, keeping, slice_of
from warehouse.nonces import remember_drawn
from warehouse.records.claims import Measurement
from warehouse.runs import RunStart, utc_text
from warehouse.store import Store

NONCE = "ab" * 16
SUBJECT = {
    "system": "system-1",
    "configuration": "fixture",
    "data": "d",
    "runtime": "of the target",
}


@pytest.fixture
def home(tmp_path: Path) -> StoreMaker:
    """A store with one run at home: its release, and what needs no target."""
    made = StoreMaker(Store(tmp_path / "evidence"))
    file = tmp_path / "parameters.npz"
    file.write_bytes(b"parameters, as it were")
    row = Measurement(claim="5.6", measure="target_steps", value_count=1, unit="steps")
    made.execute("train_model", [row], artifacts=[file])
    made.execute("qualify_tpu", [row])
    made.run("20260102-030405-aaaaaa")
    return made


def test_the_newest_run_at_home_of_the_same_system_is_found(home: StoreMaker) -> None:
    home.run("20260103-030405-bbbbbb")
    home.run("20260104-030405-cccccc", system="another")
    found = home_of(home.store.root, SUBJECT)
    (stage,) = found.stages
    assert stage["run_id"] == "20260103-030405-bbbbbb"
    assert [link.stage for link in found.links()] == ["qualify_tpu"]
    released = home.executions["train_model"].artifact("parameters.npz").sha256
    assert found.released_sha256 == released


def test_each_stage_at_home_is_found_in_whichever_run_made_it(home: StoreMaker) -> None:
    """A rehearsal is a run of its own; a taken in result has no release of its own."""
    released = home_of(home.store.root, SUBJECT).released_sha256
    home.executions.clear()
    row = Measurement(claim="5.12", measure="m", value_count=1, unit="1")
    made = {}
    for number, stage in enumerate(["rehearse_target", "rehearse_remote"]):
        home.executions.clear()
        made[stage] = home.execute(stage, [row])
        home.run(f"20260103-03040{number}-bbbbbb")
    found = home_of(home.store.root, SUBJECT)
    assert [link.stage for link in found.links()] == list(HOME_STAGES)
    assert {link.nonce for link in found.links()} > {e.nonce for e in made.values()}
    assert released and found.released_sha256 == released


@pytest.mark.parametrize("part", ["system", "configuration", "data"])
def test_a_run_of_something_else_is_not_rested_on(home: StoreMaker, part: str) -> None:
    assert home_of(home.store.root, {**SUBJECT, part: "another"}) == Home()


def test_a_folder_without_a_store_has_no_run_at_home(tmp_path: Path) -> None:
    assert home_of(tmp_path / "none", SUBJECT) == Home()
    assert not (tmp_path / "none").exists()


# --- the whole task, of made-up rows that say so ---


def _rows(numbers: Iterable[int], stage: str) -> list[Any]:
    """Returns rows of a stage that keep the claims of task 5 with these numbers."""
    found: list[Any] = []
    for claim in CONTRACT:
        if claim.review_task == 5 and claim.number in numbers:
            for item in claim.requirements:
                # what SQL counts is in no row of its own
                if item.stage == stage and not item.measure.startswith("recounted_"):
                    found += keeping(item)
    return found


class Visit:
    """A store at home, and a made-up result of a target that it takes in."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.made = StoreMaker(Store(folder / "evidence"))
        self.run_ids: list[str] = []
        remember_drawn(self.made.store.root, NONCE, utc_text(1))

    def at_home(self, *stages: str) -> None:
        """Makes stages whose rows keep the contract, each in a run of its own."""
        for stage in stages:
            self.made.executions.clear()
            self.made.execute(stage, _rows(range(6, 100), stage))
            self.made.run(f"20260102-{stage.replace('_', '-')}")

    def take_in(
        self, hosts: int = 1, numbers: Iterable[int] = TARGET
    ) -> tuple[str, dict[int, str], str]:
        """Answers the verdict of task 5, rungs of the platform, and the next step."""
        platform = "gpu" if hosts == 1 else "tpu"
        rows = [*_rows(numbers, "qualify_target"), *slice_of(platform, hosts)]
        body = ("body", lambda work, **_: work.record(*rows))
        self.monkeypatch.setattr(target_import.qualify_target, *body)
        subject = ("target_subject", lambda *_: SimpleNamespace(start=self._start))
        self.monkeypatch.setattr(target_import, *subject)
        root, sold = self.made.store.root, known_accelerator("nvidia-h200")
        result = result_in(self.folder)
        judged = target_import.import_result(root, result, sold, NONCE, "fixture")
        self.run_ids.append(judged.run_id)
        names = ["task_verdicts", "target_ladder"]
        connection = open_run(root, judged.run_id, names=names)
        (task,) = view_rows(connection, "task_verdicts", review_task=5)
        ladder = view_rows(connection, "target_ladder", platform=platform)
        rungs = {row["rung"]: row["verdict"] for row in ladder if row["rung"] > 3}
        return task["verdict"], rungs, task["next_step"]

    def _start(self) -> RunStart:
        return RunStart(
            run_id=f"20260105-0304{len(self.run_ids):02}-eeeeee",
            flow="target_import",
            components=SUBJECT,
            preset="fixture",
            is_declared=True,
            configuration={},
            started_at=self.made.now(),
            host="made-up",
            process_id=1,
        )


def result_in(folder: Path) -> Any:
    """Returns what stands for a result that is whole and of a target."""
    return SimpleNamespace(
        folder=folder,
        manifest_sha256="",
        runtime={},
        host="made-up",
        require_target=lambda: None,
        require_preset=lambda name: None,
    )


@pytest.fixture
def visit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Visit:
    return Visit(tmp_path, monkeypatch)


@pytest.mark.parametrize("hosts", [1, 4])
def test_a_target_with_all_its_evidence_and_that_at_home_accepts_the_task(
    hosts: int, visit: Visit
) -> None:
    """Synthetic: this is the rule at work, and no evidence of any target."""
    visit.at_home(*HOME_STAGES)
    verdict, rungs, _ = visit.take_in(hosts)
    assert verdict.startswith("accept")
    assert rungs == {4: "accept", 5: "accept"}


@pytest.mark.parametrize("lacking", HOME_STAGES)
def test_a_target_of_which_nothing_was_rehearsed_leaves_the_task_open(
    lacking: str, visit: Visit
) -> None:
    visit.at_home(*(stage for stage in HOME_STAGES if stage != lacking))
    verdict, rungs, step = visit.take_in()
    assert verdict == "not demonstrated" and step
    assert rungs == {4: "accept", 5: "accept"}


def test_the_same_result_again_rests_on_what_was_made_at_home_since(
    visit: Visit,
) -> None:
    """It is evidence once: judged once, and no run where nothing is new."""
    visit.at_home("qualify_tpu", "rehearse_remote")
    assert visit.take_in()[0] == "not demonstrated"
    visit.at_home("rehearse_target")
    assert visit.take_in()[0].startswith("accept")
    visit.take_in()
    first, second, third = visit.run_ids
    assert first != second == third
    store = visit.made.store
    assert len(store.commits("qualify_target")) == 1
    connection = open_run(store.root, second, names=["run_stages"])
    stages = view_rows(connection, "run_stages", run_id=second)
    assert {row["state"] for row in stages} == {"reused"}


@pytest.mark.parametrize(("hosts", "lacking"), [(1, 1), (1, 5), (4, 2), (4, 5)])
def test_nothing_below_all_claims_of_a_target_accepts_the_task(
    hosts: int, lacking: int, visit: Visit
) -> None:
    visit.at_home(*HOME_STAGES)
    verdict, rungs, _ = visit.take_in(hosts, set(TARGET) - {lacking})
    assert verdict == "not demonstrated"
    assert rungs[5] == "not demonstrated"


def test_a_result_that_cannot_be_judged_leaves_no_run(
    home: StoreMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be the newest one, and hide the run at home from a review."""

    def refuse(*_: Any, **__: Any) -> None:
        raise StageError("its arrays are no arrays")

    start = SimpleNamespace(run_id="20260105-030405-dddddd", components=SUBJECT)
    monkeypatch.setattr(
        target_import, "target_subject", lambda *_: SimpleNamespace(start=lambda: start)
    )
    monkeypatch.setattr(target_import.qualify_target, "body", refuse)
    remember_drawn(home.store.root, NONCE, utc_text(1))
    result = result_in(tmp_path)
    sold = known_accelerator("nvidia-h200")
    runs = sorted((home.store.root / "runs").iterdir())
    with pytest.raises(StageError, match="no arrays"):
        target_import.import_result(home.store.root, result, sold, NONCE, "fixture")
    assert sorted((home.store.root / "runs").iterdir()) == runs
