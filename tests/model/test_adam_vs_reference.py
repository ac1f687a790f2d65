"""Three updates of Adam against the paper's algorithm in NumPy float64.

Gradients span eight powers of ten, so that epsilon matters where they are small; a
third update tells the moments from their bias corrections.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model.adam import AdamState, adam_update, initial_adam
from model.config import OptimizerConfig
from model.reference import adam as reference

OPTIMIZER = OptimizerConfig(epsilon=1e-4)


def gradients(update: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(update)
    scale = 10.0 ** generator.integers(-8, 1, 40)
    return {
        "matrix": (generator.normal(0, 1, 40) * scale).astype(np.float32).reshape(5, 8),
        "bias": generator.normal(0, 1e-3, 3).astype(np.float32),
    }


def start() -> dict[str, np.ndarray]:
    return {name: np.ones_like(x) for name, x in gradients(0).items()}


def by_reference(
    updates: int, optimizer: OptimizerConfig = OPTIMIZER
) -> dict[str, np.ndarray]:
    zeros = {name: np.zeros_like(x) for name, x in start().items()}
    parameters, moments = start(), (zeros, zeros)
    for step in range(1, updates + 1):
        parameters, moments = reference.adam_update(
            parameters, gradients(step), moments, step, optimizer
        )
    return parameters


def by_jax(updates: int, optimizer: OptimizerConfig, **planted: int) -> dict:
    parameters = {name: jnp.asarray(x) for name, x in start().items()}
    state = initial_adam(parameters)
    update = jax.jit(partial(adam_update, optimizer=optimizer))
    for step in range(1, updates + 1):
        if step == planted.get("reset_step_at"):
            state = state._replace(step=jnp.zeros((), dtype=jnp.int32))
        if step == planted.get("reset_moments_at"):
            state = initial_adam(parameters)._replace(step=state.step)
        given = {name: jnp.asarray(x) for name, x in gradients(step).items()}
        parameters, state = update(parameters, given, state)
    assert isinstance(state, AdamState)
    assert int(state.step) == updates or planted
    return parameters


def furthest(parameters: dict, optimizer: OptimizerConfig = OPTIMIZER) -> float:
    expected = by_reference(3, optimizer)
    return max(
        float(np.abs(np.asarray(parameters[name]) - expected[name]).max())
        for name in expected
    )


def test_three_updates_are_those_of_the_reference() -> None:
    apart = furthest(by_jax(3, OPTIMIZER))
    assert apart < 1e-6, apart


@pytest.mark.parametrize("planted", ["reset_step_at", "reset_moments_at"])
def test_a_state_that_is_reset_is_seen(planted: str) -> None:
    apart = furthest(by_jax(3, OPTIMIZER, **{planted: 3}))
    assert apart > 1e-4, apart


def test_another_epsilon_is_seen_so_its_place_matters() -> None:
    """Inside the root the same number would act like its square root, 1e-2."""
    apart = furthest(by_jax(3, OptimizerConfig(epsilon=1e-2)))
    assert apart > 1e-4, apart


def test_a_moving_rate_and_a_rising_weight_decay_are_those_of_the_reference() -> None:
    """Every update of the three has another rate and another decay."""
    optimizer = replace(
        OPTIMIZER,
        learning_rate=0.03,
        warmup_updates=2,
        decay_updates=2,
        final_learning_rate_share=0.1,
        weight_decay=0.5,
        final_weight_decay=2.0,
        weight_decay_rise_after=1,
        weight_decay_rise_updates=4,
    )
    apart = furthest(by_jax(3, optimizer), optimizer)
    assert apart < 1e-6, apart
    still = replace(optimizer, weight_decay_rise_updates=0)
    apart = furthest(by_jax(3, still), optimizer)
    assert apart > 1e-3, apart


def test_weight_decay_shrinks_matrices_and_leaves_biases_alone() -> None:
    decaying = replace(OPTIMIZER, weight_decay=5.0)
    plain, shrunk = by_jax(3, OPTIMIZER), by_jax(3, decaying)
    assert (np.asarray(shrunk["bias"]) == np.asarray(plain["bias"])).all()
    assert (np.asarray(shrunk["matrix"]) < np.asarray(plain["matrix"])).all()


def test_moments_are_float32_and_the_step_an_integer() -> None:
    state = initial_adam({"x": jnp.ones(2, dtype=jnp.float32)})
    assert state.step.dtype == jnp.int32
    assert state.first_moment["x"].dtype == jnp.float32
    assert state.second_moment["x"].dtype == jnp.float32
