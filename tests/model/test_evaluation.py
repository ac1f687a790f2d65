"""An evaluation is the same bits in every batch size and changes nothing."""

import numpy as np
import pytest

from model.config import ModelConfig
from model.digests import tree_sha256
from model.evaluation import evaluate_split, evaluate_tokens, sequential_sum
from model.parameters import Parameters, initial_parameters
from model.refusal import Refused
from tests.model.made_tokens import token_table

MODEL = ModelConfig()


@pytest.fixture(scope="module")
def parameters() -> Parameters:
    return initial_parameters(MODEL, 0)


@pytest.fixture(scope="module")
def tokens() -> np.ndarray:
    return token_table(21)


@pytest.mark.parametrize("size", [1, 5, 7, 16, 32])
def test_every_batch_size_gives_the_same_bits(
    parameters: Parameters, tokens: np.ndarray, size: int
) -> None:
    whole = evaluate_tokens(parameters, tokens, MODEL, 21)
    parts = evaluate_tokens(parameters, tokens, MODEL, size)
    for every, single in zip(whole, parts, strict=True):
        assert every.tobytes() == single.tobytes()


def test_sums_and_counts_are_those_of_the_valid_targets(
    parameters: Parameters, tokens: np.ndarray
) -> None:
    result = evaluate_split(parameters, tokens, MODEL)
    targets = tokens[:, 1:]
    assert result.valid_targets == int((targets != 0).sum())
    total = 0.0
    for loss in result.losses[targets != 0]:
        total += float(loss)
    assert result.loss_sum_nats == total
    hits = (result.predictions == targets) & (targets != 0)
    assert result.correct_targets == int(hits.sum())


def test_an_evaluation_changes_no_byte_of_the_parameters(
    parameters: Parameters, tokens: np.ndarray
) -> None:
    before = tree_sha256(parameters)
    evaluate_split(parameters, tokens, MODEL, 5)
    assert tree_sha256(parameters) == before


def test_the_sum_is_one_after_another_and_not_pairwise() -> None:
    values = np.full((10, 100), np.float32(0.1))
    values[0, 0] = np.float32(1e9)
    total = 0.0
    for value in values.ravel():
        total += float(value)
    assert sequential_sum(values) == total
    assert sequential_sum(values[:0]) == 0.0


def test_malformed_documents_are_refused(parameters: Parameters) -> None:
    with pytest.raises(Refused) as refused:
        evaluate_tokens(parameters, np.full((1, 13), 259, np.int32), MODEL, 1)
    assert refused.value.code == "targets_range"
