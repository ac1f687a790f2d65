"""The training objective: cross-entropy over valid targets, as a sum and a count.

Sum and count stay apart until the very end, because every mistake of this kind known
from public bug reports averages averages, or lets a PAD target into the denominator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from model.refusal import ReasonCode, Refused
from model.tokenizer import PAD

if TYPE_CHECKING:
    from jaxtyping import Array, Float32, Int32


# What a mean loss is a mean over; another policy gives a number of another kind.
MASK_POLICY = "bytes and EOS count, PAD never"


def token_losses(
    logits: Float32[Array, "B T V"], targets: Int32[Array, "B T"]
) -> Float32[Array, "B T"]:
    """Returns -log p(target) in nats at every position, exactly 0 at PAD targets.

    Args:
        logits: Next-token logits; position t is read against target t, the shift is
            made by who cuts inputs and targets out of a document.
        targets: Ids, 0 <= id < V; PAD is no target.

    Raises:
        Refused: `targets_dtype` or `targets_shape`, while a program is traced.

    Reference: model/reference/objective.py
    """
    check_form(targets, logits.shape[:-1])
    log_probabilities = jax.nn.log_softmax(logits, axis=-1)
    chosen = jnp.take_along_axis(log_probabilities, targets[..., None], axis=-1)
    return jnp.where(targets != PAD, -chosen[..., 0], jnp.float32(0.0))


def loss_sum_and_count(
    logits: Float32[Array, "B T V"], targets: Int32[Array, "B T"]
) -> tuple[Float32[Array, ""], Int32[Array, ""]]:
    """Returns the summed loss in nats and the number of valid targets.

    Args:
        logits: Next-token logits.
        targets: Ids; PAD is no target, EOS is one.

    Reference: model/reference/objective.py
    """
    count = jnp.sum((targets != PAD).astype(jnp.int32))
    return jnp.sum(token_losses(logits, targets)), count


def check_form(targets: np.ndarray | jax.Array, shape: tuple[int, ...]) -> None:
    """Refuses targets of another dtype or shape, which a traced array has too.

    Args:
        targets: What is about to be compared with logits of `shape` + (V,).
        shape: Batch and time of the logits.

    Raises:
        Refused: `targets_dtype` or `targets_shape`.
    """
    _refuse(_wrong_form(targets, shape))


def check_documents(
    tokens: Int32[np.ndarray, "N T1"], vocabulary_tokens: int, context_tokens: int
) -> None:
    """Holds the targets of whole documents against what a model can be given.

    Args:
        tokens: Documents of a training or an evaluation, before any batch is made.
        vocabulary_tokens: Number of ids that a target may have.
        context_tokens: Targets of a document.

    Raises:
        Refused: As `check_targets`.
    """
    shape = (len(tokens), context_tokens)
    check_targets(tokens[..., 1:], shape, vocabulary_tokens)


def check_targets(
    targets: np.ndarray, shape: tuple[int, ...], vocabulary_tokens: int
) -> None:
    """Holds targets against shape, dtype and range, before any broadcast.

    Args:
        targets: What is about to be compared with logits of `shape` + (V,).
        shape: Batch and time of the logits.
        vocabulary_tokens: V.

    Raises:
        Refused: `targets_dtype`, `targets_shape` or `targets_range`, the first that
            applies; text and fields name all of them, with the value found and the one
            allowed.
    """
    wrong = _wrong_form(targets, shape)
    # Other kinds than numbers have no order, and their type is refused already.
    if targets.size and targets.dtype.kind in "iuf":
        least, most = targets.min().item(), targets.max().item()
        if not 0 <= least <= most < vocabulary_tokens:
            wrong["range"] = ((least, most), f"0 to {vocabulary_tokens - 1}")
    _refuse(wrong)


def _wrong_form(
    targets: np.ndarray | jax.Array, shape: tuple[int, ...]
) -> dict[str, tuple[object, str]]:
    """Returns what is wrong with type and shape, which a traced array has too."""
    wrong: dict[str, tuple[object, str]] = {}
    if targets.dtype != np.int32:
        wrong["dtype"] = (str(targets.dtype), "'int32'")
    if targets.shape != shape:
        wrong["shape"] = (targets.shape, repr(shape))
    return wrong


def _refuse(wrong: dict[str, tuple[object, str]]) -> None:
    if not wrong:
        return
    told = ", ".join(
        f"{what} {found!r} where {allowed} is needed"
        for what, (found, allowed) in wrong.items()
    )
    raise Refused(
        ReasonCode(f"targets_{next(iter(wrong))}"),
        f"Targets have {told}; make them with the tokenizer of this model.",
        wrong,
    )
