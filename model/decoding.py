"""Next-token logits from a cache: the prompt at once, then one token at a time.

Both functions are built from the pieces of ``model.transformer`` and differ from the
full computation in one thing only: keys and values come back from storage. Nothing in
an unused slot, and no token beyond a row's length, can reach a logit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from model import transformer
from model.cache import Cache, require_room, restore, store, used_slots, write_slot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jaxtyping import Array, Bool, Float32, Int32, Shaped

    from model.config import ModelConfig, Policy
    from model.parameters import Parameters

Vectors = tuple[jax.Array, jax.Array]


def _read(
    codes: Shaped[Array, "B T H K"],
    scales: Float32[Array, "B T H"],
    used: Bool[Array, "B T"],
) -> Float32[Array, "B T H K"]:
    """Restored vectors, exactly zero in unused slots: 0 times NaN would be NaN."""
    return jnp.where(used[:, :, None, None], restore(codes, scales), jnp.float32(0))


def _stack(blocks: Sequence[tuple[jax.Array, ...]], length: jax.Array) -> Cache:
    keys, values, key_scales, value_scales = zip(*blocks, strict=True)
    return Cache(
        jnp.stack(keys),
        jnp.stack(values),
        jnp.stack(key_scales),
        jnp.stack(value_scales),
        length,
    )


def prefill_with_vectors(
    parameters: Parameters,
    tokens: Int32[Array, "B T"],
    length: Int32[Array, " B"],
    model: ModelConfig,
    policy: Policy,
) -> tuple[Float32[Array, "B V"], Cache, Vectors]:
    """``prefill`` and the float32 keys and values [L, B, T, H, K] before storage."""
    rows, slots = tokens.shape
    used = used_slots(length, slots)
    # Whatever the caller left beyond the length becomes PAD, which nobody may attend.
    tokens = jnp.where(used, tokens, transformer.PAD)
    positions = jnp.broadcast_to(jnp.arange(slots, dtype=jnp.int32)[None], tokens.shape)
    mask = transformer.attention_mask(tokens)
    hidden = transformer.embed(parameters, tokens, positions)
    blocks, vectors = [], []
    for block in range(model.blocks):
        query, key, value = transformer.project_qkv(
            parameters, block, hidden, model, policy.dense
        )
        vectors.append((key, value))
        key, value = (jnp.where(used[:, :, None, None], x, 0.0) for x in (key, value))
        keys, key_scales = store(key, policy.cache)
        values, value_scales = store(value, policy.cache)
        blocks.append((keys, values, key_scales, value_scales))
        attended, _ = transformer.attend(
            query, restore(keys, key_scales), restore(values, value_scales), mask
        )
        hidden = transformer.finish_block(
            parameters, block, hidden, attended, model, policy.dense
        )
    last = hidden[jnp.arange(rows), length - 1][:, None]
    logits = transformer.project_logits(parameters, last, model)[:, 0]
    raw_keys, raw_values = zip(*vectors, strict=True)
    return logits, _stack(blocks, length), (jnp.stack(raw_keys), jnp.stack(raw_values))


def prefill(
    parameters: Parameters,
    tokens: Int32[Array, "B T"],
    length: Int32[Array, " B"],
    model: ModelConfig,
    policy: Policy,
) -> tuple[Float32[Array, "B V"], Cache]:
    """Logits after each row's last token, and a cache that holds its tokens.

    Args:
        parameters: Parameters by name, float32.
        tokens: int32 [B, T], T the context; entries at and beyond ``length`` are
            ignored, whatever they are.
        length: int32 [B], valid tokens per row, 1 to T; rows may differ.
        model: Shape of the model.
        policy: Precision of the matrix products and of the cache.

    Returns:
        Logits, float32 [B, V], and the cache.
    """
    return prefill_with_vectors(parameters, tokens, length, model, policy)[:2]


def decode_with_vectors(
    parameters: Parameters,
    token: Int32[Array, " B"],
    cache: Cache,
    model: ModelConfig,
    policy: Policy,
) -> tuple[Float32[Array, "B V"], Cache, Vectors]:
    """``decode`` and the appended float32 key and value [L, B, H, K] before storage."""
    length = cache.length
    used = used_slots(length + 1, cache.keys.shape[2])
    hidden = transformer.embed(parameters, token[:, None], length[:, None])
    blocks, vectors = [], []
    for block in range(model.blocks):
        query, key, value = transformer.project_qkv(
            parameters, block, hidden, model, policy.dense
        )
        vectors.append((key[:, 0], value[:, 0]))
        new_key, new_key_scale = store(key[:, 0], policy.cache)
        new_value, new_value_scale = store(value[:, 0], policy.cache)
        keys = write_slot(cache.keys[block], new_key, length)
        values = write_slot(cache.values[block], new_value, length)
        key_scales = write_slot(cache.key_scales[block], new_key_scale, length)
        value_scales = write_slot(cache.value_scales[block], new_value_scale, length)
        blocks.append((keys, values, key_scales, value_scales))
        attended, _ = transformer.attend(
            query,
            _read(keys, key_scales, used),
            _read(values, value_scales, used),
            used[:, None, None, :],
        )
        hidden = transformer.finish_block(
            parameters, block, hidden, attended, model, policy.dense
        )
    logits = transformer.project_logits(parameters, hidden, model)[:, 0]
    raw_keys, raw_values = zip(*vectors, strict=True)
    vectors_seen = (jnp.stack(raw_keys), jnp.stack(raw_values))
    return logits, _stack(blocks, length + 1), vectors_seen


def decode(
    parameters: Parameters,
    token: Int32[Array, " B"],
    cache: Cache,
    model: ModelConfig,
    policy: Policy,
) -> tuple[Float32[Array, "B V"], Cache]:
    """Logits after one more token per row, and the cache with that token appended.

    Call it through ``append`` unless every row is known to have room.

    Args:
        parameters: Parameters by name, float32.
        token: int32 [B], the appended token of each row.
        cache: Cache whose lengths are 1 to T - 1; rows may differ.
        model: Shape of the model.
        policy: Precision of the matrix products and of the cache.

    Returns:
        Logits, float32 [B, V], and the new cache; earlier entries keep their bits.
    """
    return decode_with_vectors(parameters, token, cache, model, policy)[:2]


@partial(jax.jit, static_argnames=("model", "policy"))
def jitted_prefill(
    parameters: Parameters,
    tokens: jax.Array,
    length: jax.Array,
    model: ModelConfig,
    policy: Policy,
) -> tuple[jax.Array, Cache, Vectors]:
    """Compiled ``prefill_with_vectors``."""
    return prefill_with_vectors(parameters, tokens, length, model, policy)


@partial(jax.jit, static_argnames=("model", "policy"))
def jitted_decode(
    parameters: Parameters,
    token: jax.Array,
    cache: Cache,
    model: ModelConfig,
    policy: Policy,
) -> tuple[jax.Array, Cache, Vectors]:
    """Compiled ``decode_with_vectors``; it does not know whether there is room."""
    return decode_with_vectors(parameters, token, cache, model, policy)


def append(
    decode_function: Callable[..., tuple[jax.Array, Cache, Vectors]],
    parameters: Parameters,
    token: Int32[Array, " B"],
    cache: Cache,
    model: ModelConfig,
    policy: Policy,
) -> tuple[jax.Array, Cache, Vectors]:
    """``decode_function`` after making sure that every row has a free slot.

    Raises:
        Refused: cache_full; the given cache is unchanged.
    """
    require_room(cache)
    return decode_function(parameters, token, cache, model, policy)
