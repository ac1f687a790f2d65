"""The products of dense layers again, in NumPy, from the rule of each policy.

Codes are made one vector at a time and summed as 64-bit integers; the other policies
round their operands and multiply in float64, so that only the rounding of the sum is
left between the two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from model.reference.cache import round_bfloat16

LARGEST_CODE = 127
SMALLEST_SCALE = np.float32(1e-12)


class QuantizedProduct(NamedTuple):
    """Codes, scales, integer sums and the float32 product of one dense layer."""

    x_codes: np.ndarray
    x_scales: np.ndarray
    weight_codes: np.ndarray
    weight_scales: np.ndarray
    sums: np.ndarray
    product: np.ndarray


def quantize_vector(vector: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """INT8 codes [K] and the float32 scale of one float32 vector [K].

    scale = max|x| * float32(1/127), at least 1e-12;
    code = round_half_even(x * (float32(1) / scale)), within +-127.
    """
    largest = np.float32(np.max(np.abs(vector)))
    scale = max(largest * np.float32(1.0 / 127.0), SMALLEST_SCALE)
    codes = np.rint(vector * (np.float32(1) / scale))
    return np.clip(codes, -LARGEST_CODE, LARGEST_CODE).astype(np.int8), scale


def quantized_product(x: np.ndarray, weight: np.ndarray) -> QuantizedProduct:
    """Returns the dynamic W8A8 product of activations [R, K] and a matrix [K, N].

    Args:
        x: Activations, float32; a scale a row.
        weight: Matrix, float32; a scale a column.
    """
    rows = [quantize_vector(row) for row in x]
    columns = [quantize_vector(column) for column in weight.T]
    x_codes = np.stack([codes for codes, _ in rows])
    weight_codes = np.stack([codes for codes, _ in columns], axis=1)
    x_scales = np.array([scale for _, scale in rows], np.float32)
    weight_scales = np.array([scale for _, scale in columns], np.float32)
    sums = x_codes.astype(np.int64) @ weight_codes.astype(np.int64)
    # Two float32 products, first with the scale of the row, then of the column.
    product = (sums.astype(np.float32) * x_scales[:, None]) * weight_scales[None]
    return QuantizedProduct(
        x_codes, x_scales, weight_codes, weight_scales, sums, product
    )


def rounded(values: np.ndarray, policy: str) -> np.ndarray:
    """Returns float64 values of float32 operands as a policy rounds them."""
    if policy == "fp32":
        return values.astype(np.float64)
    if policy == "bf16":
        bits = np.stack([round_bfloat16(row) for row in values])
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    raise ValueError(f"no rounding is known for the dense policy {policy!r}")


def product_and_addends(
    x: np.ndarray, weight: np.ndarray, policy: str
) -> tuple[np.ndarray, np.ndarray]:
    """Returns a product [R, N] under a policy in float64, and what float32 adds for it.

    Args:
        x: Activations [R, K], float32.
        weight: Matrix [K, N], float32.
        policy: "fp32", "bf16" or "w8a8".

    Returns:
        The product and the sum of its absolute addends, both [R, N]. Integer sums are
        exact, so under "w8a8" the product itself is the only addend.
    """
    if policy == "w8a8":
        parts = quantized_product(x, weight)
        scales = np.outer(parts.x_scales.astype(np.float64), parts.weight_scales)
        exact = parts.sums * scales
        return exact, np.abs(exact)
    left, right = rounded(x, policy), rounded(weight, policy)
    return left @ right, np.abs(left) @ np.abs(right)
