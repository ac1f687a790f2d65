"""Losses that need no model: letter frequencies, and the entropy of a known grammar.

A trained loss means something between these two: what counting alone reaches, and what
nobody can get below on average.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.tokenizer import BOS, PAD, VOCABULARY_TOKENS, decode

FREQUENCY_RULE = (
    "Add-one counts of valid training targets over the 257 targets a model may emit:"
    " 256 bytes and EOS, neither PAD nor BOS."
)
GRAMMAR_RULE = (
    "Strings p|reverse(p): prefix lengths 2 to 5 equally likely, letters too;"
    " ln 6 for each letter of a prefix and ln 4 for each document, 0 for the rest."
)
LETTERS = 6
PREFIX_LENGTHS = (2, 3, 4, 5)
PATTERN = re.compile(rb"([a-f]{2,5})\|([a-f]{2,5})")


@dataclass(frozen=True, kw_only=True)
class GrammarBounds:
    """What a model that knows the grammar of the fixture can reach on a corpus."""

    floor_nats: float
    """Expected loss of all documents in nats."""
    expected_correct_targets: float
    """Expected number of targets that its most likely token hits."""


def training_frequency_nats(training: np.ndarray, evaluated: np.ndarray) -> float:
    """Returns the loss in nats per valid target of add-one training frequencies.

    Args:
        training: Training documents [N, T + 1]; targets are all tokens but the first.
        evaluated: Documents [M, T + 1] to be predicted.
    """
    counts = np.bincount(training[:, 1:].ravel(), minlength=VOCABULARY_TOKENS) + 1.0
    counts[[PAD, BOS]] = 0.0
    targets = evaluated[:, 1:]
    probabilities = counts[targets[targets != PAD]] / counts.sum()
    return float(-np.log(probabilities).mean())


def grammar_bounds(evaluated: np.ndarray) -> GrammarBounds | None:
    """Returns floor and ceiling on documents of the fixture's grammar, else None.

    Args:
        evaluated: Documents [M, T + 1] to be predicted.
    """
    lengths = prefix_lengths([decode(document) for document in evaluated])
    if lengths is None:
        return None
    choices = len(PREFIX_LENGTHS)
    letters = sum(lengths)
    floor = letters * math.log(LETTERS) + len(lengths) * math.log(choices)
    expected = sum(_expected_correct(length) for length in lengths)
    return GrammarBounds(floor_nats=floor, expected_correct_targets=expected)


def prefix_lengths(texts: Sequence[bytes]) -> list[int] | None:
    """Returns the prefix length of each text, or None when one is not p|reverse(p)."""
    lengths = []
    for text in texts:
        match = PATTERN.fullmatch(text)
        if match is None or match[1] != match[2][::-1]:
            return None
        lengths.append(len(match[1]))
    return lengths


def _expected_correct(length: int) -> float:
    """Expected hits in one document, letters being equally likely.

    While the prefix may still go on, the bar is likelier than any one letter as soon as
    it is possible at all, so the best guess is a letter only before.
    """
    correct = float(length + 1)  # the reversed letters and EOS follow for certain
    for letters in range(length + 1):
        bar = _probability_of_bar(letters)
        is_bar_guessed = bar > (1.0 - bar) / LETTERS
        if letters == length:
            correct += 1.0 if is_bar_guessed else 0.0
        elif not is_bar_guessed:
            correct += 1.0 / LETTERS
    return correct


def _probability_of_bar(letters: int) -> float:
    """Probability that the bar follows a prefix of so many letters."""
    possible = [length for length in PREFIX_LENGTHS if length >= letters]
    return sum(length == letters for length in possible) / len(possible)


def memorization_floor_nats(documents: np.ndarray) -> float:
    """Returns the least mean loss in nats of distinct documents learned by heart.

    Which of N documents it is takes ln N nats to say, once a document.

    Args:
        documents: Distinct documents [N, T + 1].
    """
    targets = int((documents[:, 1:] != PAD).sum())
    return len(documents) * math.log(len(documents)) / targets
