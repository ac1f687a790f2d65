"""Rows that a claim is judged on, as plain values with every field present.

Programs import neither the warehouse nor its record classes, so the three shapes that
checks write are spelled here once: a number, a comparison of two texts, a refusal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from model.digests import array_sha256, first_difference, first_not_finite
from model.refusal import ReasonCode, Refused

Row = dict[str, Any]


def count(
    claim: str, measure: str, case_name: str, value: int, unit: str, detail: str = ""
) -> Row:
    """A row of ``measurements`` whose value is an integer."""
    return _measurement(claim, measure, case_name, unit, detail) | {
        "value_count": int(value)
    }


def real(
    claim: str, measure: str, case_name: str, value: float, unit: str, detail: str = ""
) -> Row:
    """A row of ``measurements`` whose value is a real number.

    A value that is not finite becomes null with the reason ``not_finite``, so that a
    NaN never passes for a number and never stops the evidence from being written.
    """
    row = _measurement(claim, measure, case_name, unit, detail)
    if math.isfinite(value):
        return row | {"value_real": float(value)}
    return row | {"reason": "not_finite"}


def _measurement(
    claim: str, measure: str, case_name: str, unit: str, detail: str
) -> Row:
    return {
        "claim": claim,
        "measure": measure,
        "case_name": case_name,
        "value_count": None,
        "value_real": None,
        "unit": unit,
        "reason": None,
        "detail": detail,
    }


def comparison(
    claim: str,
    measure: str,
    case_name: str,
    expected: str,
    measured: str,
    expected_from: str,
    difference: str = "",
) -> Row:
    """A row of ``comparisons``: two texts that ought to be identical."""
    if expected != measured and not difference:
        difference = f"expected {expected}, measured {measured}"
    return {
        "claim": claim,
        "measure": measure,
        "case_name": case_name,
        "expected": expected,
        "measured": measured,
        "expected_from": expected_from,
        "first_difference": difference,
    }


def real_comparison(
    claim: str,
    measure: str,
    case_name: str,
    expected: float,
    measured: float,
    expected_from: str,
) -> Row:
    """A row of ``comparisons`` over the bits of two real numbers, written as hex.

    What is no number agrees with nothing: two sums that broke down in the same way
    have the same text.
    """
    lost = "" if math.isfinite(measured) else f"{measured} is no number to compare"
    return comparison(
        claim,
        measure,
        case_name,
        float(expected).hex(),
        float(measured).hex(),
        expected_from,
        lost,
    )


def array_comparison(
    claim: str,
    measure: str,
    case_name: str,
    expected: ArrayLike,
    measured: ArrayLike,
    expected_from: str,
) -> Row:
    """A row of ``comparisons`` over the digests of two arrays, with the first place
    where their bits part.

    A NaN or an infinity counts as a place where they part, on both sides too: two
    computations that broke down in the same way agree on nothing.

    Raises:
        ValueError: Both are one array, or there is no entry, so that nothing could
            ever part.
    """
    own, other = np.asarray(measured), np.asarray(expected)
    if not own.size and not other.size:
        raise ValueError(f"{measure} {case_name!r} compares two arrays without entries")
    if np.shares_memory(own, other):
        raise ValueError(f"{measure} {case_name!r} compares an array with itself")
    return comparison(
        claim,
        measure,
        case_name,
        array_sha256(other),
        array_sha256(own),
        expected_from,
        first_difference(other, own) or first_not_finite(own),
    )


def refusal(
    claim: str,
    measure: str,
    case_name: str,
    expected_reason: ReasonCode,
    attempt: Callable[[], object],
) -> Row:
    """A row of ``refusals``: what became of an input that has to be refused.

    Args:
        claim: Id of the claim.
        measure: Name of what has to be refused.
        case_name: Instance of the bad input.
        expected_reason: Code the refusal must carry.
        attempt: Gives the bad input to the system; it ought to raise ``Refused``.
    """
    received, message = None, ""
    try:
        attempt()
    except Refused as refused:
        received, message = str(refused.code), refused.message
    return {
        "claim": claim,
        "measure": measure,
        "case_name": case_name,
        "expected_reason": str(expected_reason),
        "received_reason": received,
        "message": message,
    }
