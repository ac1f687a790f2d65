"""The incomparable losses are real numbers, and one of them flatters."""

import math

import numpy as np
import pytest

from model.checks.baselines import training_frequency_nats
from model.checks.perplexities import (
    _byte_differences,
    frequency_loss,
    perplexity_rows,
    stated_rows,
)
from model.corpus import Corpus
from model.evaluation import Evaluation
from model.tokenizer import describe, document_tokens

TEXTS = {"train": (b"ab|ba", b"cd|dc", b"ef|fe"), "heldout": (b"ad|da", b"bfc|cfb")}


@pytest.fixture
def corpus() -> Corpus:
    tokens = {
        split: np.stack([document_tokens(text, 12) for text in texts])
        for split, texts in TEXTS.items()
    }
    described = {"tokenizer": describe(), "splits_sha256": {"heldout": "h"}}
    return Corpus(
        tokens=tokens, document_ids={}, split_sha256="d", description=described
    )


EVALUATION = Evaluation(
    losses=np.zeros(0),
    predictions=np.zeros(0),
    loss_sum_nats=20.0,
    valid_targets=14,
    correct_targets=3,
)


def test_a_loss_of_add_one_counts_is_the_one_by_hand() -> None:
    loss, targets = frequency_loss([7, 7, 8], [7, 9], 4)
    assert targets == 2
    assert loss == pytest.approx(-math.log(3 / 7) - math.log(1 / 7))


def test_counting_is_the_baseline_that_the_release_is_held_against(
    corpus: Corpus,
) -> None:
    rows = {row["name"]: row for row in perplexity_rows(corpus, "heldout", EVALUATION)}
    own = rows["training_frequency"]
    mean = own["loss_sum_nats"] / own["counted_targets"]
    baseline = training_frequency_nats(corpus.tokens["train"], corpus.tokens["heldout"])
    assert mean == pytest.approx(baseline)
    assert own["counted_targets"] == 6 + 8
    assert own["expected_reason"] is None
    assert rows["release"]["loss_sum_nats"] == 20.0


def test_each_incomparable_loss_differs_in_what_its_reason_names(
    corpus: Corpus,
) -> None:
    rows = {row["name"]: row for row in perplexity_rows(corpus, "heldout", EVALUATION)}
    release = rows["release"]
    names = ("tokenizer", "vocabulary_tokens", "mask_policy")
    differs = {
        name: {column for column in names if row[column] != release[column]}
        for name, row in rows.items()
    }
    assert differs["training_frequency"] == set()
    assert differs["tokenizer"] == {"tokenizer"}
    assert differs["vocabulary"] == {"vocabulary_tokens"}
    assert differs["mask_policy"] == {"mask_policy"}


def test_each_two_of_them_are_apart_together_once(corpus: Corpus) -> None:
    rows = {row["name"]: row for row in perplexity_rows(corpus, "heldout", EVALUATION)}
    columns = {
        "tokenizer": "tokenizer",
        "vocabulary": "vocabulary_tokens",
        "mask_policy": "mask_policy",
    }
    pairs = [name for name in rows if "+" in name]
    assert len(pairs) == 3
    for name in pairs:
        apart = [
            part
            for part, column in columns.items()
            if rows[name][column] != rows["release"][column]
        ]
        assert name == "+".join(apart)
        assert rows[name]["expected_reason"] == f"{apart[0]}_changed"
    numbers = [row["loss_sum_nats"] for row in rows.values()]
    assert len(set(numbers)) == len(numbers)


def test_steps_from_byte_to_byte_are_another_tokenizer_of_the_same_size(
    corpus: Corpus,
) -> None:
    rows = {row["name"]: row for row in perplexity_rows(corpus, "heldout", EVALUATION)}
    steps = list(_byte_differences(corpus.tokens["heldout"][:1]))
    # a d | d a: 97, 3, 24, -24, -3, and the end
    assert steps == [2 + 97, 2 + 3, 2 + 24, 2 + 232, 2 + 253, 1]
    assert max(steps) < 259
    assert rows["tokenizer"]["counted_targets"] == 6 + 8
    with_pad = list(_byte_differences(corpus.tokens["heldout"][:1], with_pad=True))
    assert with_pad == [*steps, *[0] * 6]


def test_a_row_is_stated_by_every_value_that_a_view_compares(corpus: Corpus) -> None:
    rows = perplexity_rows(corpus, "heldout", EVALUATION)
    (before,) = stated_rows(rows[:1])
    assert (before["table_name"], before["row_name"]) == ("perplexities", "release")
    for column, value in rows[0].items():
        if column in ("name", "expected_reason"):
            continue
        other = f"{value}." if isinstance(value, str) else math.nextafter(value, 1e9)
        (after,) = stated_rows([rows[0] | {column: other}])
        assert after["sha256"] != before["sha256"], column


def test_pad_among_the_targets_flatters(corpus: Corpus) -> None:
    """Which is why the two must not stand beside each other."""
    rows = {row["name"]: row for row in perplexity_rows(corpus, "heldout", EVALUATION)}
    means = {
        name: row["loss_sum_nats"] / row["counted_targets"]
        for name, row in rows.items()
    }
    assert means["mask_policy"] < means["training_frequency"] - 0.5


def test_pairs_of_bytes_keep_an_odd_last_byte(corpus: Corpus) -> None:
    rows = {row["name"]: row for row in perplexity_rows(corpus, "heldout", EVALUATION)}
    # ad |d a. EOS, and bf c| cf b. EOS
    assert rows["tokenizer+vocabulary"]["counted_targets"] == 4 + 5
