"""One update depends on its arguments alone, and the loop stops where numbers end."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import training
from model.checkpoint import state_arrays
from model.config import ModelConfig, TrainConfig
from model.digests import tree_sha256
from model.reference import schedule as reference
from model.refusal import Refused
from model.training_loop import initial_progress, run_updates
from tests.model.made_tokens import token_table

MODEL = ModelConfig()
TRAIN = TrainConfig()


@pytest.fixture(scope="module")
def tokens() -> np.ndarray:
    return token_table(40)


def digests(tokens: np.ndarray, train: TrainConfig, updates: int) -> list[str]:
    state = training.initial_state(MODEL, train.initialization_seed)
    progress = initial_progress(train, len(tokens))
    made = run_updates(state, progress, tokens, MODEL, train, updates)
    return [tree_sha256(state_arrays(one.state)) for one in made]


def test_the_same_seeds_give_the_same_bits(tokens: np.ndarray) -> None:
    first, second = (digests(tokens, TRAIN, 5) for _ in range(2))
    assert first == second
    assert len(set(first)) == 5


def test_the_loss_is_that_before_the_update_with_dropout(tokens: np.ndarray) -> None:
    state = training.initial_state(MODEL, 1)
    key = training.dropout_key(3, 1)
    batch = jnp.asarray(tokens[:16])
    after, outcome = training.training_update(state, batch, key, MODEL, TRAIN.optimizer)
    loss = jax.jit(training.mean_loss, static_argnames="model")
    before, _ = loss(state.parameters, batch, key, MODEL)
    later, _ = loss(after.parameters, batch, key, MODEL)
    undropped, _ = loss(state.parameters, batch, None, MODEL)
    assert abs(float(outcome.loss) - float(before)) < 1e-5
    assert abs(float(outcome.loss) - float(later)) > 1e-3
    assert abs(float(outcome.loss) - float(undropped)) > 1e-4


def test_the_state_that_goes_in_is_left_alone(tokens: np.ndarray) -> None:
    state = training.initial_state(MODEL, 1)
    before = tree_sha256(state_arrays(state))
    key = training.dropout_key(3, 1)
    training.training_update(
        state, jnp.asarray(tokens[:16]), key, MODEL, TRAIN.optimizer
    )
    assert tree_sha256(state_arrays(state)) == before


def test_the_last_batch_of_an_epoch_is_kept_short_and_counted(
    tokens: np.ndarray,
) -> None:
    """40 documents in batches of 16: 16, 16, 8, and then the next epoch."""
    state = training.initial_state(MODEL, 1)
    progress = initial_progress(TRAIN, len(tokens))
    made = list(run_updates(state, progress, tokens, MODEL, TRAIN, 4))
    assert [len(one.rows) for one in made] == [16, 16, 8, 16]
    assert [one.cursor.epoch for one in made] == [0, 0, 0, 1]
    assert [one.cursor.position for one in made] == [0, 16, 32, 0]
    first_epoch = np.concatenate([one.rows for one in made[:3]])
    assert sorted(first_epoch.tolist()) == list(range(40))
    counted = made[2].progress.cumulative_valid_targets
    assert counted == int((tokens[:, 1:] != 0).sum())
    assert made[1].progress.order_sha256 == progress.order_sha256
    assert made[2].progress.order_sha256 != progress.order_sha256


def test_every_update_has_its_own_dropout_key() -> None:
    keys = {
        np.asarray(jax.random.key_data(training.dropout_key(seed, update))).tobytes()
        for seed in (1, 2)
        for update in (1, 2, 3)
    }
    assert len(keys) == 6


def test_a_loss_that_is_not_finite_stops_the_training_at_its_update(
    tokens: np.ndarray,
) -> None:
    state = training.initial_state(MODEL, 1)
    weight = state.parameters["ln_f.weight"].at[0].set(jnp.nan)
    broken = state._replace(parameters=state.parameters | {"ln_f.weight": weight})
    updates = run_updates(broken, initial_progress(TRAIN, 40), tokens, MODEL, TRAIN, 3)
    with pytest.raises(Refused, match="update 1 is nan") as refused:
        next(updates)
    assert refused.value.code == "non_finite_loss"


def test_a_gradient_that_is_not_finite_is_named(
    tokens: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overflow(*arguments: object) -> tuple:
        state, outcome = training.training_update(*arguments)
        name = "h.0.mlp.c_fc.bias"
        broken = outcome.gradients | {name: outcome.gradients[name] * jnp.inf}
        return state, outcome._replace(
            gradients=broken, is_gradient_finite=jnp.asarray(False)
        )

    monkeypatch.setattr("model.training_loop.training_update", overflow)
    state = training.initial_state(MODEL, 1)
    updates = run_updates(state, initial_progress(TRAIN, 40), tokens, MODEL, TRAIN, 3)
    with pytest.raises(
        Refused, match=r"'h\.0\.mlp\.c_fc\.bias' in update 1"
    ) as refused:
        next(updates)
    assert refused.value.code == "non_finite_gradient"


AVERAGED = replace(TRAIN, optimizer=replace(TRAIN.optimizer, average_decay=0.9))


def test_the_average_is_kept_beside_parameters_that_do_not_move_by_it(
    tokens: np.ndarray,
) -> None:
    """The plain recipe has none, and the averaged one has the same parameters."""
    plain = training.initial_state(MODEL, 1)
    averaged = training.initial_state(MODEL, 1, is_averaged=True)
    made = [
        list(run_updates(state, initial_progress(train, 40), tokens, MODEL, train, 3))
        for state, train in ((plain, TRAIN), (averaged, AVERAGED))
    ]
    last, other = made[0][-1].state, made[1][-1].state
    assert last.average is None
    assert training.released_parameters(last) is last.parameters
    assert tree_sha256(last.parameters) == tree_sha256(other.parameters)
    assert training.released_parameters(other) is other.average
    expected = {name: np.asarray(x) for name, x in averaged.parameters.items()}
    for step, one in enumerate(made[1], start=1):
        expected = reference.average_parameters(
            expected, one.state.parameters, step, AVERAGED.optimizer
        )
    apart = max(
        float(np.abs(np.asarray(other.average[name]) - expected[name]).max())
        for name in expected
    )
    assert apart < 1e-6, apart


def test_the_learning_rate_of_an_update_is_recorded_by_the_update(
    tokens: np.ndarray,
) -> None:
    optimizer = replace(TRAIN.optimizer, learning_rate=0.01, warmup_updates=4)
    train = replace(TRAIN, optimizer=optimizer)
    state = training.initial_state(MODEL, 1)
    made = run_updates(state, initial_progress(train, 40), tokens, MODEL, train, 5)
    rates = [float(one.outcome.learning_rate) for one in made]
    assert rates == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01])


def test_an_overflowing_gradient_is_reported_by_the_update_itself(
    tokens: np.ndarray,
) -> None:
    state = training.initial_state(MODEL, 1)
    weight = state.parameters["lm_head.weight"] * jnp.float32(1e38)
    huge = state._replace(parameters=state.parameters | {"lm_head.weight": weight})
    _, outcome = training.training_update(
        huge, jnp.asarray(tokens[:16]), None, MODEL, TRAIN.optimizer
    )
    assert not bool(outcome.is_gradient_finite)
