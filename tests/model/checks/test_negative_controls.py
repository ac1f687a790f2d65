"""Planted recovery faults are found, and nothing is found where none was planted."""

import json
from typing import Any

import pytest

from model.checks.negative_controls import CONTROLS
from model.config import ModelConfig, TrainConfig, fixture_manifest, to_dict
from model.programs import plant_recovery_faults, tokenize_corpus, train_model

TRAIN = TrainConfig(updates=8)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Tables that the program writes for a restore after update 3."""
    folder = tmp_path_factory.mktemp("controls")
    model = to_dict(ModelConfig())
    tokenize_corpus.main(
        {"manifest": str(fixture_manifest()), "model": model}, folder / "tokens"
    )
    request = {
        "label": "whole",
        "tokens": str(folder / "tokens" / "artifacts" / "tokens.npz"),
        "corpus": str(folder / "tokens" / "artifacts" / "corpus.json"),
        "model": model,
        "train": to_dict(TRAIN),
        "evaluate": False,
    }
    cadence = {
        "checkpoint_folder": str(folder / "checkpoints"),
        "checkpoint_every_updates": 3,
    }
    stop = {"stop_after_update": 5}
    train_model.main(request | cadence | stop, folder / "whole")
    trace = folder / "whole" / "artifacts" / "trace.jsonl"
    out = folder / "out"
    plant_recovery_faults.main(
        request
        | stop
        | {"restore_folder": cadence["checkpoint_folder"], "expected": str(trace)},
        out,
    )
    tables = ("negative_controls", "measurements")
    return {
        table: json.loads((out / "records" / f"{table}.json").read_text())
        for table in tables
    }


def rows_of(made: dict[str, list[dict[str, Any]]], control: str) -> list[dict]:
    return [r for r in made["negative_controls"] if r["control"] == control]


FIRST = {
    "adam_restarted": "first_moment",
    "moments_rounded": "first_moment",
    "step_reset": "step",
    "dropout_reseeded": "dropout_key",
    "order_reshuffled": "document_ids",
    "cursor_off_by_one": "document_ids",
}


@pytest.mark.parametrize("control", list(CONTROLS))
def test_a_planted_fault_is_found_at_once_and_by_its_cause(
    made: dict[str, list[dict[str, Any]]], control: str
) -> None:
    rows = rows_of(made, control)
    assert [row["update"] for row in rows] == [4, 5]
    assert rows[0]["first_kind"] == FIRST[control]
    assert rows[0]["first_difference"]
    assert all(row["differing_leaves"] for row in rows)


@pytest.mark.parametrize("control", ["adam_restarted", "moments_rounded", "step_reset"])
def test_the_loss_alone_would_not_have_found_an_optimizer_fault(
    made: dict[str, list[dict[str, Any]]], control: str
) -> None:
    first = rows_of(made, control)[0]
    assert first["loss_nats"] == first["uninterrupted_loss_nats"]


def test_a_moment_that_parts_is_told_by_index_and_ulp(
    made: dict[str, list[dict[str, Any]]],
) -> None:
    (row, _) = rows_of(made, "moments_rounded")
    assert row["first_difference"].startswith("index [")
    assert " ulp)" in row["first_difference"]


def test_nothing_is_found_where_nothing_was_planted(
    made: dict[str, list[dict[str, Any]]],
) -> None:
    """The counterpart: a comparison that always differs would find every fault."""
    assert [row["differing_leaves"] for row in rows_of(made, "none")] == [0, 0]
    measured = {(r["measure"], r["case_name"]): r for r in made["measurements"]}
    assert measured["unplanted_detected_updates", "none"]["value_count"] == 0
    change = measured["planted_fault_loss_change", "none/first"]
    assert change["value_real"] == 0.0


def test_every_control_has_a_cause_of_its_own_to_be_found_by() -> None:
    assert set(FIRST) == set(CONTROLS)
