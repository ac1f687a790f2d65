"""A result of a target rests besides on a run at home of the very same system."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from flows import target_import
from flows.target_import import home_links
from tasks.accelerators import known_accelerator
from tasks.errors import StageError
from tests.store_maker import StoreMaker
from warehouse.records.claims import Measurement
from warehouse.store import Store

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
    found = home_links(home.store.root, SUBJECT)
    assert {row["run_id"] for row in found} == {"20260103-030405-bbbbbb"}
    assert {row["stage"] for row in found} == {"train_model", "qualify_tpu"}
    released = home.executions["train_model"].artifact("parameters.npz").sha256
    assert {row["released_sha256"] for row in found} == {released}


@pytest.mark.parametrize("part", ["system", "configuration", "data"])
def test_a_run_of_something_else_is_not_rested_on(home: StoreMaker, part: str) -> None:
    assert home_links(home.store.root, {**SUBJECT, part: "another"}) == []


def test_a_folder_without_a_store_has_no_run_at_home(tmp_path: Path) -> None:
    assert home_links(tmp_path / "none", SUBJECT) == []
    assert not (tmp_path / "none").exists()


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
    result = SimpleNamespace(
        folder=tmp_path, manifest_sha256="", runtime={}, require_target=lambda: None
    )
    runs = sorted((home.store.root / "runs").iterdir())
    with pytest.raises(StageError, match="no arrays"):
        target_import.import_result(
            home.store.root, cast(Any, result), known_accelerator("nvidia-h200"), ""
        )
    assert sorted((home.store.root / "runs").iterdir()) == runs
