"""What the cache keeps, and that it never keeps too much."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from model import cache
from model.config import ModelConfig
from model.refusal import ReasonCode, Refused

MODEL = ModelConfig()
POLICIES = ("fp32", "bf16", "int8")


@pytest.mark.parametrize(
    ("policy", "total"), [("fp32", 2496), ("bf16", 1344), ("int8", 768)]
)
def test_a_cache_of_the_fixture_takes_the_published_bytes(
    policy: str, total: int
) -> None:
    empty = cache.empty_cache(MODEL, 1, policy)
    assert cache.cache_bytes(empty) == total
    assert empty.keys.dtype == cache.STORAGE_DTYPES[policy]
    assert empty.key_scales.nbytes + empty.value_scales.nbytes == 192


def test_a_zero_vector_keeps_a_positive_scale_and_zero_codes() -> None:
    """Without a floor 0/0 is NaN, which casts to the very code 0 that looks right."""
    codes, scales = cache.store(jnp.zeros((3, 12)), "int8")
    assert np.all(np.asarray(scales) > 0)
    assert not np.any(np.asarray(codes))
    assert not np.any(np.asarray(cache.restore(codes, scales)))


@given(
    arrays.arrays(
        np.float32,
        (4, 12),
        elements=st.floats(-(2.0**99), 2.0**99, width=32, allow_subnormal=False),
    )
)
@settings(max_examples=60, deadline=None)
def test_int8_errs_by_half_a_step_at_most_and_uses_its_whole_range(
    vectors: np.ndarray,
) -> None:
    codes, scales = (np.asarray(x) for x in cache.store(jnp.asarray(vectors), "int8"))
    steps = np.abs(vectors - codes * scales[:, None].astype(np.float64))
    assert np.all(steps <= 0.5001 * scales[:, None])
    assert codes.min() >= -127
    informative = np.abs(vectors).max(axis=1) > 1e-25
    assert np.all(np.abs(codes.astype(int)).max(axis=1)[informative] == 127)


@pytest.mark.parametrize("policy", POLICIES)
def test_storing_what_was_restored_changes_nothing(policy: str) -> None:
    vectors = jax.random.normal(jax.random.key(0), (2, 12, 2, 12))
    again = jax.jit(cache.round_trip, static_argnums=1)
    once = again(vectors, policy)
    twice = again(once, policy)
    assert np.allclose(np.asarray(once), np.asarray(twice), atol=2e-6)


def test_a_slot_is_written_per_row_and_a_full_row_is_left_alone() -> None:
    """dynamic_update_slice would clamp slot 12 to 11 and overwrite the newest entry."""
    stored = jnp.arange(3 * 12 * 2, dtype=jnp.float32).reshape(3, 12, 2)
    new = jnp.full((3, 2), -1.0)
    written = np.asarray(cache.write_slot(stored, new, jnp.asarray([0, 11, 12])))
    expected = np.array(stored)
    expected[0, 0] = expected[1, 11] = -1.0
    assert np.array_equal(written, expected)


def test_an_append_at_capacity_is_refused_and_names_the_row() -> None:
    held = cache.empty_cache(MODEL, 2, "int8")._replace(length=jnp.asarray([3, 12]))
    with pytest.raises(Refused, match="row 1 of the cache holds 12 tokens") as refused:
        cache.require_room(held)
    assert refused.value.code == ReasonCode.CACHE_FULL
    cache.require_room(held._replace(length=jnp.asarray([3, 11])))
