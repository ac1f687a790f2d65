"""Does a cached decode compute what the full model computes, and only from its cache?

Cached logits are held against a full causal recomputation under the *same* policy:
what parts the two is a mistake in slots, positions, lengths or masks. What the policy
itself costs against float32 is another question (``model.checks.precision``).

A value that lies on the border between two codes may be rounded one way by one
program and the other way by the next, an honest step of up to 1/127. The
recomputation follows the cache over such ties, and only over them; they are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from model import transformer
from model.cache import Cache, cache_arrays, restore, store, used_slots
from model.checks import rows
from model.config import ModelConfig, Policy
from model.decoding import append, jitted_decode, jitted_prefill
from model.parameters import Parameters
from model.refusal import ReasonCode
from model.tokenizer import PAD

if TYPE_CHECKING:
    from jaxtyping import Array, Float32, Int32

# Float32 dense layers under each cache: the cache is then the only thing that rounds.
CACHE_POLICIES = tuple(
    Policy(name=cache, dense="fp32", cache=cache) for cache in ("fp32", "bf16", "int8")
)
# How near to the border between two codes a value must lie to count as a tie, as a
# share of their distance. Two programs part by about 1e-4 of an int8 step.
TIE_SHARE = 0.01
# Neighbouring codes part by at least 1/128 of their value, float32 noise by 1e-7.
SMALLEST_STEP_SHARE = 2.0**-10


class CachedModel(NamedTuple):
    """The two compiled functions under check, as in ``model.decoding``."""

    prefill: Callable[..., tuple[jax.Array, Cache, tuple[jax.Array, jax.Array]]] = (
        jitted_prefill
    )
    decode: Callable[..., tuple[jax.Array, Cache, tuple[jax.Array, jax.Array]]] = (
        jitted_decode
    )


@dataclass(frozen=True, kw_only=True)
class Append:
    """What one append found and left."""

    step: int
    """Number of the append, 1 for the first; 0 is the prefill."""
    token: np.ndarray
    """int32 [B], the appended tokens."""
    before: Cache | None
    """Cache before the append; None for the prefill."""
    after: Cache
    """Cache after it."""
    logits: np.ndarray
    """float32 [B, V]."""
    vectors: tuple[np.ndarray, np.ndarray]
    """Keys and values before storage, [L, B, T, H, K]; of an append, [L, B, H, K]."""


def fill_rows(tokens: Int32[np.ndarray, "N S"]) -> Int32[np.ndarray, "N T"]:
    """Inputs [N, T] in which each document repeats itself until the context is full.

    The checks visit every cache length, which is more than most documents have. The
    fill has no PAD, and EOS in places where training never shows it.
    """
    filled = np.array(tokens[:, :-1])
    for row, document in zip(filled, tokens, strict=True):
        own = document[1 : int(np.sum(document != PAD))]
        row[1:] = np.resize(own, len(row) - 1)
    return filled


def compared_lengths(context_tokens: int, wanted: int) -> tuple[int, ...]:
    """Cache lengths from 1 to the context: all of them (0), or evenly spaced."""
    count = min(wanted or context_tokens, context_tokens)
    return tuple(np.unique(np.linspace(1, context_tokens, count).round().astype(int)))


def walk(
    system: CachedModel,
    parameters: Parameters,
    tokens: Int32[np.ndarray, "B T"],
    lengths: Int32[np.ndarray, " B"],
    model: ModelConfig,
    policy: Policy,
) -> Iterator[Append]:
    """Yields the prefill of each row's first tokens, then every append until one row
    of the batch is full.
    """
    logits, cache, vectors = system.prefill(
        parameters, jnp.asarray(tokens), jnp.asarray(lengths), model, policy
    )
    nothing = np.zeros(0, np.int32)
    yield _append(0, nothing, None, cache, logits, vectors)
    for step in range(1, tokens.shape[1] - int(lengths.max()) + 1):
        token = tokens[np.arange(len(tokens)), np.asarray(cache.length)]
        before = cache
        logits, cache, vectors = append(
            system.decode, parameters, jnp.asarray(token), cache, model, policy
        )
        yield _append(step, token, before, cache, logits, vectors)


def _append(
    step: int,
    token: np.ndarray,
    before: Cache | None,
    after: Cache,
    logits: jax.Array,
    vectors: tuple[jax.Array, jax.Array],
) -> Append:
    return Append(
        step=step,
        token=token,
        before=before,
        after=after,
        logits=np.asarray(logits),
        vectors=(np.asarray(vectors[0]), np.asarray(vectors[1])),
    )


@partial(jax.jit, static_argnames=("model", "policy"))
def recompute(
    parameters: Parameters,
    tokens: Int32[Array, "B T"],
    cache: Cache,
    model: ModelConfig,
    policy: Policy,
) -> tuple[Float32[Array, "B V"], Int32[Array, ""]]:
    """Logits [B, V] of the full model over the cached tokens, and the ties followed."""
    followed = []
    # `transformer.logits` stores the key and then the value of each block in turn.
    held = iter(
        pair
        for block in range(model.blocks)
        for pair in (
            (cache.keys[block], cache.key_scales[block]),
            (cache.values[block], cache.value_scales[block]),
        )
    )
    used = used_slots(cache.length, tokens.shape[1])

    def stored(vectors: jax.Array) -> jax.Array:
        own = restore(*store(vectors, policy.cache))
        cached = restore(*next(held))
        apart = jnp.abs(own - cached)
        is_tie = jnp.abs(vectors - (own + cached) / 2) <= TIE_SHARE * apart
        is_tie = is_tie & (apart > SMALLEST_STEP_SHARE * jnp.abs(own))
        is_tie = is_tie & used[:, :, None, None]
        followed.append(jnp.sum(is_tie, dtype=jnp.int32))
        return jnp.where(is_tie, cached, own)

    seen = jnp.where(used, tokens, transformer.PAD)
    every = transformer.logits(
        parameters, seen, model, policy=policy.dense, stored=stored
    )
    last = every[jnp.arange(len(tokens)), cache.length - 1]
    return last, jnp.sum(jnp.stack(followed), dtype=jnp.int32)


def used_bytes(array: jax.Array, lengths: np.ndarray) -> list[bytes]:
    """The bytes of the used slots of one cache array, per row."""
    held = np.asarray(array)
    return [held[:, row, :length].tobytes() for row, length in enumerate(lengths)]


def differing_bytes(left: list[bytes], right: list[bytes]) -> int:
    """How many bytes two equally long lists of byte strings differ in.

    Where one string is longer, NumPy would stretch a single byte over all of the other,
    so what has no counterpart counts as different.
    """
    differing = 0
    for a, b in zip(left, right, strict=True):
        common = min(len(a), len(b))
        one, other = (np.frombuffer(each[:common], np.uint8) for each in (a, b))
        differing += int(np.sum(one != other)) + max(len(a), len(b)) - common
    return differing


def changed_bytes(before: Cache, after: Cache, lengths: np.ndarray) -> int:
    """Bytes of the first ``lengths`` slots that differ between two caches."""
    return sum(
        differing_bytes(used_bytes(old, lengths), used_bytes(new, lengths))
        for old, new in zip(
            cache_arrays(before).values(), cache_arrays(after).values(), strict=True
        )
    )


def differing_logits(expected: ArrayLike, measured: ArrayLike) -> int:
    """How many bytes of logits differ; those of what is no number all do.

    Garbage that reaches both computations would make the same NaN of them.
    """
    one, other = (np.asarray(each) for each in (expected, measured))
    lost = int(np.sum(~np.isfinite(one))) * one.itemsize
    return max(lost, differing_bytes([one.tobytes()], [other.tobytes()]))


def with_garbage(cache: Cache) -> Cache:
    """The cache with NaN, or -128, in every unused slot and NaN in their scales."""
    used = used_slots(cache.length, cache.keys.shape[2])

    def spoil(array: jax.Array) -> jax.Array:
        is_used = used.reshape(1, *used.shape, *[1] * (array.ndim - 3))
        worst = -128 if array.dtype == jnp.int8 else jnp.nan
        return jnp.where(is_used, array, jnp.asarray(worst, array.dtype))

    spoiled = {name: spoil(array) for name, array in cache_arrays(cache).items()}
    return cache._replace(**spoiled)


def check_walk(
    system: CachedModel,
    parameters: Parameters,
    tokens: Int32[np.ndarray, "B T"],
    lengths: Int32[np.ndarray, " B"],
    model: ModelConfig,
    policy: Policy,
    compared: tuple[int, ...],
    suffix: str = "",
    observers: Sequence[Callable[[Append], None]] = (),
) -> list[rows.Row]:
    """Claims 3.1 and 3.2 over one walk: parity, kept bytes, garbage without effect.

    Args:
        system: Functions under check.
        parameters: Parameters by name.
        tokens: int32 [B, T] without PAD.
        lengths: int32 [B] prompt lengths.
        model: Shape of the model.
        policy: Precision under check; the recomputation stands under the same.
        compared: Lengths of the longest row at which everything is compared.
        suffix: Ending of the measures' names, for batches of mixed lengths.
        observers: Called with every step, for claims that need the same walk.

    Returns:
        Rows of ``measurements``, one case a length.
    """
    found, digits = [], len(str(model.context_tokens))
    for step in walk(system, parameters, tokens, lengths, model, policy):
        for observe in observers:
            observe(step)
        longest = int(np.max(step.after.length))
        if longest not in compared:
            continue
        case = f"{policy.name}/{longest:0{digits}d}"
        expected, ties = recompute(parameters, tokens, step.after, model, policy)
        error = float(np.max(np.abs(step.logits - np.asarray(expected))))
        name = f"largest_mechanics_error{suffix}"
        detail = f"{int(ties)} stored values on a tie follow the cache"
        found.append(rows.real("3.1", name, case, error, "logits", detail))
        if step.before is None:
            continue
        kept = np.asarray(step.before.length)
        changed = changed_bytes(step.before, step.after, kept)
        name = f"changed_bytes_of_earlier_positions{suffix}"
        found.append(rows.count("3.2", name, case, changed, "bytes"))
        spoiled_logits, spoiled, _ = system.decode(
            parameters,
            jnp.asarray(step.token),
            with_garbage(step.before),
            model,
            policy,
        )
        reached = changed_bytes(step.after, spoiled, kept + 1)
        reached += differing_logits(step.logits, spoiled_logits)
        name = f"bytes_changed_by_unused_slots{suffix}"
        found.append(rows.count("3.2", name, case, reached, "bytes"))
    return found


def mixed_lengths(count: int, longest: int) -> Int32[np.ndarray, " B"]:
    """Prompt lengths for a batch: every one from 1 to ``longest``, or evenly spaced."""
    if count >= longest:
        return (1 + np.arange(count) % longest).astype(np.int32)
    return np.linspace(1, longest, count).round().astype(np.int32)


def check_prefill_garbage(
    system: CachedModel,
    parameters: Parameters,
    tokens: Int32[np.ndarray, "B T"],
    model: ModelConfig,
    policy: Policy,
) -> rows.Row:
    """Claim 3.2 for the prefill: tokens beyond the length change no byte."""
    lengths = mixed_lengths(len(tokens), model.context_tokens)
    beyond = np.arange(tokens.shape[1])[None] >= lengths[:, None]
    kept, other = (np.where(beyond, filler, tokens) for filler in (PAD, 258))
    one = system.prefill(parameters, kept, jnp.asarray(lengths), model, policy)
    two = system.prefill(parameters, other, jnp.asarray(lengths), model, policy)
    whole = np.full(len(tokens), tokens.shape[1])
    reached = changed_bytes(one[1], two[1], whole) + differing_logits(one[0], two[0])
    name = "bytes_changed_by_tokens_beyond_length"
    return rows.count("3.2", name, policy.name, reached, "bytes")


def check_capacity(
    system: CachedModel,
    parameters: Parameters,
    tokens: Int32[np.ndarray, "B T"],
    model: ModelConfig,
    policy: Policy,
) -> tuple[rows.Row, rows.Row]:
    """Claim 3.3: an append to a full cache is refused and leaves it as it was.

    Returns:
        A row of ``refusals`` and a row of ``measurements``.
    """
    full = np.full(len(tokens), model.context_tokens, np.int32)
    _, cache, _ = system.prefill(
        parameters, jnp.asarray(tokens), jnp.asarray(full), model, policy
    )
    before = jax.tree.map(np.array, cache)
    token = jnp.asarray(tokens[:, 0])
    refused = rows.refusal(
        "3.3",
        "append_at_capacity",
        policy.name,
        ReasonCode.CACHE_FULL,
        lambda: append(system.decode, parameters, token, cache, model, policy),
    )
    changed = changed_bytes(before, cache, full) + differing_bytes(
        [before.length.tobytes()], [np.asarray(cache.length).tobytes()]
    )
    name = "cache_bytes_changed_by_refused_append"
    return refused, rows.count("3.3", name, policy.name, changed, "bytes")
