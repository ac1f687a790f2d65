"""Errors of a precision are measured where targets are valid, and explained."""

import numpy as np
import pytest

from model.checks.precision import check_logit_errors, compare_logits, place_row

TARGETS = np.array([[5, 2, 0], [7, 0, 0]], np.int32)


def _logits() -> np.ndarray:
    generator = np.random.Generator(np.random.PCG64(2))
    return generator.normal(size=(2, 3, 259)).astype(np.float32)


def test_only_valid_targets_count_and_equal_logits_have_no_error() -> None:
    exact = _logits()
    found = compare_logits(exact, exact, TARGETS)
    assert found.position.tolist() == [1, 2, 1]
    assert found.document.tolist() == [0, 0, 1]
    assert found.largest.max() == found.divergence_nats.max() == 0
    assert not found.is_top_changed.any()


def test_a_known_difference_is_measured_where_it_is() -> None:
    exact = np.zeros((2, 3, 259), np.float32)
    exact[..., 9] = 1.0
    rounded = exact.copy()
    rounded[0, 1, 8] = 1.5
    errors, measured = check_logit_errors("bf16", exact, rounded, TARGETS, ["a", "b"])
    values = {row["measure"]: row["value_real"] for row in measured}
    counts = {row["measure"]: row["value_count"] for row in measured}
    assert values["largest_logit_error"] == 1.5
    assert counts["compared_targets"] == 3
    assert counts["changed_top_tokens"] == 1
    assert counts["changed_top_tokens_beyond_margin"] == 0
    changed = [row for row in errors if row["is_top_changed"]]
    assert [(row["document_id"], row["position"]) for row in changed] == [("a", 2)]
    # Independent of log_softmax: the sum over the vocabulary, term by term.
    one, two = np.exp(exact[0, 1]), np.exp(rounded[0, 1])
    one, two = one / one.sum(), two / two.sum()
    expected = float(np.sum(one * np.log(one / two)))
    assert abs(changed[0]["divergence_nats"] - expected) < 1e-6


def test_a_difference_where_no_target_is_valid_does_not_count() -> None:
    exact = _logits()
    rounded = exact.copy()
    rounded[:, 2] += 100
    assert compare_logits(exact, rounded, TARGETS).largest.max() == 0


TOKENS = np.array([[1, 9, 2, 0], [1, 2, 0, 0]], np.int32)
PLACES = [("a", 1), ("a", 2), ("b", 1)]


@pytest.mark.parametrize(
    ("compared", "is_met"),
    [
        (PLACES, True),
        ([*PLACES, ("a", 3)], False),
        ([*PLACES, ("a", 2)], False),
        (PLACES[:2], False),
        ([], False),
    ],
)
def test_targets_are_compared_up_to_the_end_token_and_each_once(
    compared: list[tuple[str, int]], is_met: bool
) -> None:
    errors = [{"document_id": name, "position": place} for name, place in compared]
    row = place_row("bf16", errors, TOKENS, ["a", "b"])
    assert (row["expected"] == row["measured"]) == is_met
    assert row["expected"].startswith("3 targets of 2 documents, ")
