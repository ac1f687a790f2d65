"""Names of arrays by their content, and the first place where two arrays part.

Equality in this project is of bytes, dtype and shape, so a digest covers all three;
and a difference is worth nothing to a reader without its place and its size in ulp.
"""

import hashlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike


def array_sha256(array: ArrayLike) -> str:
    """Returns the SHA-256 over dtype name, shape and bytes of an array, as hex.

    Args:
        array: Any numeric array, device arrays and bfloat16 included.
    """
    # not ascontiguousarray: it would turn a scalar into a vector of one
    values = np.asarray(array, order="C")
    digest = hashlib.sha256()
    digest.update(f"{values.dtype.name}{list(values.shape)}".encode())
    digest.update(values.tobytes())
    return digest.hexdigest()


def tree_sha256(tree: Mapping[str, ArrayLike]) -> str:
    """Returns the SHA-256 over the names and array digests of a flat mapping.

    Raises:
        ValueError: There is no array; a digest of nothing equals every other one.
    """
    if not tree:
        raise ValueError("a mapping without arrays has no digest")
    digest = hashlib.sha256()
    for name in sorted(tree):
        digest.update(f"{name}={array_sha256(tree[name])}\n".encode())
    return digest.hexdigest()


def first_difference(expected: ArrayLike, measured: ArrayLike) -> str:
    """Returns where two arrays first part, bit by bit; empty when they are equal.

    Args:
        expected: The array that should have come out.
        measured: The array that came out.

    Returns:
        Dtype, shape, or index with both values and, for floats, the ulp between them.
    """
    left, right = np.asarray(expected), np.asarray(measured)
    if left.dtype != right.dtype:
        return f"dtype: expected {left.dtype.name}, measured {right.dtype.name}"
    if left.shape != right.shape:
        return f"shape: expected {list(left.shape)}, measured {list(right.shape)}"
    unsigned = np.dtype(f"u{left.dtype.itemsize}")
    left_bits = np.asarray(left, order="C").reshape(-1).view(unsigned)
    right_bits = np.asarray(right, order="C").reshape(-1).view(unsigned)
    parted = np.flatnonzero(left_bits != right_bits)
    if not parted.size:
        return ""
    place = [int(i) for i in np.unravel_index(int(parted[0]), left.shape)]
    text = (
        f"index {place}: expected {left[tuple(place)]!s}, "
        f"measured {right[tuple(place)]!s}"
    )
    if left.dtype.kind in "fV":  # NumPy calls the kind of bfloat16 V
        first = int(parted[0])
        bits = 8 * left.dtype.itemsize
        apart = _ordinal(int(left_bits[first]), bits) - _ordinal(
            int(right_bits[first]), bits
        )
        text += f" ({abs(apart)} ulp)"
    return f"{text}; {parted.size} of {left.size} entries differ"


def first_not_finite(array: ArrayLike) -> str:
    """Returns where an array first holds NaN or an infinity; empty where nowhere.

    Args:
        array: Any numeric array; integers and booleans are always finite.
    """
    values = np.asarray(array)
    if values.dtype.kind not in "fV":  # NumPy calls the kind of bfloat16 V
        return ""
    places = np.argwhere(~np.isfinite(values))
    if not len(places):
        return ""
    place = [int(i) for i in places[0]]
    return f"index {place}: {values[tuple(place)]!s} is no number to compare"


def _ordinal(pattern: int, bits: int) -> int:
    """Returns the rank of a float's bit pattern on the number line."""
    sign = 1 << (bits - 1)
    return sign - pattern if pattern & sign else pattern
