"""What has to run on a target, lowered for it: six endpoints and the training update.

Each is lowered for one platform alone. Lowered for several at once, a program that a
platform cannot run would hide behind one that it can.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import export

from model.adam import AdamState
from model.config import POLICIES
from model.endpoints import KINDS, endpoint_arguments, endpoint_function
from model.parameters import parameter_table
from model.training import TrainingState, training_update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from model.config import ModelConfig, TrainConfig

TRAINING_UPDATE = "training-update"
LOWERED_FOR: Mapping[str, str] = MappingProxyType({"tpu": "tpu", "gpu": "cuda"})
"""What a program has to be lowered for, by platform of the target."""


class TargetProgram(NamedTuple):
    """A function on plain arrays, and the shapes that it is lowered at."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def target_programs(model: ModelConfig, train: TrainConfig) -> Iterator[TargetProgram]:
    """Yields the six endpoints and the training update of a release.

    Args:
        model: Shape of the model.
        train: Recipe; one batch is one update.
    """
    for policy in POLICIES.values():
        for kind in KINDS:
            yield TargetProgram(
                name=f"{kind}-{policy.name}",
                function=endpoint_function(kind, model, policy),
                arguments=endpoint_arguments(kind, model, policy),
            )
    yield TargetProgram(
        name=TRAINING_UPDATE,
        function=training_function(model, train),
        arguments=training_arguments(model, train),
    )


def training_function(model: ModelConfig, train: TrainConfig) -> Callable[..., Any]:
    """The training update on plain arrays: state as dictionaries, a key as its data."""

    def training_update_of_arrays(
        parameters: dict[str, jax.Array],
        first_moment: dict[str, jax.Array],
        second_moment: dict[str, jax.Array],
        step: jax.Array,
        average: dict[str, jax.Array] | None,
        tokens: jax.Array,
        key_data: jax.Array,
    ) -> tuple[Any, ...]:
        adam = AdamState(
            first_moment=first_moment, second_moment=second_moment, step=step
        )
        state = TrainingState(parameters=parameters, adam=adam, average=average)
        key = jax.random.wrap_key_data(key_data)
        after, outcome = training_update(state, tokens, key, model, train.optimizer)
        return (
            after.parameters,
            after.adam.first_moment,
            after.adam.second_moment,
            after.adam.step,
            after.average,
            outcome.loss,
            outcome.valid_targets,
        )

    return training_update_of_arrays


def training_arguments(model: ModelConfig, train: TrainConfig) -> tuple[Any, ...]:
    """Shapes and dtypes of the arguments of `training_function`."""
    shape = jax.ShapeDtypeStruct
    parameters = {
        spec.name: shape(spec.shape, jnp.dtype(spec.dtype))
        for spec in parameter_table(model)
    }
    tokens = shape((train.batch_documents, model.context_tokens + 1), jnp.int32)
    average = parameters if train.optimizer.is_averaged else None
    return (
        *(parameters, parameters, parameters),
        *(shape((), jnp.int32), average, tokens, shape((2,), jnp.uint32)),
    )


def exported_for(program: TargetProgram, platform: str) -> tuple[Any, Any, bytes]:
    """A program lowered for one platform: as made, as read back, and its bytes.

    Args:
        program: What is lowered.
        platform: What JAX calls the platform when it lowers: tpu, cuda.
    """
    made = export.export(jax.jit(program.function), platforms=(platform,))(
        *program.arguments
    )
    data = bytes(made.serialize(vjp_order=0))
    return made, export.deserialize(bytearray(data)), data
