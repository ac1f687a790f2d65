"""Every first seed is reported, and one whose numbers leave the real line too."""

from dataclasses import replace

import numpy as np
import pytest

from model.config import ModelConfig, OptimizerConfig, TrainConfig
from model.corpus import Corpus
from model.programs.train_initializations import (
    initialization_seeds,
    train_and_evaluate,
)
from model.tokenizer import document_tokens

MODEL = ModelConfig(width=12, feed_forward_width=16)
TRAIN = TrainConfig(batch_documents=4, updates=3)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    tokens = np.stack([document_tokens(b"ab%d" % n, 12) for n in range(6)])
    splits = ("train", "validation", "heldout")
    return Corpus(
        tokens=dict.fromkeys(splits, tokens),
        document_ids={split: [str(n) for n in range(6)] for split in splits},
        split_sha256="d",
        description={},
    )


def test_the_seeds_begin_with_the_released_one_and_stay_below_32_bits() -> None:
    assert initialization_seeds(TRAIN, 3) == [11, 1011, 2011]
    last = replace(TRAIN, initialization_seed=2**32 - 1)
    assert initialization_seeds(last, 2) == [2**32 - 1, 999]


def test_a_seed_that_works_gives_its_losses(corpus: Corpus) -> None:
    row = train_and_evaluate(corpus, MODEL, TRAIN, 3)
    assert (row["updates"], row["asked_updates"], row["failure_reason"]) == (3, 3, None)
    assert 0 < row["heldout_nats_per_token"] < 8
    assert row["heldout_valid_targets"] == 6 * 4
    assert train_and_evaluate(corpus, MODEL, TRAIN, 3) == row


def test_a_seed_that_fails_is_reported_with_its_reason(corpus: Corpus) -> None:
    wild = replace(TRAIN, optimizer=OptimizerConfig(learning_rate=1e38))
    row = train_and_evaluate(corpus, MODEL, wild, 3)
    assert row["failure_reason"] in ("non_finite_loss", "non_finite_gradient")
    assert row["updates"] < 3
    assert row["heldout_nats_per_token"] is row["validation_nats_per_token"] is None
