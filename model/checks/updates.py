"""Claim 1.10: what one update of a training makes of its gradients.

An Adam that is wrong trains to a plausible loss, and equals itself in every restore. So
updates that were really made are made again in NumPy float64, each from the state and
the gradients that the system had. The declared recipe may move no rate and shrink no
matrix; a recipe that does all of it is followed for a few updates beside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from model.adam import adam_update
from model.checks.differences import largest_difference, largest_value
from model.checks.rows import Row, real
from model.config import OptimizerConfig
from model.parameters import Parameters
from model.reference import adam as reference
from model.reference import schedule as reference_schedule
from model.schedule import average_parameters
from model.training import TrainingState, fresh_state

CLAIM = "1.10"
MOVING = OptimizerConfig(
    beta1=0.8,
    beta2=0.95,
    epsilon=1e-4,
    warmup_updates=3,
    decay_updates=4,
    final_learning_rate_share=0.1,
    weight_decay=0.5,
    final_weight_decay=2.0,
    weight_decay_rise_after=2,
    weight_decay_rise_updates=3,
    average_decay=0.6,
)
"""Every rate moves within a few updates: up, down, and kept at its end."""
MOVING_UPDATES = 9
LATE_UPDATE = 2000
"""A count of updates that ends early, or in few bits, shows only behind its end."""

Arrays = Mapping[str, np.ndarray]


def checked_updates(final_update: int) -> list[int]:
    """Returns which updates are made again: two at the start, the middle, the last."""
    chosen = {1, 2, final_update // 2, final_update}
    return sorted(update for update in chosen if 1 <= update <= final_update)


def measure_update(
    case: str,
    before: TrainingState,
    gradients: Parameters,
    after: TrainingState,
    optimizer: OptimizerConfig,
) -> list[Row]:
    """Returns how far an update lies from the one of the reference.

    Args:
        case: Which update it is.
        before: State that the system had.
        gradients: Gradients that the system had.
        after: State that the system made of them.
        optimizer: Adam's settings.

    Reference: model/reference/adam.py, model/reference/schedule.py
    """
    step = int(before.adam.step) + 1
    moments = (_host(before.adam.first_moment), _host(before.adam.second_moment))
    moved, (first, second) = reference.adam_update(
        _host(before.parameters), _host(gradients), moments, step, optimizer
    )
    rate = reference_schedule.learning_rate(step, optimizer)
    own = _host(after.parameters)
    rows = [
        _row("first_moment", case, _relative(_host(after.adam.first_moment), first)),
        _row("second_moment", case, _relative(_host(after.adam.second_moment), second)),
        _row("parameters", case, _beyond_rounding(own, moved, rate)),
        _row("step", case, float(abs(int(after.adam.step) - step))),
    ]
    if optimizer.is_averaged:
        assert before.average is not None, "the state was begun without an average"
        assert after.average is not None, "the update has lost the average"
        average = reference_schedule.average_parameters(
            _host(before.average), own, step, optimizer
        )
        rows.append(_row("average", case, _relative(_host(after.average), average)))
    return rows


def measure_moving_recipe(parameters: Parameters, gradients: Parameters) -> list[Row]:
    """Returns the same of a recipe whose rates, decay and average all move.

    Args:
        parameters: Parameters by name, float32.
        gradients: Gradients by name; each update sees another multiple of them.
    """
    update = jax.jit(partial(adam_update, optimizer=MOVING))
    average = jax.jit(partial(average_parameters, optimizer=MOVING))
    state, rows = fresh_state(parameters, is_averaged=True), []
    for number in (*range(1, MOVING_UPDATES + 1), LATE_UPDATE):
        if number == LATE_UPDATE:
            late = state.adam._replace(step=jnp.int32(number - 1))
            state = state._replace(adam=late)
        factor = np.float32(1.0 + 0.5 * (-1.0) ** number)
        given = {name: gradient * factor for name, gradient in gradients.items()}
        moved, adam = update(state.parameters, given, state.adam)
        assert state.average is not None, "the state was begun with an average"
        after = TrainingState(
            parameters=moved,
            adam=adam,
            average=average(state.average, moved, adam.step),
        )
        rows += measure_update(
            f"moving/update-{number:02d}", state, given, after, MOVING
        )
        state = after
    return rows


def measure_learning_rates(
    recorded: Sequence[float], first_update: int, optimizer: OptimizerConfig
) -> Row:
    """Returns how far the recorded learning rates lie from the schedule's.

    Args:
        recorded: Learning rate of every update, one after another.
        first_update: Number of the first of them.
        optimizer: Adam's settings.
    """
    apart = [
        abs(rate - reference_schedule.learning_rate(update, optimizer))
        for update, rate in enumerate(recorded, start=first_update)
    ]
    share = largest_value(apart) / optimizer.learning_rate
    detail = f"{len(recorded)} updates, as a share of the peak"
    return real(CLAIM, "learning_rate_largest_difference", "", share, "1", detail)


def measure_gradients(
    update: int, expected: Parameters, recorded: Parameters
) -> list[Row]:
    """Returns how far the gradients of an update lie from those of its mean loss.

    Args:
        update: Number of the update.
        expected: Gradient of the mean loss, by a program without an optimizer.
        recorded: Gradients that the update was made of.
    """
    apart = _relative(_host(recorded), _host(expected))
    return [_row("gradients", f"trained/update-{update:03d}", apart)]


def _row(what: str, case: str, apart: float) -> Row:
    unit = "updates" if what == "step" else "1"
    return real(CLAIM, f"update_{what}_largest_difference", case, apart, unit)


def _host(tree: Parameters) -> dict[str, np.ndarray]:
    return {name: np.asarray(x) for name, x in tree.items()}


def _relative(measured: Arrays, expected: Arrays) -> float:
    """Returns the largest difference as a share of the largest entry of its tensor."""
    shares = []
    for name, exact in expected.items():
        wide = np.asarray(exact, np.float64)
        apart = largest_difference(wide, measured[name])
        scale = float(np.abs(wide).max())
        shares.append(apart / scale if scale > 0.0 else apart)
    return largest_value(shares)


def _beyond_rounding(measured: Arrays, expected: Arrays, rate: float) -> float:
    """Returns the largest difference that rounding a parameter to float32 leaves
    unexplained, as a share of the learning rate, which is what a step of size 1 moves.
    """
    shares = []
    for name, exact in expected.items():
        if np.shape(measured[name]) != np.shape(exact):
            return math.inf
        spacing = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
        apart = np.abs(measured[name].astype(np.float64) - exact) - spacing
        shares.append(float(np.maximum(apart, 0.0).max()) / rate)
    return largest_value(shares)
