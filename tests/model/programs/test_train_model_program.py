"""The training program: what it refuses, restores, and leaves behind."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.batches import Cursor
from model.checks.recovery import read_trace
from model.config import ModelConfig, TrainConfig, fixture_manifest, to_dict
from model.programs import overfit_batch, tokenize_corpus, train_model
from model.refusal import Refused
from model.training_request import read_request
from model.update_trace import KINDS
from tests.judged import OPEN, REVISE, verdict

TRAIN = TrainConfig(updates=8, evaluate_every_updates=3, overfit_updates=150)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("tokens")
    model = to_dict(ModelConfig())
    tokenize_corpus.main({"manifest": str(fixture_manifest()), "model": model}, out)
    return {
        "label": "test",
        "tokens": str(out / "artifacts" / "tokens.npz"),
        "corpus": str(out / "artifacts" / "corpus.json"),
        "model": model,
        "train": to_dict(TRAIN),
    }


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    return json.loads((out / "records" / f"{table}.json").read_text())


@pytest.fixture(scope="module")
def whole(
    base: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """An uninterrupted training with a checkpoint after every third update."""
    out = tmp_path_factory.mktemp("whole")
    folder = tmp_path_factory.mktemp("checkpoints")
    cadence = {"checkpoint_folder": str(folder), "checkpoint_every_updates": 3}
    train_model.main(base | cadence, out)
    return out, folder


def test_rows_and_artifacts_of_a_training_are_there(whole: tuple[Path, Path]) -> None:
    out, folder = whole
    assert {path.name for path in (out / "artifacts").iterdir()} == {
        "parameters.npz",
        "trace.jsonl",
        "training_state.json",
        "training_state.npz",
    }
    assert [row["update"] for row in rows(out, "updates")] == list(range(1, 9))
    assert [row["update"] for row in rows(out, "evaluations")] == [0, 3, 6, 8]
    targets = [row["valid_targets"] for row in rows(out, "updates")]
    assert rows(out, "updates")[-1]["cumulative_valid_targets"] == sum(targets)
    assert sorted(path.name for path in folder.iterdir()) == [
        "update-000000",
        "update-000003",
        "update-000006",
    ]


def test_a_restored_training_repeats_the_rest_and_its_artifacts(
    base: dict[str, Any], whole: tuple[Path, Path], tmp_path: Path
) -> None:
    out, folder = whole
    train_model.main(base | {"restore_folder": str(folder)}, tmp_path)
    restored = read_trace(tmp_path / "artifacts" / "trace.jsonl")
    expected = read_trace(out / "artifacts" / "trace.jsonl")
    assert list(restored) == [7, 8]
    assert all(restored[update] == expected[update] for update in restored)
    for name in ("parameters.npz", "training_state.npz", "training_state.json"):
        again = (tmp_path / "artifacts" / name).read_bytes()
        assert again == (out / "artifacts" / name).read_bytes(), name


def test_a_restored_training_goes_on_with_its_schedule_and_average(
    base: dict[str, Any], tmp_path: Path
) -> None:
    """Both rise and fall across the restore, and the average is what is released."""
    optimizer = replace(
        TRAIN.optimizer,
        warmup_updates=4,
        decay_updates=3,
        final_learning_rate_share=0.1,
        weight_decay=1.0,
        final_weight_decay=5.0,
        weight_decay_rise_after=3,
        weight_decay_rise_updates=4,
        average_decay=0.8,
    )
    request = base | {"train": to_dict(replace(TRAIN, optimizer=optimizer))}
    folder, whole, rest = (tmp_path / name for name in ("saved", "whole", "rest"))
    cadence = {"checkpoint_folder": str(folder), "checkpoint_every_updates": 5}
    for out in (whole, rest):
        out.mkdir()
    train_model.main(request | cadence, whole)
    train_model.main(request | {"restore_folder": str(folder)}, rest)
    restored = read_trace(rest / "artifacts" / "trace.jsonl")
    expected = read_trace(whole / "artifacts" / "trace.jsonl")
    assert list(restored) == [6, 7, 8]
    assert all(restored[update] == expected[update] for update in restored)
    kinds = {digest["kind"] for digest in restored[8]["digests"]}
    assert kinds == {*KINDS, "average"}
    for name in ("parameters.npz", "training_state.npz"):
        again = (rest / "artifacts" / name).read_bytes()
        assert again == (whole / "artifacts" / name).read_bytes(), name
    with (
        np.load(whole / "artifacts" / "parameters.npz") as released,
        np.load(whole / "artifacts" / "training_state.npz") as state,
    ):
        for name in released.files:
            assert (released[name] == state[f"average/{name}"]).all()
            assert (released[name] != state[f"parameters/{name}"]).any()
    rates = [row["learning_rate"] for row in rows(whole, "updates")]
    assert rates == sorted(rates[:4]) + sorted(rates[4:], reverse=True)
    assert rates[3] == pytest.approx(3e-3)
    assert rates[7] == pytest.approx(3e-4)


def test_a_restore_under_another_setting_is_refused_and_trains_nothing(
    base: dict[str, Any], whole: tuple[Path, Path], tmp_path: Path
) -> None:
    optimizer = replace(TRAIN.optimizer, beta2=0.99)
    changed = {"train": to_dict(replace(TRAIN, optimizer=optimizer))}
    request = base | changed | {"restore_folder": str(whole[1])}
    with pytest.raises(Refused, match=r"optimizer\.beta2") as refused:
        train_model.main(request, tmp_path)
    assert refused.value.code == "checkpoint_mismatch_beta2"
    assert not (tmp_path / "artifacts").exists()


def test_a_folder_without_a_checkpoint_is_refused(
    base: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(Refused) as refused:
        train_model.main(base | {"restore_folder": str(tmp_path)}, tmp_path)
    assert refused.value.code == "checkpoint_absent"


def test_a_training_that_diverges_stops_and_keeps_its_last_checkpoint(
    base: dict[str, Any], tmp_path: Path
) -> None:
    optimizer = replace(TRAIN.optimizer, learning_rate=1e30)
    request = base | {
        "train": to_dict(replace(TRAIN, optimizer=optimizer)),
        "checkpoint_folder": str(tmp_path / "checkpoints"),
        "checkpoint_every_updates": 1,
    }
    with pytest.raises(Refused, match="update 2") as refused:
        train_model.main(request, tmp_path)
    assert refused.value.code in ("non_finite_loss", "non_finite_gradient")
    committed = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert committed[-1] == "update-000001"
    assert list(read_trace(tmp_path / "artifacts" / "trace.jsonl")) == [1]


def test_a_request_without_its_label_is_refused(
    base: dict[str, Any], tmp_path: Path
) -> None:
    request = {name: value for name, value in base.items() if name != "label"}
    with pytest.raises(Refused, match="'label'") as refused:
        train_model.main(request, tmp_path)
    assert refused.value.code == "request_malformed"


def test_one_batch_is_learned_by_heart(base: dict[str, Any], tmp_path: Path) -> None:
    overfit_batch.main(base, tmp_path)
    measured = {row["measure"]: row for row in rows(tmp_path, "measurements")}
    above = measured["overfit_above_floor_nats_per_token"]["value_real"]
    assert 0.0 < above < 0.3, above
    assert measured["overfit_updates"]["value_count"] == 150


def test_a_model_that_cannot_see_stays_above_the_floor(
    base: dict[str, Any], tmp_path: Path
) -> None:
    """A learning rate of almost nothing stands for a broken gradient path."""
    optimizer = replace(TRAIN.optimizer, learning_rate=1e-9)
    request = base | {"train": to_dict(replace(TRAIN, optimizer=optimizer))}
    overfit_batch.main(request, tmp_path)
    measured = {row["measure"]: row for row in rows(tmp_path, "measurements")}
    assert measured["overfit_above_floor_nats_per_token"]["value_real"] > 1.0


@pytest.mark.parametrize("touched", ["nothing", "cursor", "step", "dropout_seed"])
def test_an_evaluation_that_moves_the_training_on_is_revised(
    base: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, touched: str
) -> None:
    """Arrays stay as they are; where the order and the keys stand does not."""
    training = train_model.Training(read_request(base), tmp_path)
    state, progress = training._start()
    evaluate = train_model.evaluate_split
    spoils = {
        "cursor": (progress, "cursor", Cursor(position=16)),
        "step": (progress, "step", 1),
        "dropout_seed": (training.request.train, "dropout_seed", 99),
    }

    def faulty(*given: Any) -> Any:
        if touched in spoils:
            object.__setattr__(*spoils[touched])
        return evaluate(*given)

    monkeypatch.setattr(train_model, "evaluate_split", faulty)
    training._evaluate(state, progress)
    compared = [row for row in training.comparisons if row["claim"] == "2.7"]
    assert len(compared) == 1
    found = verdict(tmp_path, "train_model", compared)
    assert found == (OPEN if touched == "nothing" else REVISE)
