"""A restore finds out by itself that another training asks; the rows could say no."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model import checkpoint, restore, training_request
from model.checks import changed_requests as requests
from model.config import ModelConfig, TrainConfig
from model.corpus import Corpus
from model.digests import array_sha256
from model.runtime import describe
from model.tokenizer import describe as describe_tokenizer
from model.training import initial_state
from model.training_loop import initial_progress
from model.training_request import TrainingRequest, training_identity
from tests.judged import OPEN, REVISE, verdict

MODEL, TRAIN = ModelConfig(), TrainConfig()
TOKENS = np.full((3, 13), 5, dtype=np.int32)


def asked(folder: Path | None) -> TrainingRequest:
    corpus = Corpus(
        tokens={"train": TOKENS},
        document_ids={"train": ["a", "b", "c"]},
        split_sha256="the split",
        description={
            "tokens_sha256": {"train": array_sha256(TOKENS)},
            "tokenizer": describe_tokenizer(),
        },
    )
    return TrainingRequest(
        label="test",
        model=MODEL,
        train=TRAIN,
        corpus=corpus,
        final_update=1,
        suffix="",
        is_evaluated=False,
        checkpoint_folder=None,
        checkpoint_every_updates=1,
        restore_folder=folder,
        pause_after_update=None,
        watched_write=None,
        pause_at_step=None,
        compared_trace=None,
    )


@pytest.fixture(scope="module")
def request_of(tmp_path_factory: pytest.TempPathFactory) -> TrainingRequest:
    folder = tmp_path_factory.mktemp("checkpoints")
    request = asked(folder)
    state = initial_state(MODEL, TRAIN.initialization_seed)
    progress = initial_progress(TRAIN, len(TOKENS))
    checkpoint.write_checkpoint(folder, state, progress, training_identity(request))
    return request


def rows_of(request: TrainingRequest) -> list[dict[str, Any]]:
    rows = list(requests.refuse_requests(request))
    return [row for refused, about in rows for row in (refused, *about)]


def unmet(rows: list[dict[str, Any]]) -> set[str]:
    return {
        row["case_name"]
        for row in rows
        if row.get("expected_reason", "") != row.get("received_reason", "")
    }


def test_the_unchanged_request_restores(request_of: TrainingRequest) -> None:
    _, progress, folder = restore.restore_training(request_of)
    assert (progress.step, folder.name) == (0, "update-000000")


def test_every_part_of_the_identity_is_asked_for_alone(
    request_of: TrainingRequest, tmp_path: Path
) -> None:
    """Each changed training differs from this one in exactly what it is named for."""
    before = describe()
    own = leaves(training_identity(request_of))
    for path, changed in requests.changed_requests(request_of).items():
        with changed.runtime():
            other = leaves(training_identity(changed.request))
        assert {name for name in own if own[name] != other[name]} == {path}
    assert describe() == before
    rows = rows_of(request_of)
    assert unmet(rows) == set()
    assert verdict(tmp_path, "certify_recovery", rows) == OPEN
    precisions = list(requests.refuse_other_precisions(request_of, tmp_path / "p"))
    refused = {row["case_name"]: row["received_reason"] for row, _ in precisions}
    names = ("parameters", "moments", "dense")
    expected = "checkpoint_mismatch_policy"
    assert refused == {f"precision/{name}": expected for name in names}
    assert len(rows) + 3 * len(refused) == 3 * len(own)


def leaves(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {
        (f"{field}.{part}" if part else field): inner
        for field, value in identity.items()
        for part, inner in (
            value.items() if isinstance(value, Mapping) else {"": value}.items()
        )
    }


def constant(field: str, part: str = "") -> Callable[[TrainingRequest], Any]:
    """An identity that states one value whatever is asked for."""
    own = training_identity(asked(None))

    def identity(request: TrainingRequest) -> dict[str, Any]:
        found = training_identity(request)
        value = {**found[field], part: own[field][part]} if part else own[field]
        return found | {field: value}

    return identity


@pytest.mark.parametrize(
    "path",
    [
        *("order_seed", "dropout_seed", "batch_documents", "initialization_seed"),
        *("data.tokens_sha256", "data.split_sha256", "tokenizer.version"),
        *("architecture.heads", "architecture.dropout_rate", "optimizer.beta2"),
        *("optimizer.epsilon", "numerics.jaxlib", "numerics.cpu_isa"),
        *("numerics.matmul_precision", "numerics.threefry_partitionable"),
    ],
)
def test_an_identity_that_states_one_value_for_all_is_revised(
    request_of: TrainingRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
) -> None:
    monkeypatch.setattr(restore, "training_identity", constant(*path.split(".")))
    rows = rows_of(request_of)
    assert unmet(rows) == {path.replace(".", "/")}
    assert verdict(tmp_path, "certify_recovery", rows) == REVISE


def test_a_runtime_that_is_read_once_and_kept_is_revised(
    request_of: TrainingRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = describe()
    monkeypatch.setattr(training_request, "describe", lambda: kept)
    rows = rows_of(request_of)
    assert unmet(rows) == {f"numerics/{name}" for name in kept}
    assert verdict(tmp_path, "certify_recovery", rows) == REVISE


def test_a_precision_that_is_not_compared_is_revised(
    request_of: TrainingRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgiving(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        check(recorded, {**wanted, "precision": recorded["precision"]})

    check = checkpoint.check_identity
    monkeypatch.setattr(checkpoint, "check_identity", forgiving)
    made = list(requests.refuse_other_precisions(request_of, tmp_path / "p"))
    rows = [row for refused, about in made for row in (refused, *about)]
    assert verdict(tmp_path, "certify_recovery", rows) == REVISE


def test_a_training_may_go_on_for_longer_than_it_was_meant_to(
    request_of: TrainingRequest,
) -> None:
    """The number of updates is no part of the identity, or nobody could train on."""
    longer = replace(request_of.train, updates=TRAIN.updates + 1)
    _, progress, _ = restore.restore_training(replace(request_of, train=longer))
    assert progress.step == 0
