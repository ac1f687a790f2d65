"""An update of a state that no device holds as a whole.

The collective update, and nothing of its arithmetic is new: parameters, their moments
and gradients lie in equal parts on all devices, so that a state may be as large as all
of them together. XLA puts parameters together where they are multiplied, and takes
gradients apart where they were added up.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from model.collective_update import AXIS, CollectiveUpdate
from model.training import TrainingState, initial_state


class ShardedUpdate(CollectiveUpdate):
    """Makes updates by the production program, its state in parts on all devices."""

    def layout(self, state: TrainingState) -> TrainingState:
        """Returns how each array of a state lies on the devices: in parts if it can."""
        return jax.tree.map(self._in_parts, state)

    def whole(self, state: TrainingState) -> TrainingState:
        """Returns the state with all of every array on this controller."""
        found: TrainingState = self._together(state)
        return found

    def template(self) -> TrainingState:
        """Returns shape, dtype and layout of each array of a state, and no values."""
        is_averaged = self.train.optimizer.is_averaged
        seed = self.train.initialization_seed
        shapes = jax.eval_shape(
            partial(initial_state, self.model, seed, is_averaged=is_averaged)
        )
        return jax.tree.map(
            lambda x, place: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place),
            shapes,
            self.layout(shapes),
        )

    def _in_parts(self, array: Any) -> NamedSharding:
        axis = parted_axis(array.shape, self.mesh.size)
        parted = () if axis is None else (*(None,) * axis, AXIS)
        return NamedSharding(self.mesh, PartitionSpec(*parted))

    @cached_property
    def _together(self) -> Any:
        return jax.jit(lambda state: state, out_shardings=self.everywhere)


def parted_axis(shape: tuple[int, ...], devices: int) -> int | None:
    """Returns the axis along which an array is cut into equal parts; None for none.

    Args:
        shape: Its shape.
        devices: How many parts there are.

    Returns:
        The first axis that can be cut so; arrays are never filled up.
    """
    for axis, length in enumerate(shape):
        if devices > 1 and length % devices == 0:
            return axis
    return None
