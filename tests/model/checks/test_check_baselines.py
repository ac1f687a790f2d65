"""Baseline, floor and ceiling are those of the formulas, and unknown where unknown."""

import itertools
import math

import numpy as np
import pytest

from model.checks import baselines
from model.config import fixture_manifest
from model.documents import load_text_manifest
from model.tokenizer import document_tokens


@pytest.fixture(scope="module")
def splits() -> dict[str, np.ndarray]:
    documents = load_text_manifest(fixture_manifest(), 12)
    return {
        split: np.stack(
            [document_tokens(d.data, 12) for d in documents if d.split == split]
        )
        for split in ("train", "heldout")
    }


def test_the_floor_of_the_fixture_is_the_published_one(splits: dict) -> None:
    bounds = baselines.grammar_bounds(splits["heldout"])
    assert bounds is not None
    assert abs(bounds.floor_nats - (106 * math.log(6) + 32 * math.log(4))) < 1e-9
    assert round(bounds.floor_nats / 276, 4) == 0.8489
    assert round(100 * bounds.expected_correct_targets / 276, 1) == 65.5


def test_the_floor_is_the_entropy_of_the_grammar_by_enumeration() -> None:
    """Over all strings with their probabilities, for one prefix length."""
    length = 2
    strings = ["".join(p) for p in itertools.product("abcdef", repeat=length)]
    probability = 1 / 4 / 6**length
    rows = np.stack([document_tokens(f"{p}|{p[::-1]}".encode(), 12) for p in strings])
    bounds = baselines.grammar_bounds(rows)
    assert bounds is not None
    mean = bounds.floor_nats / len(strings)
    assert abs(mean + math.log(probability)) < 1e-12


def test_another_corpus_has_no_known_floor() -> None:
    for text in (b"abc|abc", b"abcdef|fedcba", b"a|a", b"ab|ba ", b"abg|gba"):
        row = document_tokens(text, 15)[None]
        assert baselines.grammar_bounds(row) is None


def test_the_baseline_is_add_one_over_the_tokens_a_model_may_emit() -> None:
    training = np.array([[1, 100, 100, 2, 0]], dtype=np.int32)
    evaluated = np.array([[1, 100, 50, 2, 0]], dtype=np.int32)
    expected = -(math.log(3 / 260) + math.log(1 / 260) + math.log(2 / 260)) / 3
    measured = baselines.training_frequency_nats(training, evaluated)
    assert abs(measured - expected) < 1e-12


def test_the_baseline_of_the_fixture_is_near_the_published_one(splits: dict) -> None:
    """2.352 on another draw of the corpus: near, and never the same."""
    measured = baselines.training_frequency_nats(splits["train"], splits["heldout"])
    assert 2.2 < measured < 2.5, measured


def test_learning_by_heart_costs_the_choice_of_the_document() -> None:
    rows = np.array([[1, 100, 2, 0], [1, 101, 102, 2]], dtype=np.int32)
    assert baselines.memorization_floor_nats(rows) == 2 * math.log(2) / 5
