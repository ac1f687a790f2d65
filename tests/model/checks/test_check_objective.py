"""The checks of the objective find mistakes that no loss curve shows."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model.checks import objective
from model.config import ModelConfig
from model.faults import find
from model.objective import token_losses
from model.parameters import Parameters, initial_parameters
from model.training import mean_loss
from model.transformer import logits
from warehouse.contract import read_contract

MODEL = ModelConfig(context_tokens=6, width=12, feed_forward_width=16)


def limit(claim: str, measure: str) -> float:
    for listed in read_contract():
        for requirement in listed.requirements:
            if (listed.id, requirement.measure) == (claim, measure):
                return float(requirement.limit or 0)
    raise AssertionError(measure)


@pytest.fixture(scope="module")
def parameters() -> Parameters:
    return initial_parameters(MODEL, 2)


@pytest.fixture(scope="module")
def arrays(parameters: Parameters) -> dict[str, np.ndarray]:
    return {name: np.asarray(x) for name, x in parameters.items()}


def crafted(losses=token_losses) -> dict[str, float | None]:
    def summed(logits, targets):
        return losses(logits, targets).sum(), 1

    rows = objective.measure_crafted(losses, summed, 259)
    lost = {row["case_name"] for row in rows if row["value_count"]}
    shares = [row for row in rows if row["value_count"] is None]
    found = {row["case_name"]: row["value_real"] for row in shares}
    # What is no number is counted, because a row without a value is only missing.
    broken = {case for case, share in found.items() if share is None}
    assert lost == {case for case in broken if case.startswith("token_losses")}
    return found


def test_crafted_logits_have_the_losses_of_the_reference():
    found = crafted()
    assert len(found) == 6
    assert max(found.values()) < 5e-5


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("probability-kept-from-zero", {"unlikely"}),
        ("logsumexp-without-maximum", {"large", "small"}),
    ],
)
def test_an_objective_that_is_right_for_small_logits_alone_is_seen(name, cases):
    found = crafted(find(name).replacement(token_losses))
    most = limit("1.9", "crafted_loss_largest_difference")
    wrong = {case for case, share in found.items() if share is None or share > most}
    assert {case.partition("/")[2] for case in wrong} == cases
    assert len(wrong) == 2 * len(cases)


@pytest.fixture(scope="module")
def tokens() -> np.ndarray:
    rows = [[1, 100, 101, 102, 127, 102, 2], [1, 104, 127, 2, 0, 0, 0]]
    return np.array([*rows, [1, 105, 2, 0, 0, 0, 0]], dtype=np.int32)


@pytest.fixture(scope="module")
def apply():
    return jax.jit(partial(logits, model=MODEL))


MEASURES = ("gradient_largest_difference", "gradient_directional_difference")


@pytest.fixture(scope="module")
def gradients(parameters: Parameters, tokens: np.ndarray) -> dict[str, np.ndarray]:
    differentiate = jax.jit(
        jax.grad(partial(mean_loss, key=None, model=MODEL), has_aux=True)
    )
    found = differentiate(parameters, jnp.asarray(tokens))[0]
    return {name: np.asarray(x) for name, x in found.items()}


def reals(rows: list[dict]) -> dict[str, float]:
    return {row["measure"]: row["value_real"] for row in rows}


def test_logits_and_losses_stay_within_the_contract(
    parameters: Parameters, arrays: dict, tokens: np.ndarray, apply
) -> None:
    result = np.asarray(apply(parameters, tokens[:, :-1]))
    losses = np.asarray(token_losses(jnp.asarray(result), jnp.asarray(tokens[:, 1:])))
    expected = objective.reference_logits(arrays, tokens, MODEL)
    rows = objective.measure_reference(expected, tokens, result, losses)
    for measure, value in reals(rows).items():
        if value is not None:
            assert value <= limit("1.9", measure), (measure, value)
    counts = {row["measure"]: row["value_count"] for row in rows}
    assert counts["padded_targets_with_loss"] == 0
    assert counts["targets_compared"] == 6 + 3 + 2


@pytest.mark.parametrize("planted", ["shift", "pad_loss", "denominator"])
def test_a_planted_objective_leaves_the_contract(
    parameters: Parameters, arrays: dict, tokens: np.ndarray, apply, planted: str
) -> None:
    result = np.asarray(apply(parameters, tokens[:, :-1]))
    targets = jnp.asarray(tokens[:, 1:])
    losses = np.array(token_losses(jnp.asarray(result), targets))
    if planted == "shift":
        shifted = jnp.roll(targets, 1, axis=1)
        losses = np.array(token_losses(jnp.asarray(result), shifted))
    elif planted == "pad_loss":
        losses[tokens[:, 1:] == 0] = 0.01
    else:
        losses *= 11 / 12
    expected = objective.reference_logits(arrays, tokens, MODEL)
    rows = objective.measure_reference(expected, tokens, result, losses)
    assert reals(rows)["mean_loss_difference"] > limit("1.9", "mean_loss_difference")


def stored(parameters: Parameters, tokens: np.ndarray, apply) -> np.ndarray:
    result = apply(parameters, tokens[:, :-1])
    return np.asarray(token_losses(result, jnp.asarray(tokens[:, 1:])))


def test_batch_shapes_part_by_rounding_alone(
    parameters: Parameters, tokens: np.ndarray, apply
) -> None:
    losses = stored(parameters, tokens, apply)
    rows = objective.measure_batch_shapes(apply, parameters, tokens, (1, 2, 3), losses)
    assert [row["case_name"] for row in rows] == [
        "",
        "batch-01",
        "batch-02",
        "batch-03",
    ]
    for row in rows:
        assert row["value_real"] <= limit("1.9", row["measure"])
    details = [row["detail"] for row in rows[1:]]
    assert details == [f"against batches of {size}" for size in (3, 1, 1)]


@pytest.mark.parametrize("faulty", [1, 2, 3])
def test_a_fault_of_one_batch_size_shows_in_its_own_case(
    parameters: Parameters, tokens: np.ndarray, apply, faulty: int
) -> None:
    """No size is compared with itself, the largest and the smallest neither."""

    def wrong(parameters: Parameters, inputs: np.ndarray) -> np.ndarray:
        return np.asarray(apply(parameters, inputs)) + 0.01 * (len(inputs) == faulty)

    losses = stored(parameters, tokens, apply)
    rows = objective.measure_batch_shapes(wrong, parameters, tokens, (1, 2, 3), losses)
    allowed = limit("1.9", "batch_shape_largest_difference")
    beyond = {row["case_name"] for row in rows[1:] if row["value_real"] > allowed}
    # The smallest size is the other side of all, the largest that of the smallest.
    expected = {1: {1, 2, 3}, 2: {2}, 3: {1, 3}}[faulty]
    assert beyond == {f"batch-{size:02d}" for size in expected}


def test_stored_losses_of_another_evaluation_are_seen(
    parameters: Parameters, tokens: np.ndarray, apply
) -> None:
    losses = stored(parameters, tokens, apply) + np.float32(1e-3)
    (row, *_) = objective.measure_batch_shapes(apply, parameters, tokens, (1,), losses)
    assert row["value_real"] > limit("1.9", row["measure"])


def test_a_batch_size_compared_with_itself_is_an_error(tokens: np.ndarray) -> None:
    alone = objective.BatchLogits(1, np.zeros((3, 6, 5)))
    with pytest.raises(ValueError, match="compared with themselves"):
        objective._shapes_apart(alone, alone, tokens[:, :-1])


def test_a_model_that_looks_at_its_neighbours_is_seen(
    parameters: Parameters, tokens: np.ndarray, apply
) -> None:
    """As a batch normalisation would: every row hears of the mean of the batch."""

    def mixing(parameters: Parameters, inputs: np.ndarray) -> np.ndarray:
        clean = np.asarray(apply(parameters, inputs))
        return clean + 0.01 * clean.mean(axis=0, keepdims=True)

    losses = stored(parameters, tokens, apply)
    rows = objective.measure_batch_shapes(mixing, parameters, tokens, (1, 3), losses)
    allowed = limit("1.9", "batch_shape_largest_difference")
    assert min(row["value_real"] for row in rows[1:]) > allowed


def test_gradients_are_the_central_differences_in_every_tensor(
    gradients: dict, arrays: dict, tokens: np.ndarray
) -> None:
    rows = objective.measure_gradients(gradients, arrays, tokens, MODEL, 1)
    assert {row["case_name"] for row in rows if row["case_name"]} == set(arrays)
    for measure in MEASURES:
        worst = max(row["value_real"] for row in rows if row["measure"] == measure)
        assert worst <= limit("1.10", measure), (measure, worst)
    entries = {
        row["case_name"]: row["value_count"] for row in rows if row["unit"] == "entries"
    }
    assert entries == {name: 5 if ".c_attn." in name else 3 for name in arrays}


@pytest.mark.parametrize("third", [0, 1, 2], ids=["query", "key", "value"])
def test_a_path_cut_off_within_the_fused_matrix_is_seen(
    gradients: dict, arrays: dict, tokens: np.ndarray, third: int
) -> None:
    """The other two thirds are right, and hold the largest entry of the whole."""
    name = "h.0.attn.c_attn.weight"
    cut = np.array(gradients[name])
    width = cut.shape[1] // 3
    cut[:, third * width : (third + 1) * width] = 0.0
    rows = objective.measure_gradients(
        gradients | {name: cut}, arrays, tokens, MODEL, 1
    )
    difference = next(
        row["value_real"]
        for row in rows
        if row["case_name"] == name and row["unit"] == "1"
    )
    assert difference > limit("1.10", "gradient_largest_difference")


@pytest.mark.parametrize("planted", ["detached", "doubled", "one_percent"])
def test_a_wrong_gradient_is_named_by_its_tensor(
    gradients: dict, arrays: dict, tokens: np.ndarray, planted: str
) -> None:
    name = "h.0.attn.c_attn.bias"
    factor = {"detached": 0.0, "doubled": 2.0, "one_percent": 1.01}[planted]
    changed = gradients | {name: gradients[name] * np.float32(factor)}
    rows = objective.measure_gradients(changed, arrays, tokens, MODEL, 1)
    beyond = {
        (row["measure"], row["case_name"])
        for row in rows
        if row["unit"] == "1" and row["value_real"] > limit("1.10", row["measure"])
    }
    assert beyond == {(measure, name) for measure in MEASURES}


def test_entries_that_are_wrongly_zero_are_seen_where_single_ones_miss_them(
    gradients: dict, arrays: dict, tokens: np.ndarray
) -> None:
    """Single entries are drawn among those that have a gradient by the system."""
    name = "wte.weight"
    frozen = np.array(gradients[name])
    frozen[:3] = 0.0
    given = {name: frozen}
    rows = objective.measure_gradients(given, arrays, tokens, MODEL, 1)
    found = {row["measure"]: row["value_real"] for row in rows if row["unit"] == "1"}
    single, whole = (found[measure] for measure in MEASURES)
    assert single <= limit("1.10", MEASURES[0])
    assert whole > 100 * limit("1.10", MEASURES[1])


def counting_pad(
    predicted: jax.Array, targets: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The planted loss: no mask, in the sum and in the count."""
    chosen = jnp.take_along_axis(
        jax.nn.log_softmax(predicted, axis=-1), targets[..., None], axis=-1
    )
    return -jnp.sum(chosen), jnp.asarray(targets.size, dtype=jnp.int32)


def test_a_training_loss_that_counts_pad_has_another_gradient(
    parameters: Parameters,
    arrays: dict,
    tokens: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over the documents that the check itself takes: PAD has to be among them."""
    few = objective.mixed_documents(tokens, 2)
    monkeypatch.setattr("model.training.loss_sum_and_count", counting_pad)
    differentiate = jax.grad(partial(mean_loss, key=None, model=MODEL), has_aux=True)
    found, count = differentiate(parameters, jnp.asarray(few))
    assert count == few[:, 1:].size
    planted = {name: np.asarray(x) for name, x in found.items()}
    rows = objective.measure_gradients(planted, arrays, few, MODEL, 1)
    shares = {row["case_name"]: row["value_real"] for row in rows if row["unit"] == "1"}
    allowed = limit("1.10", "gradient_largest_difference")
    within = {name for name, share in shares.items() if share <= allowed}
    assert within == set(), shares
    assert min(shares.values()) > 0.01, shares
    assert rows[-1]["measure"] == "gradient_padded_targets"
    assert rows[-1]["value_count"] == 1


def test_documents_of_different_lengths_keep_their_pad(tokens: np.ndarray) -> None:
    assert objective.mixed_documents(tokens, 2).tolist() == [
        [1, 105, 2, 0],
        [1, 104, 127, 2],
    ]


@pytest.mark.parametrize(
    ("lengths", "wanted", "expected"),
    [
        ((7, 7, 9, 11, 13), 3, [7, 9, 11]),
        ((7, 7, 7, 9), 3, [7, 7, 9]),
        ((7, 7, 7), 3, [5, 6, 7]),
        ((40, 30, 30), 2, [16, 17]),
        ((40,), 1, [17]),
        ((4, 4, 4, 4), 4, [2, 2, 3, 4]),
    ],
)
def test_one_document_of_each_length_is_taken_and_long_ones_are_cut_apart(
    lengths: tuple[int, ...], wanted: int, expected: list[int]
) -> None:
    tokens = np.zeros((len(lengths), 41), dtype=np.int32)
    for row, length in enumerate(lengths):
        tokens[row, :length] = 5
    found = objective.mixed_documents(tokens, wanted)
    assert (found != 0).sum(axis=1).tolist() == expected
    assert found.shape[1] == max(expected)
    assert found.dtype == np.int32
