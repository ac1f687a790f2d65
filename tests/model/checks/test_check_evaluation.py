"""The checks of an evaluation find a dependence on the batch, however small."""

import numpy as np
import pytest

from model.checks import evaluation as checks
from model.checks.rows import array_comparison
from model.config import ModelConfig
from model.evaluation import Evaluation, evaluate_tokens, sequential_sum
from model.parameters import Parameters, initial_parameters
from warehouse.contract import read_contract

TOKENS = np.array(
    [[1, 5, 6, 2], [1, 7, 2, 0], [1, 8, 9, 2], [1, 2, 0, 0], [1, 9, 9, 2]],
    dtype=np.int32,
)
LOSSES = np.array(
    [[3.1, 2.2, 0.1], [1.7, 0.3, 0], [2, 2.5, 0.2], [4.4, 0, 0], [1, 1.1, 0.7]],
    dtype=np.float32,
)


COUNTS = np.sum(TOKENS[:, 1:] != 0, axis=1)
SIZES = (1, 2, 5)


def evaluated_in(size: int, losses: np.ndarray = LOSSES) -> checks.BatchEvaluation:
    return checks.BatchEvaluation(size, losses.copy(), COUNTS)


def measure(evaluate: checks.Evaluate) -> list[dict]:
    return checks.measure_batch_sizes(evaluate, {}, TOKENS, SIZES, evaluated_in(32))


def parted(rows: list[dict]) -> set[tuple[str, str]]:
    return {
        (row["measure"], row["case_name"])
        for row in rows
        if "expected" in row and row["expected"] != row["measured"]
    }


def test_equal_losses_are_identical_in_every_size_and_their_averages_are_not() -> None:
    rows = measure(lambda _parameters, _tokens, size: evaluated_in(size))
    compared = [row for row in rows if "expected" in row]
    assert len(compared) == 6
    assert not parted(rows)
    sources = {row["case_name"]: row["expected_from"] for row in compared}
    assert sources == {
        "batch-01": "batches of 32 documents",
        "batch-02": "batches of 1 documents",
        "batch-05": "batches of 1 documents",
    }
    numbers = {(row["measure"], row["case_name"]): row for row in rows if "unit" in row}
    assert numbers["valid_targets_apart", "batch-02"]["value_count"] == 0
    largest = numbers["mean_of_batch_means_largest_error", ""]
    assert largest["value_real"] > 0.1
    assert numbers["mean_of_batch_means_off_by", "batch-05"]["value_real"] < 1e-12


@pytest.mark.parametrize("faulty", SIZES)
def test_one_ulp_in_one_batch_size_is_found_in_losses_and_sum(faulty: int) -> None:
    """Also in the whole set and in single documents: no size stands for itself."""

    def rounding(_parameters: dict, _tokens: np.ndarray, size: int):
        losses = LOSSES.copy()
        if size == faulty:
            losses[0, 0] = np.nextafter(losses[0, 0], np.float32(9))
        return evaluated_in(size, losses)

    sizes = SIZES if faulty == 1 else (faulty,)
    assert parted(measure(rounding)) == {
        (name, f"batch-{size:02d}")
        for size in sizes
        for name in ("token_losses", "batch_loss_sum_nats")
    }


def test_targets_that_the_program_counts_otherwise_are_found() -> None:
    def counting_padding(_parameters: dict, _tokens: np.ndarray, size: int):
        counts = np.full(len(TOKENS), TOKENS.shape[1] - 1)
        return evaluated_in(size)._replace(valid_targets=counts)

    rows = measure(counting_padding)
    apart = {row["value_count"] for row in rows if row.get("unit") == "targets"}
    assert apart == {5 * 3 - COUNTS.sum()}


def test_a_batch_size_compared_with_itself_is_an_error() -> None:
    with pytest.raises(ValueError, match="compared with themselves"):
        checks.measure_batch_sizes(
            lambda _parameters, _tokens, size: evaluated_in(size),
            *({}, TOKENS, SIZES),
            evaluated_in(1),
        )


def test_an_array_compared_with_itself_is_an_error() -> None:
    with pytest.raises(ValueError, match="compares an array with itself"):
        array_comparison("2.6", "token_losses", "", LOSSES, LOSSES[:], "itself")


@pytest.fixture
def evaluated() -> Evaluation:
    predictions = np.array([[5, 6, 3], [7, 2, 0], [1, 1, 1], [2, 0, 0], [9, 9, 2]])
    return Evaluation(
        losses=LOSSES,
        predictions=predictions.astype(np.int32),
        loss_sum_nats=sequential_sum(LOSSES),
        valid_targets=12,
        correct_targets=8,
    )


def test_rows_of_valid_targets_add_up_to_the_reported_bits(
    evaluated: Evaluation,
) -> None:
    ids = list("abcde")
    rows = checks.token_loss_rows(TOKENS, ids, evaluated, "heldout")
    assert len(rows) == 12
    assert rows[3] == {
        "release_policy": "fp32",
        "split": "heldout",
        "document_id": "b",
        "position": 0,
        "target_token": 7,
        "loss_nats": float(np.float32(1.7)),
        "predicted_token": 7,
        "is_correct": True,
    }
    assert not parted(checks.measure_token_rows(rows, evaluated))
    stored = checks.stored_losses(rows, ids, 3)
    assert stored.tobytes() == LOSSES.tobytes()
    assert checks.stored_losses(rows, ids[1:2], 3).tolist() == [[*LOSSES[1]]]


def allowed_shortfall() -> float:
    measure = "predicted_token_largest_shortfall"
    (limit,) = {
        item.limit
        for claim in read_contract()
        for item in claim.requirements
        if (claim.id, item.measure) == ("2.9", measure)
    }
    assert limit is not None
    return float(limit)


@pytest.mark.parametrize(
    ("margin", "is_swapped", "is_within"),
    [
        (2.0, False, True),
        (1e-5, True, True),
        (0.0, True, True),
        (1e-3, True, False),
        (2.0, True, False),
        (float("nan"), False, False),
    ],
)
def test_a_predicted_token_is_the_likeliest_of_the_reference_or_tied_with_it(
    evaluated: Evaluation, margin: float, is_swapped: bool, is_within: bool
) -> None:
    """Documents b and c are compared: 2 + 3 targets; another token in one of them."""
    rows = checks.token_loss_rows(TOKENS, list("abcde"), evaluated, "heldout")
    expected = np.zeros((2, 3, 12))
    for row in rows[3:8]:
        document = "bc".index(row["document_id"])
        expected[document, row["position"], row["predicted_token"]] = 1.0
    likeliest = rows[3]["predicted_token"]
    expected[0, 0, likeliest] = 1.0 + margin
    expected[0, 0, 11] = 1.0
    if is_swapped:
        rows[3] = rows[3] | {"predicted_token": 11}
    apart, compared = checks.measure_predictions(rows, ["b", "c"], expected)
    value = apart["value_real"]
    assert (value is not None and value <= allowed_shortfall()) == is_within
    assert compared["value_count"] == 5


@pytest.mark.parametrize(
    ("field", "value", "measure"),
    [
        ("loss_sum_nats", sequential_sum(LOSSES) + 1e-14, "row_loss_sum_nats"),
        ("valid_targets", 15, "row_valid_targets"),
        ("correct_targets", 9, "row_correct_targets"),
    ],
)
def test_a_reported_sum_that_is_off_is_found(
    evaluated: Evaluation, field: str, value: float, measure: str
) -> None:
    rows = checks.token_loss_rows(TOKENS, list("abcde"), evaluated, "heldout")
    wrong = evaluated._replace(**{field: value})
    compared = checks.measure_token_rows(rows, wrong)
    assert parted(compared) == {(measure, "heldout")}


def test_an_evaluation_of_earlier_parameters_is_found() -> None:
    """It repeats its first number, as a training that has stopped would."""
    model = ModelConfig(context_tokens=3, width=12, feed_forward_width=16)
    first, later = (initial_parameters(model, seed) for seed in (1, 2))
    allowed = next(
        item.limit
        for claim in read_contract()
        for item in claim.requirements
        if item.measure == "validation_loss_largest_difference"
    )

    def apart(evaluated: Parameters) -> float:
        losses = evaluate_tokens(evaluated, TOKENS, model, 5).losses
        row = checks.measure_validation(6, later, TOKENS[1:2], losses[1:2], model)
        assert row["case_name"] == "update-006"
        return float(row["value_real"])

    assert allowed is not None
    assert apart(later) <= allowed
    assert apart(first) > 100 * allowed


def test_a_changed_state_shows_as_two_digests() -> None:
    row = checks.measure_state("a", "b")
    assert (row["expected"], row["measured"]) == ("a", "b")
    assert row["first_difference"] == "expected a, measured b"
