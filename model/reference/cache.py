"""The rules of the key/value cache again, one vector at a time, in NumPy.

Same-policy parity cannot see a wrong quantiser: the fault is then in both paths. So
the stored codes and scales are rebuilt here vector by vector, in float32 because the
claim is equality of bits, and bfloat16 by integer arithmetic on a float32's bits.
"""

from __future__ import annotations

import numpy as np

LARGEST_CODE = 127
SMALLEST_SCALE = np.float32(2.0**-100)


def quantize_vector(vector: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """INT8 codes [K] and the float32 scale of one float32 vector [K].

    scale = max|x| * float32(1/127), at least 2**-100;
    code = round_half_even(x * (float32(1) / scale)), within +-127.
    """
    largest = np.float32(np.max(np.abs(vector)))
    scale = max(largest * np.float32(1.0 / 127.0), SMALLEST_SCALE)
    inverse = np.float32(1) / scale
    codes = np.clip(np.rint(vector * inverse), -LARGEST_CODE, LARGEST_CODE)
    return codes.astype(np.int8), np.float32(scale)


def round_bfloat16(vector: np.ndarray) -> np.ndarray:
    """Bits of the nearest bfloat16, half to even: uint16 [K] from float32 [K]."""
    bits = vector.astype(np.float32).view(np.uint32).astype(np.uint64)
    # Adding just under half of the dropped part, plus the last kept bit, carries
    # exactly when the nearest even value is the upper one.
    carried = bits + 0x7FFF + ((bits >> 16) & 1)
    return (carried >> 16).astype(np.uint16)


def store(vectors: np.ndarray, cache_policy: str) -> tuple[np.ndarray, np.ndarray]:
    """Codes and scales of float32 vectors [..., K] under a cache policy.

    Returns:
        Codes [..., K] as float32 ("fp32"), uint16 bit patterns ("bf16") or int8, and
        float32 scales [...], which are 1 for "fp32" and "bf16".
    """
    rows = vectors.astype(np.float32).reshape(-1, vectors.shape[-1])
    scales = np.ones(len(rows), np.float32)
    if cache_policy == "fp32":
        codes = rows.copy()
    elif cache_policy == "bf16":
        codes = np.array([round_bfloat16(row) for row in rows], np.uint16)
    elif cache_policy == "int8":
        codes = np.zeros(rows.shape, np.int8)
        for index, row in enumerate(rows):
            codes[index], scales[index] = quantize_vector(row)
    else:
        raise ValueError(f"unknown cache policy {cache_policy!r}")
    return codes.reshape(vectors.shape), scales.reshape(vectors.shape[:-1])


def restore(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Float64 vectors [..., K] that codes and scales stand for: their exact product."""
    return codes.astype(np.float64) * scales.astype(np.float64)[..., None]
