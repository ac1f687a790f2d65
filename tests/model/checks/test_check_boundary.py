"""The boundary checks find a leak that trains to a lower loss and looks fine."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model.checks import boundary
from model.config import ModelConfig
from model.parameters import Parameters, initial_parameters
from model.transformer import attention_weights, logits

MODEL = ModelConfig(context_tokens=6, width=12)
FUTURE = {"positions": 0, "tokens": 0, "seed": 1}


@pytest.fixture(scope="module")
def parameters() -> Parameters:
    return initial_parameters(MODEL, 2)


@pytest.fixture(scope="module")
def inputs() -> np.ndarray:
    return np.array([[1, 100, 101, 102, 127, 102], [1, 104, 127, 0, 0, 0]], np.int32)


@pytest.fixture(scope="module")
def weights(parameters: Parameters, inputs: np.ndarray) -> np.ndarray:
    weigh = jax.jit(partial(attention_weights, model=MODEL))
    return np.asarray(weigh(parameters, inputs))


def values(rows: list[dict]) -> dict[str, float]:
    return {
        row["measure"]: row["value_real"]
        if row["value_count"] is None
        else row["value_count"]
        for row in rows
    }


def arrays(parameters: Parameters) -> dict[str, np.ndarray]:
    return {name: np.asarray(x) for name, x in parameters.items()}


def test_no_future_token_moves_an_earlier_logit(
    parameters: Parameters, inputs: np.ndarray
) -> None:
    measured = values(
        boundary.measure_future_tokens(
            partial(logits, model=MODEL), parameters, inputs, MODEL, **FUTURE
        )
    )
    assert measured["earlier_logits_changed"] == 0
    assert measured["own_or_later_logits_changed"] > 100_000
    assert measured["token_changes_without_effect"] == 0
    assert measured["token_changes"] == 2 * 5 * 258


def leaking(parameters: Parameters, tokens: jax.Array) -> jax.Array:
    """The smallest leak: one logit hears of the next token, by one millionth."""
    clean = logits(parameters, tokens, MODEL)
    next_is_a = (jnp.roll(tokens, -1, axis=1) == 100).astype(jnp.float32)
    return clean.at[:, :-1, 5].add(1e-6 * next_is_a[:, :-1])


def test_the_smallest_leak_is_counted(
    parameters: Parameters, inputs: np.ndarray
) -> None:
    measured = values(
        boundary.measure_future_tokens(leaking, parameters, inputs, MODEL, **FUTURE)
    )
    assert measured["earlier_logits_changed"] > 0


def test_a_system_that_hears_nothing_is_seen_too(
    parameters: Parameters, inputs: np.ndarray
) -> None:
    """Logits that never change would pass a check of earlier positions alone."""

    def deaf(parameters: Parameters, tokens: jax.Array) -> jax.Array:
        return logits(parameters, jnp.zeros_like(tokens), MODEL)

    measured = values(
        boundary.measure_future_tokens(deaf, parameters, inputs, MODEL, **FUTURE)
    )
    assert measured["own_or_later_logits_changed"] == 0
    assert measured["token_changes_without_effect"] == 2 * 5 * 258


def test_one_change_without_effect_among_many_is_counted(
    parameters: Parameters, inputs: np.ndarray
) -> None:
    """One token that is read like another leaves the sum of changes as large."""

    def confusing(parameters: Parameters, tokens: jax.Array) -> jax.Array:
        return logits(parameters, jnp.where(tokens == 200, 101, tokens), MODEL)

    measured = values(
        boundary.measure_future_tokens(confusing, parameters, inputs, MODEL, **FUTURE)
    )
    assert measured["own_or_later_logits_changed"] > 100_000
    assert measured["token_changes_without_effect"] == 1


def test_a_sample_is_drawn_by_its_seed_and_counted(
    parameters: Parameters, inputs: np.ndarray
) -> None:
    run = partial(
        boundary.measure_future_tokens,
        partial(logits, model=MODEL),
        parameters,
        inputs,
        MODEL,
        positions=2,
        tokens=7,
    )
    first, again = run(seed=1), run(seed=1)
    assert first == again
    assert values(first)["token_changes"] == 2 * 2 * 7


def test_the_weights_of_the_model_are_those_of_the_loops(
    parameters: Parameters, inputs: np.ndarray, weights: np.ndarray
) -> None:
    attention = boundary.reference_attention(arrays(parameters), inputs, weights, MODEL)
    measured = values(boundary.measure_attention(attention))
    assert measured["row_largest_difference"] < 1e-6
    assert measured["hidden_keys_with_weight"] == 0
    assert measured["row_sum_largest_error"] < 1e-6
    assert measured["rows_compared"] == 2 * 2 * 6
    one = boundary.measure_one_row(arrays(parameters), inputs[1], weights[0, 1], MODEL)
    assert [row["case_name"] for row in one] == ["head-00", "head-01"]
    assert max(row["value_real"] for row in one) < 1e-6


def test_a_little_weight_on_a_hidden_key_is_counted(
    parameters: Parameters, inputs: np.ndarray, weights: np.ndarray
) -> None:
    leaked = weights.copy()
    leaked[0, 0, 1, 2, 4] = 1e-30
    leaked[0, 1, 0, 5, 4] = 1e-30
    attention = boundary.reference_attention(arrays(parameters), inputs, leaked, MODEL)
    measured = values(boundary.measure_attention(attention))
    assert measured["hidden_keys_with_weight"] == 2


def test_a_wrong_scale_is_seen_in_rows_that_still_sum_to_1(
    parameters: Parameters, inputs: np.ndarray, weights: np.ndarray
) -> None:
    wider = dict(parameters)
    wider["h.0.attn.c_attn.weight"] = wider["h.0.attn.c_attn.weight"] * 1.2
    attention = boundary.reference_attention(arrays(wider), inputs, weights, MODEL)
    measured = values(boundary.measure_attention(attention))
    assert measured["row_largest_difference"] > 1e-3
    assert measured["row_sum_largest_error"] < 1e-6
    one = boundary.measure_one_row(arrays(wider), inputs[0], weights[0, 0], MODEL)
    assert max(row["value_real"] for row in one) > 1e-3


def test_recorded_weights_name_document_block_head_query_and_key(
    parameters: Parameters, inputs: np.ndarray, weights: np.ndarray
) -> None:
    attention = boundary.reference_attention(arrays(parameters), inputs, weights, MODEL)
    rows = list(boundary.attention_rows(attention, ["a", "b"]))
    assert len(rows) == 2 * 2 * 6 * 6
    chosen = [
        row
        for row in rows
        if (row["document_id"], row["head"], row["query"], row["key"]) == ("b", 1, 2, 1)
    ]
    assert [row["weight"] for row in chosen] == [float(weights[0, 1, 1, 2, 1])]
