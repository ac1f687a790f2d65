"""Losses of whole splits, token by token, in batches that cannot change them.

Every batch is filled with PAD rows to one fixed number of rows, so one compiled
program computes every batch size, and a batch size is a matter of speed alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from model.batches import gather_batch
from model.config import ModelConfig
from model.dense import DensePolicy
from model.objective import check_documents, token_losses
from model.parameters import Parameters
from model.tokenizer import PAD
from model.transformer import logits

if TYPE_CHECKING:
    from jaxtyping import Float32, Int32

FIXED_ROWS = 32


class TokenEvaluation(NamedTuple):
    """What the program computed for every position of documents."""

    losses: Float32[np.ndarray, "N T"]
    """Loss in nats, 0 where there is no target."""
    predictions: Int32[np.ndarray, "N T"]
    """Most likely next token."""
    valid_targets: Int32[np.ndarray, " N"]
    """Targets of each document that are no PAD, counted by the program."""


class Evaluation(NamedTuple):
    """Losses and predictions of documents, and the sums over their valid targets."""

    losses: np.ndarray
    """Loss of every position in nats [N, T], float32, 0 where there is no target."""
    predictions: np.ndarray
    """Most likely next token of every position [N, T], int32."""
    loss_sum_nats: float
    """Sum over documents, then positions, in float64, in this order."""
    valid_targets: int
    """Number of targets that are no PAD."""
    correct_targets: int
    """Number of valid targets that were the most likely token."""


@partial(jax.jit, static_argnames=("model", "policy"))
def _evaluate_batch(
    parameters: Parameters, tokens: jax.Array, model: ModelConfig, policy: DensePolicy
) -> tuple[jax.Array, jax.Array, jax.Array]:
    predicted = logits(parameters, tokens[:, :-1], model, policy=policy)
    likely = jnp.argmax(predicted, axis=-1).astype(jnp.int32)
    counts = jnp.sum(tokens[:, 1:] != PAD, axis=1, dtype=jnp.int32)
    return token_losses(predicted, tokens[:, 1:]), likely, counts


def evaluate_tokens(
    parameters: Parameters,
    tokens: Int32[np.ndarray, "N T1"],
    model: ModelConfig,
    batch_documents: int,
    policy: DensePolicy = "fp32",
) -> TokenEvaluation:
    """Returns loss in nats and most likely next token of every position, and counts.

    Args:
        parameters: Parameters by name; they are read only.
        tokens: Documents of context + 1 tokens.
        model: Shape of the model.
        batch_documents: Documents of a batch, at least 1; up to `FIXED_ROWS` all sizes
            share one compiled program.
        policy: Precision of the block's matrix products.

    Returns:
        Losses (0 where the target is PAD), predictions, and valid targets a document.

    Raises:
        Refused: `targets_dtype`, `targets_shape` or `targets_range`.
    """
    check_documents(tokens, model.vocabulary_tokens, model.context_tokens)
    count, width = tokens.shape
    rows = max(FIXED_ROWS, batch_documents)
    found = TokenEvaluation(
        np.zeros((count, width - 1), dtype=np.float32),
        np.zeros((count, width - 1), dtype=np.int32),
        np.zeros(count, dtype=np.int32),
    )
    for start in range(0, count, batch_documents):
        chosen = np.arange(start, min(start + batch_documents, count), dtype=np.int32)
        batch = gather_batch(tokens, chosen, rows)
        result = _evaluate_batch(parameters, jnp.asarray(batch), model, policy)
        for kept, computed in zip(found, result, strict=True):
            kept[chosen] = np.asarray(computed)[: len(chosen)]
    return found


def sequential_sum(losses: np.ndarray) -> float:
    """Returns the float64 sum of losses, one after another in row order.

    One order, and no pairwise tricks, so that another tool can repeat every bit.
    """
    return (
        float(np.cumsum(losses.astype(np.float64).ravel())[-1]) if losses.size else 0.0
    )


def evaluate_split(
    parameters: Parameters,
    tokens: Int32[np.ndarray, "N T1"],
    model: ModelConfig,
    batch_documents: int = FIXED_ROWS,
) -> Evaluation:
    """Returns losses of documents under `fp32` and the sums over valid targets.

    Args:
        parameters: Parameters by name.
        tokens: Documents of context + 1 tokens.
        model: Shape of the model.
        batch_documents: Documents of a batch.
    """
    found = evaluate_tokens(parameters, tokens, model, batch_documents)
    is_target = tokens[:, 1:] != PAD
    return Evaluation(
        losses=found.losses,
        predictions=found.predictions,
        loss_sum_nats=sequential_sum(found.losses),
        valid_targets=int(found.valid_targets.sum()),
        correct_targets=int(((found.predictions == tokens[:, 1:]) & is_target).sum()),
    )
