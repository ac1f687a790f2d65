"""Stored bits against NumPy, and the planted quantisers that must be told apart."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import cache
from model.checks.cache_storage import CodeTally, crafted_vectors
from model.faults import find
from model.reference import cache as reference

VECTORS = np.concatenate(
    [
        np.asarray(jax.random.normal(jax.random.key(5), (200, 12))),
        crafted_vectors(12),
    ]
).astype(np.float32)


@pytest.mark.parametrize("policy", ["fp32", "bf16", "int8"])
def test_codes_and_scales_have_the_bits_of_the_reference(policy: str) -> None:
    """Ties, zeros, tiny and huge vectors are among them, where quantisers part."""
    codes, scales = jax.jit(cache.store, static_argnums=1)(VECTORS, policy)
    tally = CodeTally()
    restored = jax.jit(cache.restore)(codes, scales)
    tally.add(VECTORS, *(np.asarray(each) for each in (codes, scales, restored)))
    assert tally.entries_restored_differing == 0, tally
    assert (tally.codes_differing, tally.scales_differing) == (0, 0), tally
    assert (tally.scales_not_positive, tally.codes_out_of_range) == (0, 0), tally


def _over_128(codes: jax.Array, scales: jax.Array) -> jax.Array:
    return cache.restore(codes, scales * jnp.float32(127 / 128))


def _no_number(codes: jax.Array, scales: jax.Array) -> jax.Array:
    return cache.restore(codes, scales).at[0, 0].set(jnp.nan)


@pytest.mark.parametrize("policy", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize(
    "restore",
    [
        find("half-of-each-vector-read-as-zero").replacement(cache.restore),
        _over_128,
        _no_number,
    ],
)
def test_what_is_read_back_wrongly_is_told_apart(restore: Any, policy: str) -> None:
    """Both paths read through the same function, so that they agree with each other."""
    codes, scales = cache.store(jnp.asarray(VECTORS), policy)
    arrays = codes, scales, restore(codes, scales)
    tally = CodeTally()
    tally.add(VECTORS, *(np.asarray(each) for each in arrays))
    assert tally.entries_restored_differing > 0


def test_restored_vectors_are_code_times_scale() -> None:
    codes, scales = cache.store(jnp.asarray(VECTORS[:8]), "int8")
    restored = np.asarray(cache.restore(codes, scales), np.float64)
    expected = reference.restore(np.asarray(codes), np.asarray(scales))
    assert np.max(np.abs(restored - expected) / np.abs(expected).max()) < 1e-7


def _truncated(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scales = np.maximum(np.abs(x).max(1) * np.float32(1 / 127), np.float32(2.0**-100))
    return np.trunc(x * (1 / scales)[:, None]).astype(np.int8), scales


def _scaled_over_tokens(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scales = np.full(len(x), np.abs(x).max() * np.float32(1 / 127), np.float32)
    return np.rint(x * (1 / scales)[:, None]).astype(np.int8), scales


def _wrapped_over_128(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scales = np.maximum(np.abs(x).max(1) * np.float32(1 / 128), np.float32(2.0**-100))
    steps = np.rint(x * (1 / scales)[:, None]).astype(np.int32)
    return steps.astype(np.int8), scales


def _without_floor(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    codes, scales = (np.asarray(part) for part in cache.store(jnp.asarray(x), "int8"))
    return codes, np.where(np.abs(x).max(1) == 0, 0, scales).astype(np.float32)


@pytest.mark.parametrize(
    ("fault", "seen_by"),
    [
        (_truncated, "codes_differing"),
        (_scaled_over_tokens, "scales_differing"),
        (_wrapped_over_128, "codes_out_of_range"),
        (_without_floor, "scales_not_positive"),
    ],
)
def test_a_planted_quantiser_is_told_apart(fault: object, seen_by: str) -> None:
    codes, scales = fault(VECTORS)  # type: ignore[operator]
    tally = CodeTally()
    tally.add(VECTORS, codes, scales, VECTORS)
    assert getattr(tally, seen_by) > 0, tally


def test_truncation_errs_by_more_than_half_a_step() -> None:
    tally = CodeTally()
    tally.add(VECTORS, *_truncated(VECTORS), VECTORS)
    assert tally.largest_error_steps > 0.9


def test_bfloat16_ties_go_to_the_even_neighbour() -> None:
    tie = np.array([1 + 2**-8, 1 + 3 * 2**-8], np.float32)
    found = reference.round_bfloat16(tie)
    expected = np.asarray(jnp.asarray(tie).astype(jnp.bfloat16)).view(np.uint16)
    assert found.tolist() == expected.tolist()
    assert [int(bits) & 1 for bits in found] == [0, 0]
