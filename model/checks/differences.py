"""Largest values that a NaN cannot hide in.

Python's `max` keeps its first value whenever it meets a NaN after it, so a difference
that is no number would read as the smallest of all. NumPy's answer is NaN, which
becomes a missing measurement (`model.checks.rows.real`) and is never met.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike


def largest_value(values: Iterable[float]) -> float:
    """Returns the largest of some values, NaN if one of them is or there is none.

    Args:
        values: Distances of whatever unit, each from 0.
    """
    found = np.asarray([float(value) for value in values], np.float64)
    return float(np.max(found)) if found.size else math.nan


def largest_difference(expected: ArrayLike, measured: ArrayLike) -> float:
    """Returns the largest absolute difference of two arrays.

    Args:
        expected: The array that should have come out.
        measured: The array that came out.

    Returns:
        Infinity where the shapes differ, so that nothing is stretched to fit; NaN where
        an entry is no number on either side, or there is no entry at all.
    """
    left, right = (np.asarray(each, np.float64) for each in (expected, measured))
    if left.shape != right.shape:
        return math.inf
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return math.nan
    return float(np.abs(left - right).max()) if left.size else math.nan
