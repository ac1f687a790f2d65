"""One training update as a pure function, and the batches and keys it consumes.

Everything an update depends on is in its arguments: state, tokens and a key that
follows from the dropout seed and the number of the update. A restored process
therefore needs no hidden state to repeat an update bit by bit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp

from model.adam import AdamState, adam_update, initial_adam
from model.config import ModelConfig, OptimizerConfig
from model.objective import loss_sum_and_count
from model.parameters import Parameters, initial_parameters
from model.schedule import average_parameters, learning_rate
from model.transformer import logits

if TYPE_CHECKING:
    from jaxtyping import Array, Float32, Int32, Key


class TrainingState(NamedTuple):
    """Everything on the device that an update reads and replaces."""

    parameters: Parameters
    adam: AdamState
    average: Parameters | None = None
    """Average of parameters over the last updates, None where none is kept."""


class UpdateOutcome(NamedTuple):
    """What one update measured, all of it before the parameters moved."""

    loss: jax.Array
    """Mean loss per valid target in nats, with dropout, float32."""
    loss_sum: jax.Array
    """Loss of all valid targets in nats: what the mean is made of, float32."""
    valid_targets: jax.Array
    """Valid targets of the batch, int32."""
    gradients: Parameters
    """Gradient of the mean loss by parameter name."""
    is_gradient_finite: jax.Array
    """Whether every entry of every gradient is finite."""
    learning_rate: jax.Array
    """Learning rate of the update, float32."""


def initial_state(
    model: ModelConfig, initialization_seed: int, *, is_averaged: bool = False
) -> TrainingState:
    """Returns fresh parameters with zero moments and step 0."""
    parameters = initial_parameters(model, initialization_seed)
    return fresh_state(parameters, is_averaged=is_averaged)


def fresh_state(parameters: Parameters, *, is_averaged: bool) -> TrainingState:
    """Returns the state of a training that begins at these parameters.

    Args:
        parameters: Parameters by name, float32.
        is_averaged: Whether an average is kept; it begins as the parameters.
    """
    average = dict(parameters) if is_averaged else None
    adam = initial_adam(parameters)
    return TrainingState(parameters=parameters, adam=adam, average=average)


def released_parameters(state: TrainingState) -> Parameters:
    """Returns what is evaluated and released: the average where one is kept."""
    return state.parameters if state.average is None else state.average


def dropout_key(dropout_seed: int, update: int) -> Key[Array, ""]:
    """Returns the key that update number `update` (from 1) consumes."""
    return jax.random.fold_in(jax.random.key(dropout_seed), update)


def document_keys(
    key: Key[Array, ""], documents: Int32[Array, " B"]
) -> Key[Array, " B"]:
    """Returns the dropout key of each document: which one it is, not where it lies.

    Args:
        key: Key of the update.
        documents: Row of each document in the training split.
    """
    return jax.vmap(partial(jax.random.fold_in, key))(documents)


def summed_loss(
    parameters: Parameters,
    tokens: Int32[Array, "B T1"],
    key: Key[Array, "..."] | None,
    model: ModelConfig,
) -> tuple[Float32[Array, ""], Int32[Array, ""]]:
    """Returns the summed loss in nats, and the number of valid targets.

    Args:
        parameters: Parameters by name.
        tokens: Documents of context + 1 tokens; inputs are all but the last, targets
            all but the first.
        key: Dropout key, one key a document, or None for no dropout.
        model: Shape of the model.

    Reference: model/reference/objective.py
    """
    predicted = logits(parameters, tokens[:, :-1], model, dropout_key=key)
    return loss_sum_and_count(predicted, tokens[:, 1:])


def mean_loss(
    parameters: Parameters,
    tokens: Int32[Array, "B T1"],
    key: Key[Array, "..."] | None,
    model: ModelConfig,
) -> tuple[Float32[Array, ""], Int32[Array, ""]]:
    """Returns the loss per valid target in nats, and the number of valid targets.

    Args:
        parameters: Parameters by name.
        tokens: As `summed_loss`. At least one target must be valid.
        key: Dropout key, one key a document, or None for no dropout.
        model: Shape of the model.

    Reference: model/reference/objective.py
    """
    loss, (_, count) = _mean_and_parts(parameters, tokens, key, model)
    return loss, count


def _mean_and_parts(
    parameters: Parameters,
    tokens: jax.Array,
    key: jax.Array | None,
    model: ModelConfig,
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    loss_sum, count = summed_loss(parameters, tokens, key, model)
    return mean_of(loss_sum, count), (loss_sum, count)


def mean_of(total: jax.Array, count: Int32[Array, ""]) -> jax.Array:
    """Returns a sum over valid targets, divided by how many there are."""
    # The count is an integer until here; float32 holds it exactly below 2**24.
    return total / count.astype(jnp.float32)


@partial(jax.jit, static_argnames=("model", "optimizer"))
def training_update(
    state: TrainingState,
    tokens: Int32[Array, "B T1"],
    key: Key[Array, "..."] | None,
    model: ModelConfig,
    optimizer: OptimizerConfig,
) -> tuple[TrainingState, UpdateOutcome]:
    """Returns the state after one update, and what the update measured.

    Args:
        state: Parameters and optimizer state, float32.
        tokens: Batch of documents, PAD rows allowed.
        key: Dropout key of this update, one key a document, or None for no dropout.
        model: Shape of the model.
        optimizer: Adam's settings; with `average_decay` the state keeps an average.

    Reference: model/reference/adam.py, model/reference/schedule.py
    """
    objective = jax.value_and_grad(_mean_and_parts, has_aux=True)
    (loss, (loss_sum, count)), gradients = objective(
        state.parameters, tokens, key, model
    )
    return finish_update(state, loss, loss_sum, count, gradients, optimizer)


def finish_update(
    state: TrainingState,
    loss: Float32[Array, ""],
    loss_sum: Float32[Array, ""],
    count: Int32[Array, ""],
    gradients: Parameters,
    optimizer: OptimizerConfig,
) -> tuple[TrainingState, UpdateOutcome]:
    """Returns the state after one update by these gradients, and what was measured.

    Args:
        state: Parameters and optimizer state, float32.
        loss: Mean loss per valid target in nats.
        loss_sum: Summed loss in nats.
        count: Valid targets of the whole batch.
        gradients: Gradient of the mean loss by parameter name.
        optimizer: Adam's settings.
    """
    parameters, adam = adam_update(state.parameters, gradients, state.adam, optimizer)
    average = state.average
    if optimizer.is_averaged:
        assert average is not None, "the state was begun without an average"
        average = average_parameters(average, parameters, adam.step, optimizer)
    finite = [jnp.all(jnp.isfinite(gradient)) for gradient in gradients.values()]
    outcome = UpdateOutcome(
        loss=loss,
        loss_sum=loss_sum,
        valid_targets=count,
        gradients=gradients,
        is_gradient_finite=jnp.all(jnp.stack(finite)),
        learning_rate=learning_rate(adam.step, optimizer),
    )
    after = TrainingState(parameters=parameters, adam=adam, average=average)
    return after, outcome
