"""Claim 1.10: slopes of the reference's loss, along an entry and along all of them.

Single entries show where a gradient is wrong, and miss what is wrong elsewhere: those
that are 0 and should not be, above all. So every tensor is moved as a whole too, each
entry up or down by chance, and the slope is what its gradient says only if every entry
of it is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from model.checks.first_loss import loss_and_gradients
from model.checks.rows import Row, real
from model.config import ModelConfig
from model.parameters import Parameters
from model.reference import objective as reference_objective
from model.reference import transformer as reference

if TYPE_CHECKING:
    from jaxtyping import Key

CLAIM = "1.10"
STEP = 1e-5
Factors = Sequence[np.ndarray]


def slope(
    parameters: Mapping[str, np.ndarray],
    name: str,
    direction: np.ndarray,
    tokens: np.ndarray,
    model: ModelConfig,
    thinned: Sequence[Factors] = (),
) -> float:
    """Returns the central difference of the reference's mean loss along a direction.

    Args:
        parameters: Parameters by name, float64.
        name: Tensor that is moved.
        direction: By how much each of its entries is moved, times `STEP`.
        tokens: Documents [N, T + 1] the loss is taken over.
        model: Shape of the model.
        thinned: For each document what dropout multiplies by at each place [T, D];
            none is no dropout.
    """
    losses = []
    for step in (STEP, -STEP):
        changed = {**parameters, name: parameters[name] + step * direction}
        predicted = [
            reference.forward(changed, row[:-1], model, thinned=factors)[0]
            for row, factors in zip(tokens, thinned or [()] * len(tokens), strict=True)
        ]
        losses.append(reference_objective.mean_loss(np.stack(predicted), tokens[:, 1:]))
    return (losses[0] - losses[1]) / (2.0 * STEP)


def measure_directions(
    measure: str,
    gradients: Mapping[str, np.ndarray],
    parameters: Mapping[str, np.ndarray],
    tokens: np.ndarray,
    model: ModelConfig,
    seed: int,
    thinned: Sequence[Factors] = (),
) -> list[Row]:
    """Returns how far whole gradients lie from slopes of the reference.

    Each tensor is moved along one drawn direction, every entry by 1 or -1. The
    difference is a share of the length of its gradient, which is what such a slope
    comes to.

    Args:
        measure: What the rows are called.
        gradients: Gradient of the mean loss by the system.
        parameters: Parameters by name.
        tokens: Documents [N, T + 1] the loss is taken over.
        model: Shape of the model.
        seed: Names the directions.
        thinned: As `slope`.

    Reference: model/reference/transformer.py, model/reference/objective.py
    """
    exact = {name: np.asarray(x, dtype=np.float64) for name, x in parameters.items()}
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = []
    for name, gradient in gradients.items():
        wide = np.asarray(gradient, dtype=np.float64)
        direction = generator.choice([-1.0, 1.0], wide.shape)
        apart = abs(
            float((wide * direction).sum())
            - slope(exact, name, direction, tokens, model, thinned)
        )
        length = float(np.linalg.norm(wide))
        # A tensor whose gradient is exactly 0 is measured in nats, not as a share.
        share = apart / length if length > 0.0 else apart
        detail = f"{wide.size} entries, length of the gradient {length:.3e}"
        rows.append(real(CLAIM, measure, name, share, "1", detail))
    return rows


def measure_thinned_directions(
    parameters: Parameters,
    few: np.ndarray,
    documents: int,
    key: Key[Any, ""],
    factors: Factors,
    model: ModelConfig,
    seed: int,
) -> list[Row]:
    """Returns the same with dropout, whose masks the way back has to draw again.

    Args:
        parameters: Parameters by name.
        few: Short documents [N, T + 1]; PAD fills the rest of a batch.
        documents: Documents of a batch of the training, at least N, so that its own
            program is the one that is measured.
        key: Dropout key of an update.
        factors: What it multiplies by at each place [documents, context, D].
        model: Shape of the model.
        seed: Names the directions.
    """
    count, width = few.shape
    batch = np.full((documents, model.context_tokens + 1), reference.PAD, np.int32)
    batch[:count, :width] = few
    _, gradients = loss_and_gradients(parameters, jnp.asarray(batch), key, model=model)
    return measure_directions(
        "dropout_gradient_directional_difference",
        {name: np.asarray(x) for name, x in gradients.items()},
        {name: np.asarray(x) for name, x in parameters.items()},
        few,
        model,
        seed,
        # What follows PAD changes nothing before it, so the reference leaves it out.
        [[mask[row, : width - 1] for mask in factors] for row in range(count)],
    )
