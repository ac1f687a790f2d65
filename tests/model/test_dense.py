"""Each precision policy does the rounding and the accumulation that it names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model.dense import dense, quantize_rows


def test_codes_and_scales_are_those_of_numpy_bit_by_bit() -> None:
    """Ties, a zero vector, the limit and wide values, in the released spelling."""
    x = np.random.default_rng(0).normal(0, 3, (50, 12)).astype(np.float32)
    x[0] = 0.0
    x[1] = np.linspace(-127, 127, 12, dtype=np.float32) / np.float32(2.0)
    x[2, :6] = [0.5, -0.5, 1.5, -1.5, 2.5, 127.0]
    codes, scales = jax.jit(quantize_rows)(jnp.asarray(x))
    step = np.float32(1.0 / 127.0)
    floor = np.float32(1e-12)
    expected_scales = np.maximum(np.abs(x).max(axis=-1) * step, floor)
    scaled = x * (np.float32(1.0) / expected_scales)[:, None]
    expected = np.clip(np.rint(scaled), -127, 127).astype(np.int8)
    assert np.asarray(scales).tobytes() == expected_scales.tobytes()
    assert np.asarray(codes).tobytes() == expected.tobytes()


def test_codes_reconstruct_within_half_a_step() -> None:
    x = np.random.default_rng(1).normal(0, 1, (20, 30)).astype(np.float32)
    codes, scales = quantize_rows(jnp.asarray(x))
    restored = np.asarray(codes).astype(np.float32) * np.asarray(scales)[:, None]
    steps = (np.abs(x - restored) / np.asarray(scales)[:, None]).max()
    assert steps <= 0.5001, steps


def test_the_zero_vector_has_codes_0_and_a_positive_scale() -> None:
    codes, scales = quantize_rows(jnp.zeros((2, 4), dtype=jnp.float32))
    assert not np.asarray(codes).any()
    assert (np.asarray(scales) > 0).all()


def test_w8a8_accumulates_in_integers() -> None:
    """K = 1041 of the largest codes: the sum 16790289 has no float32 neighbour."""
    x = jnp.full((1, 1041), 127.0, dtype=jnp.float32)
    weight = jnp.full((1041, 1), 127.0, dtype=jnp.float32)
    measured = float(dense(x, weight, None, "w8a8")[0, 0])
    exact = np.float32(127 * 127 * 1041)  # scales are 1 up to one rounding each
    assert abs(measured - exact) <= 4.0, measured
    lowered = jax.jit(lambda a, b: dense(a, b, None, "w8a8")).lower(x, weight).as_text()
    dots = [line for line in lowered.splitlines() if "dot_general" in line]
    assert len(dots) == 1
    assert "xi8>" in dots[0] and "xi32>" in dots[0]


def test_bf16_rounds_its_operands_and_sums_in_float32() -> None:
    """1 + 4095 * 2**-9 is 8.998; a bfloat16 sum would give 9.0 or stop growing."""
    x = jnp.full((1, 4096), 2.0**-9, dtype=jnp.float32).at[0, 0].set(1.0)
    weight = jnp.ones((4096, 1), dtype=jnp.float32)
    assert float(dense(x, weight, None, "bf16")[0, 0]) == 8.998046875
    fine = jnp.full((1, 1), 1.0 + 2.0**-10, dtype=jnp.float32)
    assert float(dense(fine, jnp.ones((1, 1)), None, "bf16")[0, 0]) == 1.0
    assert float(dense(fine, jnp.ones((1, 1)), None, "fp32")[0, 0]) == 1.0 + 2.0**-10


@pytest.mark.parametrize("policy", ["fp32", "bf16", "w8a8"])
def test_every_policy_is_close_to_the_exact_product(policy: str) -> None:
    generator = np.random.default_rng(2)
    x = generator.normal(0, 1, (3, 5, 24)).astype(np.float32)
    weight = generator.normal(0, 0.2, (24, 7)).astype(np.float32)
    bias = generator.normal(0, 1, 7).astype(np.float32)
    measured = np.asarray(dense(jnp.asarray(x), jnp.asarray(weight), bias, policy))
    exact = x.astype(np.float64) @ weight + bias
    apart = np.abs(measured - exact).max()
    assert measured.dtype == np.float32
    assert apart < {"fp32": 1e-5, "bf16": 0.05, "w8a8": 0.1}[policy], apart


def test_an_unknown_policy_is_an_error() -> None:
    one = jnp.ones((1, 1), dtype=jnp.float32)
    with pytest.raises(ValueError, match="int2"):
        dense(one, one, None, "int2")
