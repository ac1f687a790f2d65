"""Claim 2.9: what a recorded training loss is the loss of.

A loss taken after the update, or without dropout, falls as smoothly as the right one.
So updates are computed again, the first from the seeds alone, by a program that ends
with the gradient: its bits do not depend on what an optimizer makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from model.checks.rows import Row, comparison
from model.config import ModelConfig
from model.parameters import Parameters
from model.training import mean_loss

if TYPE_CHECKING:
    from jaxtyping import Int32, UInt32

CLAIM = "2.9"


@partial(jax.jit, static_argnames="model")
def loss_and_gradients(
    parameters: Parameters, tokens: Any, key: Any, *, model: ModelConfig
) -> tuple[jax.Array, Parameters]:
    """Returns the mean loss per valid target in nats, and its gradient.

    Args:
        parameters: Parameters by name.
        tokens: Documents [B, T + 1], int32.
        key: Dropout key, or None.
        model: Shape of the model.
    """
    # The gradient is asked for, because a forward pass alone is fused otherwise and
    # parts in the last bits.
    objective = jax.value_and_grad(partial(mean_loss, model=model), has_aux=True)
    (loss, _), gradients = objective(parameters, tokens, key)
    return loss, gradients


@dataclass(frozen=True, kw_only=True)
class RecordedLoss:
    """A recorded loss, and what it has to be the loss of."""

    update: int
    """Number of the update, from 1."""
    nats: float
    """Mean loss per valid target, as it was recorded."""
    documents: Int32[np.ndarray, "B T1"]
    """Batch of the update."""
    key_data: UInt32[np.ndarray, " K"]
    """Data of the dropout key that the update consumed."""

    def compared(
        self, measure: str, parameters: Parameters, model: ModelConfig, *, key: bool
    ) -> tuple[Row, Parameters]:
        """Returns the recorded loss beside one of these parameters, and its gradient.

        Args:
            measure: What the loss is computed of.
            parameters: Parameters by name.
            model: Shape of the model.
            key: Whether the consumed key is used, or none.
        """
        consumed = jax.random.wrap_key_data(jnp.asarray(self.key_data))
        tokens = jnp.asarray(self.documents)
        loss, gradients = loss_and_gradients(
            parameters, tokens, consumed if key else None, model=model
        )
        case, source = f"update-{self.update:03d}", "the recorded loss of the update"
        bits = _bits(np.float32(self.nats)), _bits(np.asarray(loss))
        lost = "" if np.isfinite(loss) else f"{loss} is no number to compare"
        return comparison(CLAIM, measure, case, *bits, source, lost), gradients


def measure_loss(
    recorded: RecordedLoss, before: Parameters, model: ModelConfig
) -> tuple[Row, Parameters]:
    """Returns whether a recorded loss is the one before its update, with dropout.

    Args:
        recorded: The loss, and what its update consumed.
        before: Parameters before the update.
        model: Shape of the model.

    Returns:
        The comparison, and the gradient of that loss.
    """
    return recorded.compared("loss_before_update_with_dropout", before, model, key=True)


def measure_other_losses(
    recorded: RecordedLoss, before: Parameters, after: Parameters, model: ModelConfig
) -> list[Row]:
    """Returns what the recorded loss must not be: without dropout, or too late.

    Args:
        recorded: The loss, and what its update consumed.
        before: Parameters before the update.
        after: Parameters after the update.
        model: Shape of the model.
    """
    without, _ = recorded.compared("loss_without_dropout", before, model, key=False)
    late, _ = recorded.compared("loss_after_update", after, model, key=True)
    return [without, late]


def _bits(loss: np.ndarray | np.float32) -> str:
    """Returns the bits of a loss; what is no number is told by name and has none.

    Two that broke down part in their bits as two losses do.
    """
    if not np.isfinite(loss):
        return str(np.float32(loss))
    return f"0x{int(np.asarray(loss, np.float32).view(np.uint32)):08x}"
