"""Claims 3.1 and 3.3 where rows of one batch are full and others are not.

The host refuses an append as soon as one row is full, and names it. What the compiled
program would do beyond that is measured too: a full row has no slot, so its bytes stay,
and the rows beside it get what they would get alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from model.cache import Cache
from model.checks import rows
from model.checks.cache import CachedModel, changed_bytes, mixed_lengths, recompute
from model.config import ModelConfig, Policy
from model.decoding import append
from model.parameters import Parameters
from model.refusal import ReasonCode

if TYPE_CHECKING:
    from jaxtyping import Int32

# Every row of a batch is refused alike; more of them would show nothing new.
CHECKED_ROWS = 12


def check_full_rows(
    system: CachedModel,
    parameters: Parameters,
    tokens: Int32[np.ndarray, "B T"],
    model: ModelConfig,
    policy: Policy,
) -> tuple[list[rows.Row], list[rows.Row]]:
    """One full row after another among rows that have room.

    Args:
        system: Functions under check.
        parameters: Parameters by name.
        tokens: int32 [B, T] without PAD.
        model: Shape of the model.
        policy: Precision under check.

    Returns:
        Rows of ``refusals`` and of ``measurements``.
    """
    refused, changed, unnamed = [], 0, []
    for row in range(min(len(tokens), CHECKED_ROWS)):
        lengths = mixed_lengths(len(tokens), model.context_tokens - 1)
        lengths[row] = model.context_tokens
        _, cache, _ = system.prefill(
            parameters, jnp.asarray(tokens), jnp.asarray(lengths), model, policy
        )
        before = jax.tree.map(np.array, cache)
        case = f"{policy.name}/row-{row:02d}"
        found = _refused_append(system, parameters, tokens, cache, model, policy, case)
        refused.append(found)
        changed += changed_bytes(before, cache, np.full_like(lengths, tokens.shape[1]))
        if f"row {row} " not in found["message"]:
            unnamed.append(case)
    name = policy.name
    return refused, [
        rows.count(
            "3.3", "full_rows_not_named", name, len(unnamed), "rows", ",".join(unnamed)
        ),
        rows.count(
            "3.3", "cache_bytes_changed_beside_full_row", name, changed, "bytes"
        ),
        *_beyond_capacity(system, parameters, tokens, model, policy),
    ]


def _refused_append(
    system: CachedModel,
    parameters: Parameters,
    tokens: np.ndarray,
    cache: Cache,
    model: ModelConfig,
    policy: Policy,
    case: str,
) -> rows.Row:
    token = jnp.asarray(tokens[:, 0])
    return rows.refusal(
        "3.3",
        "append_beside_full_row",
        case,
        ReasonCode.CACHE_FULL,
        lambda: append(system.decode, parameters, token, cache, model, policy),
    )


def _beyond_capacity(
    system: CachedModel,
    parameters: Parameters,
    tokens: np.ndarray,
    model: ModelConfig,
    policy: Policy,
) -> list[rows.Row]:
    """What the compiled append does when the host does not refuse: every other row."""
    if len(tokens) == 1:
        # A row with room has to stand beside the full one, or nothing is compared.
        tokens = np.repeat(tokens, 2, axis=0)
    lengths = mixed_lengths(len(tokens), model.context_tokens - 1)
    lengths[::2] = model.context_tokens
    is_full = lengths == model.context_tokens
    _, before, _ = system.prefill(
        parameters, jnp.asarray(tokens), jnp.asarray(lengths), model, policy
    )
    following = tokens[np.arange(len(tokens)), np.where(is_full, 0, lengths)]
    # A full row gets its first token again: its last one would leave the same bytes.
    token = following.astype(np.int32)
    logits, after, _ = system.decode(
        parameters, jnp.asarray(token), before, model, policy
    )
    kept = np.where(is_full, model.context_tokens, 0)
    overwritten = changed_bytes(before, after, kept)
    expected, _ = recompute(parameters, tokens, after, model, policy)
    apart = np.abs(np.asarray(logits) - np.asarray(expected))[~is_full]
    name, full = policy.name, int(is_full.sum())
    return [
        rows.count(
            "3.3",
            "bytes_changed_of_full_rows",
            name,
            overwritten,
            "bytes",
            f"{full} of {len(tokens)} rows are full",
        ),
        rows.real(
            "3.1",
            "largest_mechanics_error_beside_full_rows",
            name,
            float(apart.max()),
            "logits",
        ),
    ]
