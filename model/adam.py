"""Adam with bias correction, epsilon outside the root, moments in float32.

Weight decay is decoupled from the gradient and shrinks matrices and tables alone.

Written out instead of taken from a library, because the evidence compares both moments
and the step count bit by bit, and states the convention of epsilon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp

from model.parameters import Parameters
from model.schedule import has_weight_decay, learning_rate, weight_decay

if TYPE_CHECKING:
    from model.config import OptimizerConfig


class AdamState(NamedTuple):
    """Moments by parameter name, and the number of updates made so far."""

    first_moment: Parameters
    second_moment: Parameters
    step: jax.Array


def initial_adam(parameters: Parameters) -> AdamState:
    """Returns zero moments in the shapes of the parameters, and step 0 (int32)."""
    return AdamState(
        first_moment={name: jnp.zeros_like(x) for name, x in parameters.items()},
        second_moment={name: jnp.zeros_like(x) for name, x in parameters.items()},
        step=jnp.zeros((), dtype=jnp.int32),
    )


def adam_update(
    parameters: Parameters,
    gradients: Parameters,
    state: AdamState,
    optimizer: OptimizerConfig,
) -> tuple[Parameters, AdamState]:
    """Returns parameters and state after one update.

    p - rate * (m / (1 - beta1**t)) / (sqrt(v / (1 - beta2**t)) + epsilon), and for a
    matrix further - rate * decay * p.

    Args:
        parameters: Parameters by name, float32.
        gradients: Gradient of the mean loss by name, float32, finite.
        state: Moments and number of updates before this one.
        optimizer: Rates, their schedules and epsilon.

    Source: Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2.
    Reference: model/reference/adam.py
    """
    step = state.step + jnp.int32(1)
    # float32: an integer power would leave the optimizer's precision open.
    exponent = step.astype(jnp.float32)
    correction1 = jnp.float32(1.0) - jnp.float32(optimizer.beta1) ** exponent
    correction2 = jnp.float32(1.0) - jnp.float32(optimizer.beta2) ** exponent
    rate = learning_rate(step, optimizer)
    shrinks = has_weight_decay(optimizer)
    decay = rate * weight_decay(step, optimizer)
    moved, first, second = {}, {}, {}
    for name, gradient in gradients.items():
        first[name] = (
            optimizer.beta1 * state.first_moment[name]
            + (1.0 - optimizer.beta1) * gradient
        )
        second[name] = optimizer.beta2 * state.second_moment[name] + (
            1.0 - optimizer.beta2
        ) * jnp.square(gradient)
        root = jnp.sqrt(second[name] / correction2) + optimizer.epsilon
        step_size = rate * (first[name] / correction1) / root
        if shrinks and gradient.ndim > 1:  # no bias and no scale of a LayerNorm
            step_size = step_size + decay * parameters[name]
        moved[name] = parameters[name] - step_size
    return moved, AdamState(first_moment=first, second_moment=second, step=step)
