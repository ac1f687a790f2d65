"""Rates, decays and the average of parameters against plain Python in float64.

Steps lie before, on and behind every corner of the schedules, because a schedule that
is off by one there is right almost everywhere.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import schedule
from model.config import OptimizerConfig
from model.presets import fixture
from model.reference import schedule as reference

OPTIMIZER = OptimizerConfig(
    learning_rate=0.02,
    warmup_updates=10,
    decay_updates=100,
    final_learning_rate_share=0.25,
    weight_decay=0.5,
    final_weight_decay=4.0,
    weight_decay_rise_after=30,
    weight_decay_rise_updates=40,
    average_decay=0.9,
)
STEPS = (1, 2, 9, 10, 11, 29, 30, 31, 59, 60, 69, 70, 71, 109, 110, 111, 5000)
SCHEDULES = ("learning_rate", "weight_decay")


def furthest(name: str, declared: OptimizerConfig, used: OptimizerConfig) -> float:
    """Largest share by which the system, under `used`, is off the reference."""
    apart = []
    for step in STEPS:
        expected = getattr(reference, name)(step, declared)
        measured = getattr(schedule, name)(jnp.asarray(step, jnp.int32), used)
        assert measured.dtype == jnp.float32
        apart.append(abs(float(measured) - expected) / expected)
    return max(apart)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_that_of_the_reference(name: str) -> None:
    apart = furthest(name, OPTIMIZER, OPTIMIZER)
    assert apart < 1e-6, apart


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("learning_rate", {"warmup_updates": 11}),
        ("learning_rate", {"decay_updates": 101}),
        ("learning_rate", {"final_learning_rate_share": 0.24}),
        ("weight_decay", {"weight_decay_rise_after": 31}),
        ("weight_decay", {"weight_decay_rise_updates": 41}),
        ("weight_decay", {"final_weight_decay": 4.1}),
    ],
)
def test_a_schedule_that_is_off_by_one_is_seen(name: str, changed: dict) -> None:
    apart = furthest(name, OPTIMIZER, replace(OPTIMIZER, **changed))
    assert apart > 1e-3, apart


def test_the_plain_recipe_has_one_rate_and_computes_no_schedule() -> None:
    """Its program holds no operation that the step goes into, so no bit can move."""
    plain = fixture().train.optimizer
    for name in SCHEDULES:
        traced = jax.make_jaxpr(
            lambda step, name=name: getattr(schedule, name)(step, plain)
        )
        jaxpr = traced(jnp.int32(7)).jaxpr
        assert not any(jaxpr.invars[0] in each.invars for each in jaxpr.eqns)
    assert float(schedule.learning_rate(jnp.int32(7), plain)) == np.float32(3e-3)
    assert not schedule.has_weight_decay(plain)
    assert not plain.is_averaged


def averages(updates: int, optimizer: OptimizerConfig) -> tuple[np.ndarray, np.ndarray]:
    """Average of drawn parameters by the system, and by the reference."""
    generator = np.random.default_rng(3)
    start = generator.normal(0, 1, 20).astype(np.float32)
    measured, expected = {"x": jnp.asarray(start)}, {"x": start}
    for step in range(1, updates + 1):
        drawn = generator.normal(0, 1, 20).astype(np.float32)
        number = jnp.asarray(step, jnp.int32)
        measured = schedule.average_parameters(
            measured, {"x": jnp.asarray(drawn)}, number, optimizer
        )
        expected = reference.average_parameters(expected, {"x": drawn}, step, OPTIMIZER)
    return np.asarray(measured["x"]), expected["x"]


def test_the_average_is_that_of_the_reference_young_and_old() -> None:
    for updates in (1, 5, 120):
        measured, expected = averages(updates, OPTIMIZER)
        assert measured.dtype == np.float32
        apart = float(np.abs(measured - expected).max())
        assert apart < 1e-6, (updates, apart)
    measured, expected = averages(120, replace(OPTIMIZER, average_decay=0.91))
    assert float(np.abs(measured - expected).max()) > 1e-2
