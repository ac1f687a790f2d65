"""The matrix product under a declared precision policy.

A release differs from another only here and in its cache, so the policy is spelled in
one function, as exactly one `dot_general` whose operand and accumulator types can be
read off the lowered program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Float32, Int8, Int32

# One of fp32, bf16 and w8a8, of the experiments w8 and fp16, or of the formats int4,
# float8_e4m3 and float8_e5m2; a plain text, because configurations hold it as one.
DensePolicy = str

# Both operands are rounded to these, with one scale for all: 1.
ROUNDED_TYPES = {
    "bf16": jnp.bfloat16,
    "fp16": jnp.float16,
    "float8_e4m3": jnp.float8_e4m3fn,
    "float8_e5m2": jnp.float8_e5m2,
}

CODE_LIMIT = 127
# Largest code of four bits with a sign, symmetric like the eight.
INT4_LIMIT = 7
# Keeps the scale of an all-zero vector positive, so that its codes are 0 and not NaN.
SCALE_FLOOR = 1e-12


def quantize_rows(
    x: Float32[Array, "*rows K"], limit: int = CODE_LIMIT
) -> tuple[Int8[Array, "*rows K"], Float32[Array, "*rows"]]:
    """Returns symmetric int8 codes and one float32 scale for each last-axis vector.

    scale = max(max|x| * float32(1/127), floor), code = round_half_even(x * (1/scale)).

    Args:
        x: Vectors along the last axis, float32, finite.
        limit: Largest code, 127 or less.

    Returns:
        Codes within [-limit, limit] and scales > 0; x is about codes * scales.

    Reference: model/reference/dense.py
    """
    # float32 throughout: the scale is part of the released number, never rounded again.
    peak = jnp.max(jnp.abs(x), axis=-1)
    # A product by this constant, not a division by 127: XLA turns the division into the
    # product and NumPy does not, so only this spelling has the same bits in both.
    scales = jnp.maximum(peak * jnp.float32(1.0 / limit), jnp.float32(SCALE_FLOOR))
    scaled = x * (jnp.float32(1.0) / scales)[..., None]
    codes = jnp.clip(jnp.round(scaled), -limit, limit)
    # int8 holds every integer that the clip lets through.
    return codes.astype(jnp.int8), scales


def _contract(
    x: jax.Array,
    weight: jax.Array,
    result: jnp.dtype,
    precision: jax.lax.Precision | None = None,
) -> jax.Array:
    axes = (((x.ndim - 1,), (0,)), ((), ()))
    return jax.lax.dot_general(
        x, weight, axes, precision=precision, preferred_element_type=result
    )


class QuantizedProduct(NamedTuple):
    """A product of int8 codes, with everything that it is made of."""

    x_codes: Int8[Array, "*rows K"]
    x_scales: Float32[Array, "*rows"]
    weight_codes: Int8[Array, "K N"]
    weight_scales: Float32[Array, " N"]
    sums: Int32[Array, "*rows N"]


def quantized_product(
    x: Float32[Array, "*rows K"], weight: Float32[Array, "K N"]
) -> QuantizedProduct:
    """Returns codes per activation row and per output column, and their int32 sums.

    Args:
        x: Activations, float32, finite.
        weight: Matrix, float32, finite.

    Reference: model/reference/dense.py
    """
    x_codes, x_scales = quantize_rows(x)
    columns, weight_scales = quantize_rows(weight.T)
    weight_codes = columns.T
    # int32 accumulation is exact: 127 * 127 * K stays below 2**31 for K < 133k.
    sums = _contract(x_codes, weight_codes, jnp.int32)
    return QuantizedProduct(x_codes, x_scales, weight_codes, weight_scales, sums)


def _scaled(
    sums: jax.Array, x_scales: jax.Array, weight_scales: jax.Array
) -> jax.Array:
    # float32 from here on: codes carry no meaning without their two scales.
    scaled = sums.astype(jnp.float32) * x_scales[..., None]
    return scaled * jnp.broadcast_to(weight_scales, scaled.shape)


def _dense_w8a8(x: jax.Array, weight: jax.Array) -> jax.Array:
    parts = quantized_product(x, weight)
    return _scaled(parts.sums, parts.x_scales, parts.weight_scales)


def _dense_int4(x: jax.Array, weight: jax.Array) -> jax.Array:
    x_codes, x_scales = quantize_rows(x, INT4_LIMIT)
    columns, weight_scales = quantize_rows(weight.T, INT4_LIMIT)
    # Four bits hold the codes; their sum is kept in int32 like that of eight.
    narrow = x_codes.astype(jnp.int4), columns.T.astype(jnp.int4)
    return _scaled(_contract(*narrow, jnp.int32), x_scales, weight_scales)


def _dense_w8(x: jax.Array, weight: jax.Array) -> jax.Array:
    codes, scales = quantize_rows(weight.T)
    # Back to float32 before the product: only storage is int8, no sum is.
    restored = (codes.astype(jnp.float32) * scales[:, None]).T
    return _contract(x, restored, jnp.float32, jax.lax.Precision.HIGHEST)


def dense(
    x: Float32[Array, "*rows K"],
    weight: Float32[Array, "K N"],
    bias: Float32[Array, " N"] | None,
    policy: DensePolicy,
) -> Float[Array, "*rows N"]:
    """Returns x @ weight + bias in float32, the product under the policy.

    Args:
        x: Activations, float32.
        weight: Matrix, float32; it is rounded inside, so parameters stay float32.
        bias: Added in float32, or None.
        policy: `fp32` (HIGHEST), `bf16` (bfloat16 operands, float32 sum) or `w8a8`
            (int8 codes per activation row and per output column, int32 sum); for
            experiments `w8` (int8 weights, float32 product), `fp16`, `float8_e4m3` or
            `float8_e5m2` (operands of that type, float32 sum), or `int4` (as `w8a8`,
            codes of four bits).

    Returns:
        Float32 values.

    Raises:
        ValueError: For a policy that does not exist.

    Reference: model/reference/dense.py
    """
    if policy == "fp32":
        # HIGHEST: an accelerator would otherwise multiply in TF32 or bfloat16.
        product = _contract(x, weight, jnp.float32, jax.lax.Precision.HIGHEST)
    elif policy in ROUNDED_TYPES:
        # Operands rounded to the format, the sum kept in float32.
        dtype = ROUNDED_TYPES[policy]
        product = _contract(x.astype(dtype), weight.astype(dtype), jnp.float32)
    elif policy == "w8a8":
        product = _dense_w8a8(x, weight)
    elif policy == "w8":
        product = _dense_w8(x, weight)
    elif policy == "int4":
        product = _dense_int4(x, weight)
    else:
        known = ", ".join(("fp32", "w8a8", "w8", "int4", *ROUNDED_TYPES))
        raise ValueError(f"Dense policy {policy!r} is none of {known}.")
    return product if bias is None else product + jnp.broadcast_to(bias, product.shape)
