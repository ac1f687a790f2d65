"""Tolerances: a difference that is no number, or of nothing, is within none of them.

Python's `max` drops a NaN that is not the first of its values, which once made a loss
that was no number the smallest difference of all.
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from model.checks import controllers, draws, updates
from model.checks.boundary import Attention, measure_attention
from model.checks.cache_storage import CodeTally
from model.checks.dense import _differing
from model.checks.differences import largest_difference, largest_value
from model.checks.evaluation import _largest_mean_error, measure_token_rows
from model.checks.first_loss import RecordedLoss, measure_other_losses
from model.checks.policies import _reason
from model.checks.precision import compare_logits, summary_rows
from model.checks.rows import real, real_comparison
from model.checks.target_reference import logit_difference, parameter_differences
from model.config import OptimizerConfig
from model.parameters import initial_parameters
from model.presets import fixture
from tests.comparators import MET, MISSING, UNMET, statuses

NAN, INF = float("nan"), float("inf")
ONES = np.ones(3)


LARGEST = [
    ([0.0], MET),
    ([0.0, 1e-5], MET),
    ([0.0, 1.1e-5], UNMET),
    ([0.0, NAN], MISSING),
    ([NAN, 0.0], MISSING),
    ([0.0, NAN, 1.0], MISSING),
    ([0.0, INF], MISSING),
    ([], MISSING),
]
DIFFERENCES = [
    (ONES, ONES.copy(), MET),
    (ONES, ONES + 1e-4, UNMET),
    (ONES * NAN, ONES * NAN, MISSING),
    (ONES * INF, ONES * INF, MISSING),
    (ONES, ONES * NAN, MISSING),
    (ONES, [1.0], MISSING),
    (ONES, np.ones((3, 1)), MISSING),
    ([], [], MISSING),
]


def test_nothing_that_is_no_number_is_within_a_tolerance(tmp_path: Path) -> None:
    values = [largest_value(values) for values, _ in LARGEST]
    values += [largest_difference(*pair) for *pair, _ in DIFFERENCES]
    rows = [real("1.1", "difference", "", value, "1") for value in values]
    owed = [status for *_, status in (*LARGEST, *DIFFERENCES)]
    assert statuses(tmp_path, rows, "at_most", 1e-5) == owed


ARRAYS = {
    "parameters/a": ONES,
    "parameters/b": ONES,
    "first_moment/a": ONES,
    "first_moment/b": ONES,
}


@pytest.mark.parametrize("spoiled", sorted(ARRAYS))
@pytest.mark.parametrize("value", [NAN, INF])
def test_controllers_whose_arrays_are_no_numbers_agree_on_nothing(
    spoiled: str, value: float
) -> None:
    broken = {**ARRAYS, spoiled: np.array([1.0, value, 1.0])}
    for expected, measured in ((ARRAYS, broken), (broken, ARRAYS), (broken, broken)):
        far, name = controllers.parameter_difference(expected, measured)
        moment = controllers.moment_difference(expected, measured)
        of_parameters = spoiled.startswith("parameters/")
        assert np.isfinite(far) != of_parameters
        assert np.isfinite(moment) == of_parameters
        if of_parameters:
            assert name == spoiled
            begin = {"a": ONES * 0.5, "b": ONES * 0.5}
            with np.errstate(invalid="ignore"):
                moved = controllers.movement_difference(expected, measured, begin)
            assert not np.isfinite(moved)
    assert controllers.parameter_difference(ARRAYS, ARRAYS)[0] == 0.0


def test_states_without_arrays_and_a_training_that_did_not_move_agree_on_nothing():
    assert np.isnan(controllers.parameter_difference({}, {})[0])
    assert np.isnan(controllers.moment_difference({}, {}))
    same = {"parameters/a": ONES}
    assert controllers.movement_difference(same, same, {"a": ONES}) == INF


@pytest.mark.parametrize("place", [0, 1])
def test_a_loss_of_controllers_that_is_no_number_is_not_small(place: int) -> None:
    def told(loss: float, update: int) -> dict[str, Any]:
        return {
            "update": update,
            "loss_sum_nats": loss,
            "valid_targets": 4,
            "state_sha256": "s",
        }

    expected = [told(8.0, 1), told(8.0, 2)]
    measured = [told(8.0, 1), told(8.0, 2)]
    measured[place]["loss_sum_nats"] = NAN
    trained = controllers.Trained(
        program="split", updates=[measured], trainings=[], arrays=[], devices=1
    )
    rows = controllers.agreement(
        "split", expected, trained, (ARRAYS, ARRAYS), {"a": ONES, "b": ONES}
    )
    (row,) = (each for each in rows if each["measure"] == "rehearsed_loss_difference")
    assert (row["value_real"], row["reason"]) == (None, "not_finite")


def test_target_parameters_that_are_no_numbers_or_misshapen_are_not_near() -> None:
    model, name = fixture().model, "h.0.attn.c_attn.bias"
    zeros = np.zeros(3 * model.width)
    broken = zeros.copy()
    broken[model.width] = NAN
    assert np.isnan(parameter_differences({name: broken}, {name: zeros}, model)[1])
    assert parameter_differences({"a": ONES[:1]}, {"a": ONES}, model)[0] == {"a": INF}
    broken[0] = NAN
    found, _ = parameter_differences({name: broken}, {name: zeros}, model)
    assert np.isnan(found[name])


@pytest.mark.parametrize("measured", [None, ONES[:2], ONES * NAN])
def test_logits_of_a_target_that_are_missing_or_no_numbers_are_infinitely_far(
    measured: Any,
) -> None:
    assert logit_difference(ONES, measured) == INF
    assert logit_difference(ONES * NAN, measured) == INF


@pytest.mark.parametrize("rates", [[NAN, 3e-3], [3e-3, NAN]])
def test_a_learning_rate_that_is_no_number_is_not_the_schedule_s(rates: Any) -> None:
    row = updates.measure_learning_rates(rates, 1, OptimizerConfig(learning_rate=3e-3))
    assert (row["value_real"], row["reason"]) == (None, "not_finite")


def test_gradients_and_moments_that_are_no_numbers_are_not_near() -> None:
    for spoiled in ("a", "b"):
        broken = {"a": ONES, "b": ONES, spoiled: ONES * NAN}
        exact = {"a": ONES, "b": ONES}
        assert np.isnan(updates._relative(broken, exact))
        assert np.isnan(updates._beyond_rounding(broken, exact, 1e-3))
        assert np.isnan(updates._relative(broken, broken))
    assert np.isnan(updates._relative({}, {}))


def test_dropout_that_keeps_nothing_or_no_number_has_no_error_to_show() -> None:
    empty = np.zeros(0, np.float32)
    assert np.isnan(draws._largest_error_ulp(empty, empty, 0.1))
    broken = np.array([1.0, NAN], np.float32)
    assert np.isnan(draws._largest_error_ulp(broken, broken, 0.1))


@pytest.mark.parametrize("place", [0, 1])
def test_logit_errors_that_are_no_numbers_are_not_small(place: int) -> None:
    exact = np.zeros((1, 2, 5), np.float32)
    rounded = exact.copy()
    rounded[0, place] = NAN
    found = compare_logits(exact, rounded, np.full((1, 2), 4))
    rows = [
        {
            "is_top_changed": False,
            "margin": 0.0,
            "mean_error": float(found.mean[i]),
            "divergence_nats": float(found.divergence_nats[i]),
            "largest_error": float(found.largest[i]),
        }
        for i in range(2)
    ]
    by_measure = {row["measure"]: row for row in summary_rows("bf16", rows)}
    assert by_measure["largest_logit_error"]["reason"] == "not_finite"
    assert by_measure["mean_logit_error"]["reason"] == "not_finite"
    assert _reason("ran", found) == "beyond_limit"


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_cache_vectors_that_are_no_numbers_are_stored_by_nobody(dtype: Any) -> None:
    raw = np.array([[1.0, 2.0], [NAN, 1.0]], np.float32)
    codes = raw if dtype is np.float32 else np.zeros((2, 2), np.int8)
    scales = np.ones(2, np.float32) if dtype is np.float32 else ONES[:2] * NAN
    tally = CodeTally()
    with np.errstate(invalid="ignore"):
        tally.add(raw, codes, scales.astype(np.float32), raw)
    found = {row["measure"]: row for row in tally.rows(f"{np.dtype(dtype)}/crafted")}
    assert found["codes_differing"]["value_count"] > 0
    assert found["entries_restored_differing"]["value_count"] > 0
    if dtype is np.int8:
        assert np.isnan(tally.largest_error_steps)
        assert found["scales_not_positive"]["value_count"] == 2


def test_products_that_are_no_numbers_on_both_sides_differ() -> None:
    broken = np.array([1.0, NAN, INF], np.float32)
    assert _differing(broken, broken.copy()) == 2
    assert _differing(np.float32([0.0]), np.float32([-0.0])) == 1


@pytest.mark.parametrize("place", [0, 1])
def test_a_mean_of_batch_means_that_is_no_number_is_the_largest_error(place) -> None:
    rows = [
        real("2.6", "mean_of_batch_means_off_by", f"batch-{size}", 0.1, "nats")
        for size in (1, 5)
    ]
    assert _largest_mean_error(rows)["value_real"] == 0.1
    rows[place] |= {"value_real": None, "reason": "not_finite"}
    assert _largest_mean_error(rows)["reason"] == "not_finite"


@pytest.mark.parametrize(
    ("spoil", "difference"),
    [
        (lambda weights: weights, 0.0),
        # One head for two would be stretched over both.
        (lambda weights: weights[:, :, :1], None),
        (lambda weights: weights * NAN, None),
        (lambda weights: weights * INF, None),
    ],
)
def test_attention_of_another_shape_or_no_numbers_is_not_near(
    spoil: Any, difference: float | None
) -> None:
    with np.errstate(invalid="ignore"):
        weights = np.tril(np.ones((1, 1, 2, 3, 3))) / np.arange(1, 4)[:, None]
        measured = spoil(weights.astype(np.float32))
        both = Attention(
            inputs=np.full((1, 3), 9), measured=measured, expected=spoil(weights)
        )
        if measured.shape != weights.shape:
            both = Attention(inputs=both.inputs, measured=measured, expected=weights)
        rows = measure_attention(both)
    (row,) = (each for each in rows if each["measure"] == "row_largest_difference")
    if difference is None:
        assert row["reason"] == "not_finite"
    else:
        assert row["value_real"] < 1e-7


def test_attention_over_nothing_shows_nothing() -> None:
    empty = np.zeros((1, 0, 2, 3, 3))
    nothing = Attention(
        inputs=np.zeros((0, 3), np.int32), measured=empty, expected=empty
    )
    with pytest.raises(ValueError, match="zero-size"):
        measure_attention(nothing)


def test_sums_that_are_no_numbers_have_one_text_and_do_not_agree(
    tmp_path: Path,
) -> None:
    pairs = [(1.5, 1.5, MET), (1.5, -1.5, UNMET), (0.0, -0.0, UNMET)]
    pairs += [(value, value, UNMET) for value in (NAN, INF, -INF)]
    rows = [real_comparison("1.1", "sum", "", *pair, "a sum") for *pair, _ in pairs]
    assert statuses(tmp_path, rows) == [status for *_, status in pairs]


def test_a_table_of_no_losses_adds_up_to_nothing() -> None:
    nothing: Any = SimpleNamespace(loss_sum_nats=0.0)
    with pytest.raises(ValueError, match="no row"):
        measure_token_rows([], nothing)


def spoiled_model() -> tuple[Any, Any, dict[str, np.ndarray]]:
    """A model, parameters under which every loss is NaN, and a document to record."""
    model = replace(fixture().model, dropout_rate=0.0)
    parameters = initial_parameters(model, 3)
    spoiled = {**parameters, "lm_head.weight": parameters["lm_head.weight"] * NAN}
    documents = np.full((1, model.context_tokens + 1), 9, np.int32)
    return model, spoiled, {"documents": documents, "key_data": np.zeros(2, np.uint32)}


def test_a_recorded_loss_that_is_no_number_is_not_the_one_before_its_update(
    tmp_path: Path,
) -> None:
    """The same parameters make the same NaN, bit by bit."""
    model, spoiled, about = spoiled_model()
    recorded = RecordedLoss(update=1, nats=NAN, **about)
    row, _ = recorded.compared("loss", spoiled, model, key=False)
    assert row["expected"] == row["measured"] == "nan"
    assert statuses(tmp_path, [row]) == [UNMET]


def test_a_recorded_loss_does_not_part_from_one_that_is_no_number(
    tmp_path: Path,
) -> None:
    """Any loss has other bits than a NaN, and is no other loss by that."""
    model, spoiled, about = spoiled_model()
    for at, nats in enumerate((5.0, NAN, INF)):
        recorded = RecordedLoss(update=1, nats=nats, **about)
        rows = measure_other_losses(recorded, spoiled, spoiled, model)
        assert statuses(tmp_path / str(at), rows, "different") == [UNMET, UNMET]


def test_parameters_of_another_shape_are_not_stretched_to_the_expected() -> None:
    assert updates._beyond_rounding({"a": ONES[:1]}, {"a": ONES}, 1e-3) == INF
