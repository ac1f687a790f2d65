"""One update of a batch that is laid out over the devices of all controllers.

It is the production update itself: all that is new is where its arrays lie. XLA chooses
the order of its sums, so it agrees with one process within a limit.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from model.config import ModelConfig, TrainConfig
from model.controllers import first_compiles, meet
from model.data_parallel import ordered_devices, padded_rows
from model.placement import description_of
from model.tokenizer import PAD
from model.training import (
    TrainingState,
    UpdateOutcome,
    document_keys,
    training_update,
)

AXIS = "documents"


class CollectiveUpdate:
    """Makes updates by the production program, its batch laid out over all devices."""

    def __init__(self, model: ModelConfig, train: TrainConfig) -> None:
        """Lays a batch out over all devices there are.

        Args:
            model: Shape of the model.
            train: Recipe; a batch is filled up to the same size on every device.
        """
        self.model = model
        self.train = train
        self.mesh = Mesh(np.array(ordered_devices()), (AXIS,))
        self.everywhere = NamedSharding(self.mesh, PartitionSpec())
        self.by_document = NamedSharding(self.mesh, PartitionSpec(AXIS))
        self.documents_of_device = -(-train.batch_documents // self.mesh.size)
        self.lowered: jax.stages.Lowered | None = None
        self.compiled: jax.stages.Compiled | None = None

    @property
    def places(self) -> list[int]:
        """Places of the batch that this controller computes, filling included."""
        size = self.documents_of_device
        return [
            place
            for i, device in enumerate(self.mesh.devices.flat)
            if device.process_index == jax.process_index()
            for place in range(i * size, (i + 1) * size)
        ]

    @property
    def places_of_devices(self) -> list[int]:
        """How many places each device computes, all devices in order."""
        return [self.documents_of_device] * self.mesh.size

    def layout(self, state: TrainingState) -> TrainingState:
        """Returns how each array of a state lies on the devices: a copy on each."""
        return jax.tree.map(lambda _: self.everywhere, state)

    def place(self, state: TrainingState) -> TrainingState:
        """Returns the state where updates want it."""
        return jax.tree.map(_placed, state, self.layout(state))

    def whole(self, state: TrainingState) -> TrainingState:
        """Returns the state with all of every array on this controller."""
        return state

    def __call__(
        self, state: TrainingState, rows: np.ndarray, batch: np.ndarray, key: jax.Array
    ) -> tuple[TrainingState, UpdateOutcome]:
        """Returns state and outcome of one update; see `training_loop.MakeUpdate`."""
        size = self.documents_of_device * self.mesh.size
        arguments = (
            state,
            self._laid_out(_filled(batch, size)),
            self._laid_out(padded_rows(rows, size)),
            self._on_every_device(jax.random.key_data(key)),
        )
        if self.compiled is None:
            self.lowered = self._program(state).lower(*arguments)
            with first_compiles():
                self.compiled = self.lowered.compile()
        meet("collective")
        result: tuple[TrainingState, UpdateOutcome] = self.compiled(*arguments)
        return result

    def description(self, state: TrainingState) -> dict[str, Any]:
        """Returns where state and batch lie, and the texts of the program."""
        assert self.lowered is not None and self.compiled is not None
        size = self.documents_of_device * self.mesh.size
        batch = {
            "tokens": self._laid_out(
                np.zeros((size, self.model.context_tokens + 1), np.int32)
            ),
            "documents": self._laid_out(np.zeros(size, np.int32)),
        }
        return description_of(
            state, self.lowered.as_text(), self.compiled.as_text() or "", batch
        )

    def _program(self, state: TrainingState) -> Any:
        """The update of the whole batch: all that is new is where its arrays lie."""

        def update(state: Any, tokens: Any, documents: Any, key_data: Any) -> Any:
            keys = document_keys(jax.random.wrap_key_data(key_data), documents)
            return training_update(
                state, tokens, keys, self.model, self.train.optimizer
            )

        alike, split = self.everywhere, self.by_document
        kept = self.layout(state)
        outcome: dict[str, Any] = dict.fromkeys(UpdateOutcome._fields, alike)
        outcome["gradients"] = kept.parameters
        return jax.jit(
            update,
            in_shardings=(kept, split, split, alike),
            out_shardings=(kept, UpdateOutcome(**outcome)),
        )

    def _on_every_device(self, array: Any) -> jax.Array:
        return jax.make_array_from_process_local_data(
            self.everywhere, np.asarray(array)
        )

    def _laid_out(self, whole: np.ndarray) -> jax.Array:
        own = whole[self.places]
        return jax.make_array_from_process_local_data(
            self.by_document, own, whole.shape
        )


def _placed(array: Any, sharding: NamedSharding) -> jax.Array:
    """Returns an array that lies so; each device gets its own part of it alone."""
    if isinstance(array, jax.Array) and array.sharding == sharding:
        return array
    whole = np.asarray(array)
    return jax.make_array_from_callback(whole.shape, sharding, lambda i: whole[i])


def _filled(batch: np.ndarray, documents: int) -> np.ndarray:
    """Returns a batch with further rows of PAD, which count no target."""
    filled = np.full((documents, batch.shape[1]), PAD, dtype=batch.dtype)
    filled[: len(batch)] = batch
    return filled
