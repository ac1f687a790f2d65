"""Faults of the attention block: who may see whom, and with which weight."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from model.faults import Fault
from model.tokenizer import PAD

GROUP = "attention"
SEEN_BY = ("evaluate_heldout", "quantize_cache")


def _mask_leaks_one(original: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def attention_mask(tokens: jax.Array) -> jax.Array:
        time = tokens.shape[1]
        is_earlier = jnp.tril(jnp.ones((time, time), dtype=bool), k=1)
        return is_earlier[None, None] & (tokens != PAD)[:, None, None, :]

    return attention_mask


FAULTS = (
    Fault(
        name="causal-mask-leaks-one",
        group=GROUP,
        summary="Each position attends to the next one too: tril(k=1) for tril(k=0).",
        source="huggingface/transformers#46634",
        claim="1.8",
        stages=SEEN_BY,
        replaces="model.transformer.attention_mask",
        replacement=_mask_leaks_one,
    ),
)
