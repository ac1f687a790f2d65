"""Adam again, in NumPy float64 and from the papers' algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from model.reference.schedule import learning_rate, weight_decay

if TYPE_CHECKING:
    from model.config import OptimizerConfig


def adam_update(
    parameters: Mapping[str, np.ndarray],
    gradients: Mapping[str, np.ndarray],
    moments: tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]],
    step: int,
    optimizer: OptimizerConfig,
) -> tuple[dict[str, np.ndarray], tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """Returns parameters and moments after update number `step`, float64.

    Args:
        parameters: Arrays by name.
        gradients: Arrays by name.
        moments: First and second moments by name.
        step: Number of this update, from 1.
        optimizer: Rates; epsilon stands outside the root.

    Source: Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2.
    """
    rate, decay = learning_rate(step, optimizer), weight_decay(step, optimizer)
    moved: dict[str, np.ndarray] = {}
    first: dict[str, np.ndarray] = {}
    second: dict[str, np.ndarray] = {}
    for name, values in parameters.items():
        gradient = np.asarray(gradients[name], dtype=np.float64)
        mean = np.asarray(moments[0][name], dtype=np.float64)
        square = np.asarray(moments[1][name], dtype=np.float64)
        first[name] = optimizer.beta1 * mean + (1 - optimizer.beta1) * gradient
        second[name] = optimizer.beta2 * square + (1 - optimizer.beta2) * gradient**2
        unbiased_mean = first[name] / (1 - optimizer.beta1**step)
        unbiased_square = second[name] / (1 - optimizer.beta2**step)
        change = unbiased_mean / (np.sqrt(unbiased_square) + optimizer.epsilon)
        old = np.asarray(values, np.float64)
        is_matrix = old.ndim > 1
        moved[name] = old - rate * change - (rate * decay * old if is_matrix else 0.0)
    return moved, (first, second)
