"""Losses that may be compared with the release's, and losses that may not.

Counting letters of the training split gives a perplexity under any tokenizer, so the
incomparable ones here are real: differences of bytes as tokens, ids that no text uses,
PAD among the targets, one at a time and two together. Each is a plausible number;
whether it meets the release's is decided by a view.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from model.checks.rows import Row
from model.corpus import Corpus
from model.evaluation import Evaluation
from model.objective import MASK_POLICY
from model.refusal import ReasonCode
from model.tokenizer import BYTE_OFFSET, PAD, VOCABULARY_TOKENS

# A pair at the end of a text may lack its second byte, which is one value more.
PAIR_VALUES = 257
PAIR_TOKENS = PAIR_VALUES**2 + 1
# Neither PAD nor BOS is ever a target.
EMITTED_TOKENS = VOCABULARY_TOKENS - 2
UNUSED_IDS = 253

Targets = Callable[[np.ndarray], Iterable[int]]
Counted = Callable[..., Row]
ANOTHER_TOKENIZER = {
    "tokenizer": "byte-differences-1",
    "expected_reason": str(ReasonCode.TOKENIZER_CHANGED),
}
MORE_IDS = {
    "vocabulary_tokens": VOCABULARY_TOKENS + UNUSED_IDS,
    "expected_reason": str(ReasonCode.VOCABULARY_CHANGED),
}
PAD_COUNTS = {
    "mask_policy": "bytes, EOS and PAD count",
    "expected_reason": "mask_policy_changed",
}


def perplexity_rows(corpus: Corpus, split: str, evaluation: Evaluation) -> list[Row]:
    """Returns rows of ``perplexities``: the release's, and those of counting.

    Args:
        corpus: Tokens of every split; counts come from the training split.
        split: Split that is scored.
        evaluation: The release's evaluation of it.
    """
    described = corpus.description["tokenizer"]
    own: Row = {
        "split": split,
        "text_sha256": corpus.description["splits_sha256"][split],
        "tokenizer": f"{described['name']}-{described['version']}",
        "vocabulary_tokens": int(described["vocabulary_tokens"]),
        "mask_policy": MASK_POLICY,
        "expected_reason": None,
    }

    def counted(name: str, targets: Targets, outcomes: int, **changes: Any) -> Row:
        training, scored = corpus.tokens["train"], corpus.tokens[split]
        loss, number = frequency_loss(targets(training), targets(scored), outcomes)
        summed = {"loss_sum_nats": loss, "counted_targets": number}
        return own | {"name": name} | summed | changes

    release = {
        "loss_sum_nats": evaluation.loss_sum_nats,
        "counted_targets": evaluation.valid_targets,
    }
    return [
        own | {"name": "release"} | release,
        counted("training_frequency", _targets, EMITTED_TOKENS),
        *_one_thing_apart(counted),
        *_two_things_apart(counted),
    ]


def _one_thing_apart(counted: Counted) -> list[Row]:
    return [
        counted("tokenizer", _byte_differences, EMITTED_TOKENS, **ANOTHER_TOKENIZER),
        counted("vocabulary", _targets, EMITTED_TOKENS + UNUSED_IDS, **MORE_IDS),
        counted("mask_policy", _every_target, EMITTED_TOKENS + 1, **PAD_COUNTS),
    ]


def _two_things_apart(counted: Counted) -> list[Row]:
    """Rows that part in two things, named by both; the first one gives the reason."""
    every_difference = partial(_byte_differences, with_pad=True)
    return [
        counted(
            "tokenizer+vocabulary",
            _byte_pairs,
            PAIR_TOKENS,
            tokenizer="byte-pairs-1",
            vocabulary_tokens=PAIR_TOKENS,
            expected_reason=str(ReasonCode.TOKENIZER_CHANGED),
        ),
        counted(
            "tokenizer+mask_policy",
            every_difference,
            EMITTED_TOKENS + 1,
            **{**PAD_COUNTS, **ANOTHER_TOKENIZER},
        ),
        counted(
            "vocabulary+mask_policy",
            _every_target,
            EMITTED_TOKENS + 1 + UNUSED_IDS,
            **{**PAD_COUNTS, **MORE_IDS},
        ),
    ]


def stated_rows(scored: Iterable[Row]) -> list[Row]:
    """Returns rows of ``stated_rows``: a digest of what each comparison is given.

    Args:
        scored: Rows of ``perplexities``, as they are written.
    """
    return [
        {
            "table_name": "perplexities",
            "row_name": row["name"],
            "sha256": hashlib.sha256(_canonical(row).encode()).hexdigest(),
        }
        for row in scored
    ]


def _canonical(row: Row) -> str:
    """Returns what a comparison reads of a row, one value a line."""
    return "\n".join(
        (
            row["split"],
            row["text_sha256"],
            row["tokenizer"],
            str(row["vocabulary_tokens"]),
            row["mask_policy"],
            # 17 digits name a float64 exactly
            f"{row['loss_sum_nats']:.17g}",
            str(row["counted_targets"]),
        )
    )


def frequency_loss(
    training: Iterable[int], scored: Iterable[int], outcomes: int
) -> tuple[float, int]:
    """Returns the summed loss in nats of add-one counts, and the number of targets.

    Args:
        training: Targets that are counted.
        scored: Targets that are predicted.
        outcomes: Values a target may have; each begins with a count of one.
    """
    counts = Counter(training)
    total = sum(counts.values()) + outcomes
    losses = [-math.log((counts[target] + 1) / total) for target in scored]
    return math.fsum(losses), len(losses)


def _targets(tokens: np.ndarray) -> Iterator[int]:
    """Targets of documents [N, T + 1] that count: every byte and EOS."""
    targets = tokens[:, 1:]
    yield from targets[targets != PAD].tolist()


def _every_target(tokens: np.ndarray) -> Iterator[int]:
    """Targets of documents [N, T + 1], PAD among them."""
    yield from tokens[:, 1:].ravel().tolist()


def _byte_differences(tokens: np.ndarray, *, with_pad: bool = False) -> Iterator[int]:
    """The same documents as a tokenizer of steps from byte to byte would give them.

    It has as many tokens as bytes, so its vocabulary is as large as the release's.
    """
    for row in tokens:
        values = [int(token) - BYTE_OFFSET for token in row if token >= BYTE_OFFSET]
        for before, value in zip([0, *values], values, strict=False):
            yield 2 + (value - before) % 256
        yield 1  # the end of the document
        if with_pad:
            yield from [PAD] * int((row == PAD).sum())


def _byte_pairs(tokens: np.ndarray) -> Iterator[int]:
    """The same documents as a tokenizer of two bytes a token would give them."""
    for row in tokens:
        values = [int(token) - BYTE_OFFSET for token in row if token >= BYTE_OFFSET]
        for place in range(0, len(values), 2):
            second = values[place + 1] if place + 1 < len(values) else PAIR_VALUES - 1
            yield 1 + values[place] * PAIR_VALUES + second
        yield 0  # the end of the document
