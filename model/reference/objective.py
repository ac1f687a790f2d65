"""The objective again, in NumPy float64: logarithm of a softmax, target by target."""

from __future__ import annotations

import math

import numpy as np

PAD = 0


def token_losses(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Returns -log softmax(logits)[target] in nats, 0 at PAD targets.

    Args:
        logits: Logits [T, V].
        targets: Ids [T].

    Returns:
        Losses [T], float64.
    """
    losses = np.zeros(len(targets))
    for position, target in enumerate(targets):
        if target != PAD:
            row = np.asarray(logits[position], dtype=np.float64)
            peak = float(row.max())
            normalizer = peak + math.log(float(np.exp(row - peak).sum()))
            losses[position] = normalizer - float(row[target])
    return losses


def mean_loss(logits: np.ndarray, targets: np.ndarray) -> float:
    """Returns the loss per valid target in nats of documents [N, T, V], [N, T]."""
    total, count = 0.0, 0
    for document, row in zip(logits, targets, strict=True):
        total += math.fsum(token_losses(document, row))
        count += int((row != PAD).sum())
    return total / count
