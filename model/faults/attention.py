"""Faults of the block: who may see whom, with which weight, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from model.faults import INITIALIZATIONS, Fault
from model.tokenizer import PAD

GROUP = "attention"
fault = partial(
    Fault,
    group=GROUP,
    stages=("evaluate_heldout",),
    left_out=(INITIALIZATIONS,),
)

HIGHEST = jax.lax.Precision.HIGHEST
Mask = Callable[[jax.Array], jax.Array]
Attend = Callable[..., tuple[jax.Array, jax.Array]]


def _mask_leaks_one(original: Mask) -> Mask:
    def attention_mask(tokens: jax.Array) -> jax.Array:
        time = tokens.shape[1]
        is_earlier = jnp.tril(jnp.ones((time, time), dtype=bool), k=1)
        return is_earlier[None, None] & (tokens != PAD)[:, None, None, :]

    return attention_mask


def _padding_attended(original: Mask) -> Mask:
    # A mask for other tokens, of which none is padding.
    return lambda tokens: original(jnp.where(tokens == PAD, PAD + 1, tokens))


def _window_one_short(original: Mask) -> Mask:
    def attention_mask(tokens: jax.Array) -> jax.Array:
        time = tokens.shape[1]
        is_near = jnp.triu(jnp.ones((time, time), dtype=bool), k=2 - time)
        return original(tokens) & is_near[None, None]

    return attention_mask


def softmax_attend(fill: float, axis: int = -1) -> Callable[[Attend], Attend]:
    """Returns an attention that adds a number to hidden scores before its softmax.

    Args:
        fill: What hidden scores are set to, or lowered by.
        axis: Axis of scores [B, H, Q, S] over which weights add up to 1.
    """

    def replacement(original: Attend) -> Attend:
        def attend(
            query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array
        ) -> tuple[jax.Array, jax.Array]:
            scores = jnp.einsum("bqhk,bshk->bhqs", query, key, precision=HIGHEST)
            scores = scores * jnp.float32(query.shape[-1] ** -0.5)
            lowered = scores + jnp.where(mask, jnp.float32(0), jnp.float32(fill))
            weights = jax.nn.softmax(lowered, axis=axis)
            attended = jnp.einsum("bhqs,bshk->bqhk", weights, value, precision=HIGHEST)
            return attended, weights

        return attend

    return replacement


def _scaled_by_width(original: Attend) -> Attend:
    def attend(query: jax.Array, *rest: jax.Array) -> tuple[jax.Array, jax.Array]:
        return original(query * jnp.float32(query.shape[-2] ** -0.5), *rest)

    return attend


def _values_without_gradient(original: Callable[..., Any]) -> Any:
    def project_qkv(*arguments: Any) -> tuple[jax.Array, ...]:
        query, key, value = original(*arguments)
        return query, key, jax.lax.stop_gradient(value)

    return project_qkv


def _heads_interleaved(original: Callable[..., jax.Array]) -> Any:
    def finish_block(
        parameters: Any, block: int, hidden: Any, attended: jax.Array, *rest: Any
    ) -> jax.Array:
        swapped = jnp.swapaxes(attended, 2, 3)
        return original(parameters, block, hidden, swapped, *rest)

    return finish_block


def _exact_gelu(original: Callable[..., jax.Array]) -> Any:
    def finish_block(*arguments: Any) -> jax.Array:
        approximate = jax.nn.gelu
        jax.nn.gelu = partial(_erf_gelu, approximate)
        try:
            return original(*arguments)
        finally:
            jax.nn.gelu = approximate

    return finish_block


def _erf_gelu(gelu: Any, x: jax.Array, *, approximate: bool) -> jax.Array:
    return gelu(x, approximate=False)


def _other_epsilon(original: Callable[..., jax.Array]) -> Any:
    return lambda parameters, name, x, epsilon: original(parameters, name, x, 1e-6)


def _unbiased_variance(original: Callable[..., jax.Array]) -> Any:
    def normalize(
        parameters: Any, name: str, x: jax.Array, epsilon: float
    ) -> jax.Array:
        shrunk = jnp.sqrt(jnp.float32((x.shape[-1] - 1) / x.shape[-1]))
        bias = jnp.broadcast_to(parameters[f"{name}.bias"], x.shape)
        return (original(parameters, name, x, epsilon) - bias) * shrunk + bias

    return normalize


def _head_is_tied(original: Callable[..., jax.Array]) -> Any:
    def project_logits(parameters: Any, *rest: Any) -> jax.Array:
        tied = {**parameters, "lm_head.weight": parameters["wte.weight"]}
        return original(tied, *rest)

    return project_logits


def _half_as_wide(original: Callable[..., Any]) -> Any:
    return lambda model: original(
        replace(model, feed_forward_width=model.feed_forward_width // 2)
    )


FAULTS = (
    fault(
        name="causal-mask-leaks-one",
        summary="Each position attends to the next one too: tril(k=1) for tril(k=0).",
        source="huggingface/transformers#46634",
        claim="1.8",
        stages=("evaluate_heldout", "quantize_cache"),
        replaces="model.transformer.attention_mask",
        replacement=_mask_leaks_one,
    ),
    fault(
        name="additive-mask-too-small",
        summary="Hidden scores are lowered by 10, so that hidden keys keep a weight.",
        source="pytorch/pytorch#41508",
        claim="1.8",
        replaces="model.transformer.attend",
        replacement=softmax_attend(-10.0),
    ),
    fault(
        name="neg-inf-on-fully-padded-row",
        summary="Hidden scores are -inf: a document of padding has NaN for weights.",
        source="pytorch/pytorch#131060",
        claim="1.10",
        replaces="model.transformer.attend",
        replacement=softmax_attend(float("-inf")),
    ),
    fault(
        name="pad-keys-attended",
        summary="Queries attend to padding as to any other earlier key.",
        source="unslothai/unsloth#3699",
        claim="1.7",
        replaces="model.transformer.attention_mask",
        replacement=_padding_attended,
    ),
    fault(
        name="attention-scale-model-width",
        summary="Scores are divided by the root of the model's width, not the head's.",
        source="huggingface/transformers#29402",
        claim="1.7",
        replaces="model.transformer.attend",
        replacement=_scaled_by_width,
    ),
    fault(
        name="sliding-window-one-short",
        summary="The last position of a full context does not see the first.",
        source="huggingface/transformers#39408",
        claim="1.7",
        replaces="model.transformer.attention_mask",
        replacement=_window_one_short,
    ),
    fault(
        name="softmax-over-query-axis",
        summary="Weights add up to 1 over queries instead of keys.",
        source="none known; the fixture's own rule",
        claim="1.7",
        replaces="model.transformer.attend",
        replacement=softmax_attend(-1e9, axis=-2),
    ),
    fault(
        name="heads-merged-in-wrong-order",
        summary="Heads are merged entry by entry instead of one behind the other.",
        source="none known; the fixture's own rule",
        claim="1.9",
        replaces="model.transformer.finish_block",
        replacement=_heads_interleaved,
    ),
    fault(
        name="gradient-of-one-parameter-stopped",
        summary="No gradient flows back through the values of attention.",
        source="none known; the fixture's own rule",
        claim="1.10",
        replaces="model.transformer.project_qkv",
        replacement=_values_without_gradient,
    ),
    fault(
        name="gelu-variant-differs",
        summary="The feed-forward network has the exact GELU, not its tanh form.",
        source="google/gemma_pytorch#37",
        claim="1.9",
        replaces="model.transformer.finish_block",
        replacement=_exact_gelu,
    ),
    fault(
        name="layernorm-epsilon-differs",
        summary="LayerNorm adds 1e-6 to the variance instead of 1e-5.",
        source="kyutai-labs/pocket-tts#278",
        claim="1.9",
        replaces="model.transformer.normalize",
        replacement=_other_epsilon,
    ),
    fault(
        name="layernorm-variance-unbiased",
        summary="LayerNorm divides the squares by D - 1 instead of D.",
        source="thought of here, without a report",
        claim="1.9",
        replaces="model.transformer.normalize",
        replacement=_unbiased_variance,
    ),
    fault(
        name="output-head-tied",
        summary="The output head is the token embedding, not parameters of its own.",
        source="thought of here, without a report",
        claim="1.9",
        replaces="model.transformer.project_logits",
        replacement=_head_is_tied,
    ),
    fault(
        name="feed-forward-half-as-wide",
        summary="The feed-forward network has half the width that its settings say.",
        source="thought of here, without a report",
        claim="1.0",
        stages=("train_model",),
        replaces="model.parameters.parameter_table",
        replacement=_half_as_wide,
    ),
)
