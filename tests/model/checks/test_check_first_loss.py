"""A training loss that was taken too late, or without dropout, is found by its bits."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model.checks.first_loss import RecordedLoss, measure_loss, measure_other_losses
from model.config import ModelConfig, OptimizerConfig
from model.parameters import initial_parameters
from model.training import dropout_key, initial_state, mean_loss, training_update

MODEL = ModelConfig(context_tokens=6, width=12, feed_forward_width=16)
TOKENS = np.array(
    [[1, 100, 101, 102, 127, 102, 2], [1, 104, 127, 2, 0, 0, 0]], np.int32
)
KEY = dropout_key(13, 1)


@pytest.fixture(scope="module")
def losses() -> dict[str, float]:
    """The recorded loss, and what a training might have recorded in its place."""
    state = initial_state(MODEL, 3)
    tokens = jnp.asarray(TOKENS)
    differentiate = jax.jit(
        jax.value_and_grad(partial(mean_loss, model=MODEL), has_aux=True)
    )
    after, outcome = training_update(state, tokens, KEY, MODEL, OptimizerConfig())
    return {
        "right": float(outcome.loss),
        "without_dropout": float(differentiate(state.parameters, tokens, None)[0][0]),
        "other_key": float(
            differentiate(state.parameters, tokens, dropout_key(13, 2))[0][0]
        ),
        "after_update": float(differentiate(after.parameters, tokens, KEY)[0][0]),
    }


def equal_measures(recorded_nats: float) -> set[str]:
    state = initial_state(MODEL, 3)
    tokens = jnp.asarray(TOKENS)
    after, _ = training_update(state, tokens, KEY, MODEL, OptimizerConfig())
    recorded = RecordedLoss(
        update=1,
        nats=recorded_nats,
        documents=TOKENS,
        key_data=np.asarray(jax.random.key_data(KEY)),
    )
    initial = initial_parameters(MODEL, 3)
    own, _ = measure_loss(recorded, initial, MODEL)
    rows = [own, *measure_other_losses(recorded, initial, after.parameters, MODEL)]
    assert len(rows) == 3
    return {row["measure"] for row in rows if row["expected"] == row["measured"]}


def test_the_recorded_loss_is_the_one_before_the_update_with_dropout(
    losses: dict[str, float],
) -> None:
    assert equal_measures(losses["right"]) == {"loss_before_update_with_dropout"}


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ("without_dropout", {"loss_without_dropout"}),
        ("after_update", {"loss_after_update"}),
        ("other_key", set()),
    ],
)
def test_another_loss_in_its_place_is_found(
    losses: dict[str, float], planted: str, found: set[str]
) -> None:
    assert equal_measures(losses[planted]) == found
