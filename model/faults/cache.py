"""Faults of the key/value cache: slots, lengths, positions and the INT8 quantiser."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from model.faults import Fault

GROUP = "cache"
fault = partial(Fault, group=GROUP, stages=("quantize_cache",))

LARGEST_CODE = 127
SMALLEST_SCALE = 2.0**-100
Store = Callable[[jax.Array, str], tuple[jax.Array, jax.Array]]
Rounding = Callable[[jax.Array], jax.Array]


def _used_up_to(extra: int) -> Callable[[Any], Any]:
    """Returns what takes some slots more than the length for used."""

    def replacement(original: Callable[..., jax.Array]) -> Any:
        return lambda length, slots: original(length + jnp.int32(extra), slots)

    return replacement


def _written_at(slot: Callable[[jax.Array, int], jax.Array]) -> Callable[[Any], Any]:
    """Returns what appends to another slot than the first unused one."""

    def replacement(original: Callable[..., jax.Array]) -> Any:
        def write_slot(stored: jax.Array, new: jax.Array, length: Any) -> jax.Array:
            return original(stored, new, slot(length, stored.shape[1]))

        return write_slot

    return replacement


def _last_slot_at_most(length: jax.Array, slots: int) -> jax.Array:
    return jnp.minimum(length, jnp.int32(slots - 1))


def _capacity_unchecked(original: Callable[..., None]) -> Any:
    return lambda cache: None


def _position_ahead(original: Callable[..., jax.Array]) -> Any:
    def embed(parameters: Any, tokens: jax.Array, positions: jax.Array) -> jax.Array:
        # Only a decode has one token a row.
        ahead = jnp.int32(tokens.shape[1] == 1)
        return original(parameters, tokens, positions + ahead)

    return embed


def _rewritten(original: Callable[..., Any]) -> Any:
    def decode_with_vectors(*arguments: Any) -> Any:
        from model.cache import restore, store

        policy = arguments[-1].cache
        logits, cache, vectors = original(*arguments)
        keys, key_scales = store(restore(cache.keys, cache.key_scales), policy)
        again = cache._replace(keys=keys, key_scales=key_scales)
        return logits, again, vectors

    return decode_with_vectors


def _values_have_key_scales(original: Callable[..., Any]) -> Any:
    def stack(*arguments: Any) -> Any:
        cache = original(*arguments)
        return cache._replace(value_scales=cache.key_scales)

    return stack


def _last_slot_read(original: Callable[..., Any]) -> Any:
    def prefill_with_vectors(
        parameters: Any, tokens: jax.Array, length: jax.Array, *rest: Any
    ) -> Any:
        whole = jnp.full_like(length, tokens.shape[1])
        logits, _, _ = original(parameters, tokens, whole, *rest)
        _, cache, vectors = original(parameters, tokens, length, *rest)
        return logits, cache, vectors

    return prefill_with_vectors


def _upcast(original: Store) -> Store:
    def store(vectors: jax.Array, cache_policy: str) -> tuple[jax.Array, jax.Array]:
        codes, scales = original(vectors, cache_policy)
        return (codes.astype(jnp.float32) if cache_policy == "bf16" else codes), scales

    return store


def _half_read(original: Callable[..., jax.Array]) -> Any:
    def restore(codes: jax.Array, scales: jax.Array) -> jax.Array:
        vectors = original(codes, scales)
        return vectors.at[..., vectors.shape[-1] // 2 :].set(0.0)

    return restore


def _scales_not_counted(original: Callable[..., dict[str, jax.Array]]) -> Any:
    def cache_arrays(cache: Any) -> dict[str, jax.Array]:
        named = original(cache)
        return {name: x for name, x in named.items() if not name.endswith("scales")}

    return cache_arrays


def int8_store(
    scale: Callable[[jax.Array], jax.Array],
    rounding: Rounding = jnp.round,
    *,
    is_clipped: bool = True,
) -> Callable[[Store], Store]:
    """Returns a store whose INT8 codes are made in another way.

    Args:
        scale: Float32 vectors [..., K] to scales [...].
        rounding: Numbers to whole numbers.
        is_clipped: Whether codes are kept within +-127 before the cast.
    """

    def replacement(original: Store) -> Store:
        def store(vectors: jax.Array, cache_policy: str) -> tuple[jax.Array, jax.Array]:
            if cache_policy != "int8":
                return original(vectors, cache_policy)
            scales = scale(vectors)
            steps = rounding(vectors * (jnp.float32(1) / scales)[..., None])
            if is_clipped:
                steps = jnp.clip(steps, -LARGEST_CODE, LARGEST_CODE)
            # Through int32, whose cast keeps the low bits of what is too large.
            return steps.astype(jnp.int32).astype(jnp.int8), scales

        return store

    return replacement


def own_scale(vectors: jax.Array, codes: int = LARGEST_CODE) -> jax.Array:
    """Returns the scale of every vector: its largest entry is the largest code."""
    return _floored(jnp.max(jnp.abs(vectors), axis=-1), codes)


def _floored(largest: jax.Array, codes: int = LARGEST_CODE) -> jax.Array:
    return jnp.maximum(largest * jnp.float32(1.0 / codes), jnp.float32(SMALLEST_SCALE))


def _shared_scale(vectors: jax.Array) -> jax.Array:
    largest = jnp.max(jnp.abs(vectors), axis=(-2, -1), keepdims=True)
    return _floored(jnp.broadcast_to(largest[..., 0], vectors.shape[:-1]))


def _rounded_scale(vectors: jax.Array) -> jax.Array:
    return own_scale(vectors).astype(jnp.bfloat16).astype(jnp.float32)


def _unfloored(vectors: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(vectors), axis=-1) * jnp.float32(1.0 / LARGEST_CODE)


def _scale_of_channels(original: Store) -> Store:
    def store(vectors: jax.Array, cache_policy: str) -> tuple[jax.Array, jax.Array]:
        if cache_policy == "int8":
            largest = jnp.max(jnp.abs(vectors), axis=-2, keepdims=True)
            steps = _floored(largest)
            vectors = jnp.round(vectors * (jnp.float32(1) / steps)) * steps
        return original(vectors, cache_policy)

    return store


def away_from_zero(x: jax.Array) -> jax.Array:
    """Returns whole numbers, ties to the one further from zero."""
    return jnp.sign(x) * jnp.floor(jnp.abs(x) + jnp.float32(0.5))


FAULTS = (
    fault(
        name="cache-length-one-too-long",
        summary="Attention reads one slot beyond the tokens that are there.",
        source="microsoft/onnxruntime-genai#2354",
        claim="3.1",
        replaces="model.cache.used_slots",
        replacement=_used_up_to(1),
    ),
    fault(
        name="cache-length-one-too-short",
        summary="Attention does not read the newest slot.",
        source="microsoft/onnxruntime-genai#2354",
        claim="3.1",
        replaces="model.cache.used_slots",
        replacement=_used_up_to(-1),
    ),
    fault(
        name="cache-write-slot-off-by-one",
        summary="A token is written one slot too far.",
        source="tenstorrent/tt-inference-server#4557",
        claim="3.1",
        replaces="model.cache.write_slot",
        replacement=_written_at(lambda length, slots: length + jnp.int32(1)),
    ),
    fault(
        name="decode-position-off-by-one",
        summary="A decoded token has the position of the next one.",
        source="tenstorrent/tt-inference-server#4557",
        claim="3.1",
        replaces="model.transformer.embed",
        replacement=_position_ahead,
    ),
    fault(
        name="cache-overflow-clamped",
        summary="An append to a full row overwrites its last slot.",
        source="jax-ml/jax#34257",
        claim="3.3",
        replaces="model.cache.write_slot",
        replacement=_written_at(_last_slot_at_most),
    ),
    fault(
        name="cache-overflow-wraps",
        summary="An append to a full row overwrites its first slot.",
        source="ollama/ollama#14912",
        claim="3.3",
        replaces="model.cache.write_slot",
        replacement=_written_at(lambda length, slots: length % jnp.int32(slots)),
    ),
    fault(
        name="cache-capacity-unchecked",
        summary="Nobody asks whether there is room before an append.",
        source="ml-explore/mlx-lm#950",
        claim="3.3",
        replaces="model.cache.require_room",
        replacement=_capacity_unchecked,
    ),
    fault(
        name="prefix-entries-rewritten",
        summary="Every append reads all keys and stores them anew.",
        source="none known; the fixture's own rule",
        claim="3.2",
        replaces="model.decoding.decode_with_vectors",
        replacement=_rewritten,
    ),
    fault(
        name="prefill-ignores-valid-length",
        summary="Logits after a prompt are those of the last padded slot.",
        source="tenstorrent/tt-forge-onnx#422",
        claim="3.1",
        replaces="model.decoding.prefill_with_vectors",
        replacement=_last_slot_read,
    ),
    fault(
        name="cache-dtype-upcast",
        summary="What the policy stores in bfloat16 lies there as float32.",
        source="none known; the fixture's own rule",
        claim="3.4",
        replaces="model.cache.store",
        replacement=_upcast,
    ),
    fault(
        name="scale-bytes-not-counted",
        summary="The bytes of a cache are counted without its scales.",
        source="ovg-project/kvcached#424",
        claim="3.4",
        replaces="model.cache.cache_arrays",
        replacement=_scales_not_counted,
    ),
    fault(
        name="half-of-each-vector-read-as-zero",
        summary="The second half of every stored key and value is read back as zeros.",
        source="InfiniTensor/InfiniLM#553",
        claim="3.5",
        replaces="model.cache.restore",
        replacement=_half_read,
    ),
    fault(
        name="int8-scale-shared-across-heads",
        summary="All heads of a token have one scale.",
        source="vllm-project/vllm#49716",
        claim="3.5",
        replaces="model.cache.store",
        replacement=int8_store(_shared_scale),
    ),
    fault(
        name="int8-scale-per-channel",
        summary="Each channel is rounded to steps of its own over the heads.",
        source="sgl-project/sglang#20705",
        claim="3.5",
        replaces="model.cache.store",
        replacement=_scale_of_channels,
    ),
    fault(
        name="int8-value-uses-key-scale",
        summary="Values are restored by the scales of the keys.",
        source="vllm-project/vllm#42580",
        claim="3.5",
        replaces="model.decoding._stack",
        replacement=_values_have_key_scales,
    ),
    fault(
        name="int8-absmax-over-128-wraps",
        summary="The largest entry is 128 steps, and its code wraps to -128.",
        source="microsoft/onnxruntime#10170",
        claim="3.5",
        replaces="model.cache.store",
        replacement=int8_store(partial(own_scale, codes=128), is_clipped=False),
    ),
    fault(
        name="int8-absmax-over-128-clipped",
        summary="The largest entry is 128 steps and is clipped to 127.",
        source="qualcomm/aimet#276",
        claim="3.5",
        replaces="model.cache.store",
        replacement=int8_store(partial(own_scale, codes=128)),
    ),
    fault(
        name="int8-truncates",
        summary="Codes are cut off towards zero instead of rounded.",
        source="vllm-project/vllm#7270",
        claim="3.5",
        replaces="model.cache.store",
        replacement=int8_store(own_scale, jnp.trunc),
    ),
    fault(
        name="int8-scale-stored-bf16",
        summary="Scales are rounded to bfloat16.",
        source="Comfy-Org/comfy-kitchen#60",
        claim="3.5",
        replaces="model.cache.store",
        replacement=int8_store(_rounded_scale),
    ),
    fault(
        name="int8-zero-vector",
        summary="A vector of zeros has the scale 0, and 0/0 hides in a code of 0.",
        source="huggingface/kernels-community#681",
        claim="3.5",
        replaces="model.cache.store",
        replacement=int8_store(_unfloored),
    ),
    fault(
        name="int8-ties-away-from-zero",
        summary="Ties are rounded away from zero, where the rule says to even.",
        source="none known; the fixture's own rule",
        claim="3.5",
        replaces="model.cache.store",
        replacement=int8_store(own_scale, away_from_zero),
    ),
)
