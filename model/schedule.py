"""How the learning rate and the weight decay move, and how parameters are averaged.

Each is a function of the number of the update and of declared settings alone, so that
a restored training needs nothing but its step to go on the same way. A setting that is
off leaves no operation in the program: the plain recipe keeps its bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax.numpy as jnp

from model.parameters import Parameters

if TYPE_CHECKING:
    from jaxtyping import Array, Float32, Int32

    from model.config import OptimizerConfig

# The average forgets its beginning: of t updates it spans about a tenth at first.
AVERAGE_START = 10.0


def learning_rate(
    step: Int32[Array, ""], optimizer: OptimizerConfig
) -> Float32[Array, ""]:
    """Returns the learning rate of update number `step`.

    Linear from 0 to the peak over the warm-up, then along half a cosine to its final
    share of the peak, which it keeps.

    Args:
        step: Number of the update, from 1.
        optimizer: `learning_rate`, `warmup_updates`, `decay_updates` and
            `final_learning_rate_share`.

    Source: Loshchilov and Hutter 2017, equation 5, one cycle.
    Reference: model/reference/schedule.py
    """
    rate = jnp.float32(optimizer.learning_rate)
    if not optimizer.warmup_updates and not optimizer.decay_updates:
        return rate
    # float32: the step is exact below 2**24.
    update = step.astype(jnp.float32)
    if optimizer.warmup_updates:
        share = update / jnp.float32(optimizer.warmup_updates)
        rate = rate * jnp.minimum(share, jnp.float32(1.0))
    if optimizer.decay_updates:
        past = update - jnp.float32(optimizer.warmup_updates)
        share = jnp.clip(past / jnp.float32(optimizer.decay_updates), 0.0, 1.0)
        fall = jnp.float32(0.5) * (1.0 + jnp.cos(jnp.float32(math.pi) * share))
        final = jnp.float32(optimizer.final_learning_rate_share)
        rate = rate * (final + (1.0 - final) * fall)
    return rate


def weight_decay(
    step: Int32[Array, ""], optimizer: OptimizerConfig
) -> Float32[Array, ""]:
    """Returns the share that a matrix loses in update `step` for a learning rate of 1.

    The first value until the rise begins, then linearly to the final one.

    Args:
        step: Number of the update, from 1.
        optimizer: `weight_decay`, `final_weight_decay`, `weight_decay_rise_after` and
            `weight_decay_rise_updates`.

    Reference: model/reference/schedule.py
    """
    first = jnp.float32(optimizer.weight_decay)
    if not optimizer.weight_decay_rise_updates:
        return first
    past = step.astype(jnp.float32) - jnp.float32(optimizer.weight_decay_rise_after)
    share = past / jnp.float32(optimizer.weight_decay_rise_updates)
    rise = jnp.float32(optimizer.final_weight_decay) - first
    return first + rise * jnp.clip(share, 0.0, 1.0)


def has_weight_decay(optimizer: OptimizerConfig) -> bool:
    """Whether any update shrinks a matrix."""
    is_rising = optimizer.weight_decay_rise_updates > 0
    return optimizer.weight_decay > 0 or (
        is_rising and optimizer.final_weight_decay > 0
    )


def average_parameters(
    average: Parameters,
    parameters: Parameters,
    step: Int32[Array, ""],
    optimizer: OptimizerConfig,
) -> Parameters:
    """Returns the average of parameters over the last updates, float32.

    a = d a + (1 - d) p with d = min(`average_decay`, (1 + t) / (10 + t)).

    Args:
        average: Average before the update.
        parameters: Parameters after it.
        step: Number of the update, t, from 1.
        optimizer: `average_decay`.

    Source: Polyak and Juditsky 1992, in its exponential form.
    Reference: model/reference/schedule.py
    """
    update = step.astype(jnp.float32)
    young = (1.0 + update) / (jnp.float32(AVERAGE_START) + update)
    kept = jnp.minimum(jnp.float32(optimizer.average_decay), young)
    return {
        name: kept * average[name] + (1.0 - kept) * values
        for name, values in parameters.items()
    }
