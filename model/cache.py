"""The key/value cache: what is kept of earlier tokens, and in which precision.

A cached decode must give what a full causal recomputation gives. That can only be
checked when the stored bits are defined, so the rule of every policy stands here in
one place: prefill and decode write through ``store``, attention reads through
``restore``, and the full recomputation sends its keys and values through
``round_trip``. An append at capacity is refused on the host; the compiled program
itself could only clamp the slot and overwrite the newest entry in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from model.refusal import ReasonCode, Refused

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int, Shaped

    from model.config import ModelConfig

STORAGE_DTYPES = {"fp32": jnp.float32, "bf16": jnp.bfloat16, "int8": jnp.int8}

LARGEST_CODE = 127
# A product, not a division: XLA rewrites a division by 127 into this product and
# NumPy does not, so only the product has the same bits in both places.
CODE_STEP = np.float32(1.0 / LARGEST_CODE)
# A zero vector needs a positive scale, or 0/0 makes NaN codes that cast to 0 and hide
# it. Far above the subnormal numbers, far below any vector that carries information.
SMALLEST_SCALE = np.float32(2.0**-100)


class Cache(NamedTuple):
    """Keys and values of the tokens seen so far, per block, row, slot and head.

    Attributes:
        keys: storage dtype [L, B, T, H, K]; slots at and beyond ``length`` are unused.
        values: storage dtype [L, B, T, H, K].
        key_scales: float32 [L, B, T, H]; 1 where the storage needs no scale.
        value_scales: float32 [L, B, T, H].
        length: int32 [B], tokens held per row, 0 to T.
    """

    keys: Shaped[Array, "L B T H K"]
    values: Shaped[Array, "L B T H K"]
    key_scales: Float[Array, "L B T H"]
    value_scales: Float[Array, "L B T H"]
    length: Int[Array, "B"]


def store(
    vectors: Float[Array, "... K"], cache_policy: str
) -> tuple[Shaped[Array, "... K"], Float[Array, "..."]]:
    """Codes and scales that keep the vectors under a cache policy.

    Args:
        vectors: float32 [..., K], one vector a token and head.
        cache_policy: "fp32", "bf16" or "int8".

    Returns:
        Codes in the storage dtype [..., K], and float32 scales [...]. For "int8" the
        scale of a vector is max|x| * float32(1/127) with a positive floor, the code
        round_half_even(x * (1/scale)) within +-127; else every scale is 1.

    Reference: model/reference/cache.py
    """
    if cache_policy != "int8":
        # The cast is the policy: bfloat16 rounds to 8 bits of precision, half to even.
        codes = vectors.astype(STORAGE_DTYPES[cache_policy])
        return codes, jnp.ones(vectors.shape[:-1], jnp.float32)
    largest = jnp.max(jnp.abs(vectors), axis=-1)
    scales = jnp.maximum(largest * CODE_STEP, SMALLEST_SCALE)
    steps = jnp.round(vectors * (jnp.float32(1) / scales)[..., None])
    # The clip comes before the cast, which would wrap 128 to -128.
    codes = jnp.clip(steps, -LARGEST_CODE, LARGEST_CODE).astype(jnp.int8)
    return codes, scales


def restore(
    codes: Shaped[Array, "... K"], scales: Float[Array, "..."]
) -> Float[Array, "... K"]:
    """Float32 vectors [..., K] that the stored codes and scales stand for."""
    # Attention scores and sums stay in float32 under every cache policy.
    return codes.astype(jnp.float32) * scales[..., None]


def round_trip(
    vectors: Float[Array, "... K"], cache_policy: str
) -> Float[Array, "... K"]:
    """Float32 vectors as attention reads them back from storage.

    This is the ``stored`` argument of ``transformer.logits``: with it the full
    recomputation stands under the same cache policy without knowing this module.
    """
    return restore(*store(vectors, cache_policy))


def empty_cache(model: ModelConfig, rows: int, cache_policy: str) -> Cache:
    """A cache of ``rows`` rows that holds no token; its unused slots are zero."""
    head_width = model.width // model.heads
    shape = (model.blocks, rows, model.context_tokens, model.heads, head_width)
    codes, scales = store(jnp.zeros(shape, jnp.float32), cache_policy)
    return Cache(codes, codes, scales, scales, jnp.zeros((rows,), jnp.int32))


def write_slot(
    stored: Shaped[Array, "B T ..."],
    new: Shaped[Array, "B ..."],
    length: Int[Array, "B"],
) -> Shaped[Array, "B T ..."]:
    """The stored array with each row's ``new`` entry in slot ``length`` of that row.

    All other slots keep their bits. A row whose length is T has no such slot and stays
    as it is, where ``dynamic_update_slice`` would clamp and overwrite the last one.

    Args:
        stored: [B, T, ...] codes or scales of one block.
        new: [B, ...] the entry of the appended token, same dtype.
        length: int32 [B], tokens held before the append.
    """
    rows, slots = stored.shape[:2]
    is_slot = jnp.arange(slots)[None, :] == length[:, None]
    is_slot = is_slot.reshape(rows, slots, *[1] * (stored.ndim - 2))
    return jnp.where(is_slot, new[:, None], stored)


def used_slots(length: Int[Array, "B"], slots: int) -> Bool[Array, "B T"]:
    """True where a slot holds a token: [B, T] from lengths [B]."""
    return jnp.arange(slots)[None, :] < length[:, None]


def require_room(cache: Cache) -> None:
    """Raise unless every row has a free slot; reads the lengths on the host.

    Raises:
        Refused: cache_full, naming the first full row; nothing was written.
    """
    lengths = np.asarray(cache.length)
    capacity = cache.keys.shape[2]
    full = np.flatnonzero(lengths >= capacity)
    if full.size:
        row = int(full[0])
        raise Refused(
            ReasonCode.CACHE_FULL,
            f"append refused: row {row} of the cache holds {int(lengths[row])} tokens "
            f"and its capacity is {capacity}; start from a shorter prompt or build the "
            "model with a longer context",
        )


def cache_arrays(cache: Cache) -> dict[str, jax.Array]:
    """The arrays that are counted as cache storage, by name (lengths are not)."""
    named = cache._asdict()
    del named["length"]
    return named


def cache_bytes(cache: Cache) -> int:
    """Bytes of keys, values and scales, counted from the arrays."""
    return sum(array.nbytes for array in cache_arrays(cache).values())
