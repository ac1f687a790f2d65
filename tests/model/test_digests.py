"""A digest covers dtype, shape and bytes; a difference is named with its place."""

import ml_dtypes
import numpy as np
import pytest

from model import digests

ONE = np.float32(1)


def test_equal_arrays_have_one_digest_whatever_their_memory_order() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert digests.array_sha256(rows) == digests.array_sha256(np.asfortranarray(rows))


@pytest.mark.parametrize(
    "other",
    [
        np.zeros((2, 3), np.int32),
        np.zeros((3, 2), np.float32),
        np.zeros(6, np.float32),
        np.full((2, 3), -0.0, np.float32),
        np.zeros((2, 3, 1), np.float32),
    ],
    ids=["dtype", "shape", "rank", "sign of zero", "last axis"],
)
def test_dtype_shape_and_every_bit_change_the_digest(other: np.ndarray) -> None:
    zeros = np.zeros((2, 3), np.float32)
    assert digests.array_sha256(other) != digests.array_sha256(zeros)
    assert digests.first_difference(zeros, other) != ""


def test_a_scalar_and_a_vector_of_one_are_told_apart() -> None:
    assert digests.array_sha256(ONE) != digests.array_sha256(np.ones(1, np.float32))


def test_bfloat16_and_float16_of_the_same_bits_are_told_apart() -> None:
    half = np.zeros(3, np.float16)
    assert digests.array_sha256(half) != digests.array_sha256(
        half.view(ml_dtypes.bfloat16)
    )


def test_a_tree_digest_depends_on_names_and_not_on_their_order() -> None:
    a, b = np.zeros(2), np.ones(2)
    assert digests.tree_sha256({"a": a, "b": b}) == digests.tree_sha256(
        {"b": b, "a": a}
    )
    assert digests.tree_sha256({"a": a, "b": b}) != digests.tree_sha256(
        {"a": b, "b": a}
    )


def test_bit_equal_arrays_have_no_difference_even_with_nan() -> None:
    values = np.array([np.nan, -0.0, 1.0], np.float32)
    assert digests.first_difference(values, values.copy()) == ""


def test_the_first_difference_is_named_with_index_values_and_ulp() -> None:
    expected = np.ones((2, 2), np.float32)
    measured = expected.copy()
    measured[1, 0] = np.nextafter(ONE, np.float32(2))
    text = digests.first_difference(expected, measured)
    assert "index [1, 0]" in text
    assert "(1 ulp)" in text
    assert "1 of 4 entries differ" in text


def test_the_two_zeros_differ_by_no_ulp_but_are_not_equal() -> None:
    text = digests.first_difference(np.float32(0), np.float32(-0.0))
    assert "(0 ulp)" in text


def test_ulp_are_counted_across_zero_and_in_bfloat16() -> None:
    tiny = np.nextafter(np.float32(0), ONE)
    assert "(2 ulp)" in digests.first_difference(tiny, -tiny)
    one = np.ones(1, ml_dtypes.bfloat16)
    above = (one.view(np.uint16) + np.uint16(1)).view(ml_dtypes.bfloat16)
    assert "(1 ulp)" in digests.first_difference(one, above)


def test_integers_differ_without_ulp_and_booleans_too() -> None:
    assert "ulp" not in digests.first_difference(np.int32(1), np.int32(2))
    assert "index [1]" in digests.first_difference(
        np.array([True, True]), np.array([True, False])
    )
