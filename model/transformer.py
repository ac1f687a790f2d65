"""The causal Transformer, as pure functions from parameters and tokens to logits.

Training, evaluation, cached decoding and export all call these pieces, so that a
mistake in one of them cannot hide in a second spelling of the block. Layout and
constants are GPT-2's: pre-LayerNorm, fused QKV, tanh GELU, final LayerNorm, and an
untied output head without bias.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from model.config import ModelConfig
from model.dense import DensePolicy, dense
from model.parameters import Parameters
from model.tokenizer import PAD

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float32, Int32, Key

HIGHEST = jax.lax.Precision.HIGHEST
# Far below any score, finite so that a row without any key gives 0 and not NaN.
MASKED_SCORE = -1e9

Stored = Callable[[jax.Array], jax.Array]


def normalize(
    parameters: Parameters, name: str, x: Float32[Array, "B T D"], epsilon: float
) -> Float32[Array, "B T D"]:
    """Returns LayerNorm(x): mean 0, biased variance 1 over D, then scale and shift."""
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(centered), axis=-1, keepdims=True)
    scaled = centered * jax.lax.rsqrt(variance + jnp.float32(epsilon))
    weight = jnp.broadcast_to(parameters[f"{name}.weight"], x.shape)
    return scaled * weight + jnp.broadcast_to(parameters[f"{name}.bias"], x.shape)


def drop(
    x: jax.Array, key: Key[Array, "..."] | None, place: int, rate: float
) -> jax.Array:
    """Returns x with a share `rate` of its entries 0 and the rest divided by 1 - rate.

    Args:
        x: Any shape, float32; documents first where each has a key.
        key: Key of this update, one key a document, or None for evaluation (x
            unchanged).
        place: Number of the place in the model; every place has its own stream.
        rate: Share dropped, 0 <= rate < 1.

    Returns:
        Same shape; its expectation is x.
    """
    if key is None or rate == 0.0:
        return x
    if key.ndim == 0:
        keep = _kept(key, place, 1.0 - rate, x.shape)
    else:
        # A document's mask then depends on no other document, nor on who computes it.
        keep = jax.vmap(lambda own: _kept(own, place, 1.0 - rate, x.shape[1:]))(key)
    return jnp.where(keep, x / jnp.float32(1.0 - rate), jnp.float32(0.0))


def _kept(
    key: Key[Array, ""], place: int, share: float, shape: tuple[int, ...]
) -> jax.Array:
    return jax.random.bernoulli(jax.random.fold_in(key, place), share, shape)


def attention_mask(tokens: Int32[Array, "B T"]) -> Bool[Array, "B 1 T T"]:
    """Returns which key (last axis) a query may see: own and earlier non-PAD keys."""
    time = tokens.shape[1]
    causal = jnp.tril(jnp.ones((time, time), dtype=bool))
    return causal[None, None] & (tokens != PAD)[:, None, None, :]


def embed(
    parameters: Parameters,
    tokens: Int32[Array, "B T"],
    positions: Int32[Array, "B T"],
) -> Float32[Array, "B T D"]:
    """Returns token plus position embedding.

    Args:
        parameters: Parameters by name.
        tokens: Ids, 0 <= id < V.
        positions: Positions, 0 <= position < context.

    Returns:
        Residual stream before the first block.
    """
    return parameters["wte.weight"][tokens] + parameters["wpe.weight"][positions]


def project_qkv(
    parameters: Parameters,
    block: int,
    hidden: Float32[Array, "B T D"],
    model: ModelConfig,
    policy: DensePolicy,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns query, key and value, each [B, T, H, K], of the normalised input.

    Args:
        parameters: Parameters by name.
        block: Number of the block.
        hidden: Residual stream before the block.
        model: Shape of the model.
        policy: Precision of the product.
    """
    name = f"h.{block}"
    normal = normalize(parameters, f"{name}.ln_1", hidden, model.layer_norm_epsilon)
    weight = parameters[f"{name}.attn.c_attn.weight"]
    fused = dense(normal, weight, parameters[f"{name}.attn.c_attn.bias"], policy)
    shape = (*hidden.shape[:2], model.heads, model.width // model.heads)
    query, key, value = jnp.split(fused, 3, axis=-1)
    return query.reshape(shape), key.reshape(shape), value.reshape(shape)


def attend(
    query: Float32[Array, "B Q H K"],
    key: Float32[Array, "B S H K"],
    value: Float32[Array, "B S H K"],
    mask: Bool[Array, "B 1 Q S"],
) -> tuple[Float32[Array, "B Q H K"], Float32[Array, "B H Q S"]]:
    """Returns softmax(query key / sqrt(K)) value and the weights.

    A masked weight is exactly 0, and a query without any key gets zeros. Both
    products stay float32 under every policy: the cache rounds K and V, not the sums.

    Args:
        query: Queries.
        key: Keys.
        value: Values; unused slots may hold any finite number.
        mask: True where the query may see the key.
    """
    scores = jnp.einsum("bqhk,bshk->bhqs", query, key, precision=HIGHEST)
    scores = scores * jnp.float32(query.shape[-1] ** -0.5)
    scores = jnp.where(mask, scores, jnp.float32(MASKED_SCORE))
    peak = jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True))
    raised = jnp.where(mask, jnp.exp(scores - peak), jnp.float32(0.0))
    total = jnp.sum(raised, axis=-1, keepdims=True)
    weights = raised / jnp.where(total > 0.0, total, jnp.float32(1.0))
    return jnp.einsum("bhqs,bshk->bqhk", weights, value, precision=HIGHEST), weights


def finish_block(
    parameters: Parameters,
    block: int,
    hidden: Float32[Array, "B T D"],
    attended: Float32[Array, "B T H K"],
    model: ModelConfig,
    policy: DensePolicy,
    dropout_key: Key[Array, ""] | None = None,
) -> Float32[Array, "B T D"]:
    """Returns the residual stream after attention projection and feed-forward.

    Args:
        parameters: Parameters by name.
        block: Number of the block.
        hidden: Residual stream before the block.
        attended: Result of `attend`.
        model: Shape of the model.
        policy: Precision of the three products.
        dropout_key: Key of this update, or None for evaluation.
    """
    name, rate = f"h.{block}", model.dropout_rate

    def linear(layer: str, x: jax.Array) -> jax.Array:
        weight = parameters[f"{name}.{layer}.weight"]
        return dense(x, weight, parameters[f"{name}.{layer}.bias"], policy)

    projected = linear("attn.c_proj", attended.reshape(hidden.shape))
    hidden = hidden + drop(projected, dropout_key, 1 + 2 * block, rate)
    normal = normalize(parameters, f"{name}.ln_2", hidden, model.layer_norm_epsilon)
    expanded = jax.nn.gelu(linear("mlp.c_fc", normal), approximate=True)
    projected = linear("mlp.c_proj", expanded)
    return hidden + drop(projected, dropout_key, 2 + 2 * block, rate)


def project_logits(
    parameters: Parameters, hidden: Float32[Array, "B T D"], model: ModelConfig
) -> Float32[Array, "B T V"]:
    """Returns logits of the final LayerNorm, float32 under every policy.

    The head stays float32 because its rounding goes straight into the ranking of
    tokens, while the block's products are what a policy is meant to make cheap.
    """
    normal = normalize(parameters, "ln_f", hidden, model.layer_norm_epsilon)
    return dense(normal, parameters["lm_head.weight"].T, None, "fp32")


def _forward(
    parameters: Parameters,
    tokens: jax.Array,
    model: ModelConfig,
    policy: DensePolicy,
    stored: Stored | None,
    dropout_key: jax.Array | None,
) -> tuple[jax.Array, list[jax.Array]]:
    positions = jnp.broadcast_to(
        jnp.arange(tokens.shape[1], dtype=jnp.int32)[None], tokens.shape
    )
    mask, all_weights = attention_mask(tokens), []
    hidden = embed(parameters, tokens, positions)
    hidden = drop(hidden, dropout_key, 0, model.dropout_rate)
    for block in range(model.blocks):
        query, key, value = project_qkv(parameters, block, hidden, model, policy)
        if stored is not None:
            key, value = stored(key), stored(value)
        attended, weights = attend(query, key, value, mask)
        all_weights.append(weights)
        hidden = finish_block(
            parameters, block, hidden, attended, model, policy, dropout_key
        )
    return project_logits(parameters, hidden, model), all_weights


def logits(
    parameters: Parameters,
    tokens: Int32[Array, "B T"],
    model: ModelConfig,
    *,
    policy: DensePolicy = "fp32",
    stored: Stored | None = None,
    dropout_key: Key[Array, "..."] | None = None,
) -> Float32[Array, "B T V"]:
    """Returns next-token logits of every position, float32.

    Args:
        parameters: Parameters by name.
        tokens: Ids, right padded with PAD; T <= context. Logits at PAD positions are
            finite and mean nothing.
        model: Shape of the model.
        policy: Precision of the block's matrix products.
        stored: Maps keys and values [B, T, H, K] to what a cache would give back, or
            None to keep them as they are.
        dropout_key: Key of this update, one key a document, or None for evaluation.

    Reference: model/reference/transformer.py
    """
    return _forward(parameters, tokens, model, policy, stored, dropout_key)[0]


def attention_weights(
    parameters: Parameters, tokens: Int32[Array, "B T"], model: ModelConfig
) -> Float32[Array, "L B H T T"]:
    """Returns the attention weights of every block, float32, without dropout.

    Args:
        parameters: Parameters by name.
        tokens: Ids, right padded with PAD.
        model: Shape of the model.

    Reference: model/reference/transformer.py
    """
    return jnp.stack(_forward(parameters, tokens, model, "fp32", None, None)[1])
