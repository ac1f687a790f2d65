"""The schedules and the average again, in plain Python and NumPy float64."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from model.config import OptimizerConfig


def learning_rate(step: int, optimizer: OptimizerConfig) -> float:
    """Returns the learning rate of update number `step`, from 1.

    Source: Loshchilov and Hutter 2017, equation 5, one cycle.
    """
    peak, warmup = optimizer.learning_rate, optimizer.warmup_updates
    if step <= warmup:
        return peak * step / warmup
    if optimizer.decay_updates == 0:
        return peak
    lowest = peak * optimizer.final_learning_rate_share
    if step >= warmup + optimizer.decay_updates:
        return lowest
    angle = math.pi * (step - warmup) / optimizer.decay_updates
    return lowest + 0.5 * (peak - lowest) * (1 + math.cos(angle))


def weight_decay(step: int, optimizer: OptimizerConfig) -> float:
    """Returns the share that a matrix loses in update `step` for a rate of 1."""
    start, length = (
        optimizer.weight_decay_rise_after,
        optimizer.weight_decay_rise_updates,
    )
    if length == 0 or step <= start:
        return optimizer.weight_decay
    if step >= start + length:
        return optimizer.final_weight_decay
    done = (step - start) / length
    return (1 - done) * optimizer.weight_decay + done * optimizer.final_weight_decay


def average_parameters(
    average: Mapping[str, np.ndarray],
    parameters: Mapping[str, np.ndarray],
    step: int,
    optimizer: OptimizerConfig,
) -> dict[str, np.ndarray]:
    """Returns the average after update number `step`, float64."""
    kept = min(optimizer.average_decay, (1 + step) / (10 + step))
    return {
        name: kept * np.asarray(average[name], np.float64)
        + (1 - kept) * np.asarray(values, np.float64)
        for name, values in parameters.items()
    }
