"""One update of a batch whose documents are computed by many devices and controllers.

All programs have the same objective: summed losses over summed valid targets, never a
mean of means. *Split* runs one program a document, the same on every controller,
gathers the results without arithmetic and adds them up from left to right in the order
of the batch: its bits do not depend on how many controllers there are. *Whole* is the
production update on one device, and `model.collective_update` the same over many.
Dropout keys follow the document, not the place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from model.config import ModelConfig, TrainConfig
from model.controllers import meet
from model.parameters import Parameters
from model.placement import description_of, shares
from model.refusal import ReasonCode, Refused
from model.training import (
    TrainingState,
    UpdateOutcome,
    document_keys,
    finish_update,
    mean_of,
    summed_loss,
    training_update,
)

if TYPE_CHECKING:
    from jaxtyping import Array, Int32, Key

Gather = Callable[[Any], Any]
"""Returns the arrays of all controllers, one after another, of a tree of arrays."""


def ordered_devices() -> list[jax.Device]:
    """Returns all devices, those of one controller side by side, controllers in order.

    JAX may order the devices of a slice by their place in it, which mixes hosts.
    """
    return sorted(jax.devices(), key=lambda each: (each.process_index, each.id))


def padded_rows(rows: np.ndarray, documents: int) -> np.ndarray:
    """Returns the rows of a batch, 0 where it is filled up; no target counts there."""
    filled = np.zeros(documents, dtype=np.int32)
    filled[: len(rows)] = rows
    return filled


@partial(jax.jit, static_argnames="model")
def document_gradient(
    parameters: Parameters,
    tokens: Int32[Array, "1 T1"],
    document: Int32[Array, ""],
    key: Key[Array, ""],
    model: ModelConfig,
) -> tuple[jax.Array, jax.Array, Parameters]:
    """Returns summed loss, valid targets and gradient of the sum of one document.

    Args:
        parameters: Parameters by name.
        tokens: One document.
        document: Its row in the training split.
        key: Key of the update.
        model: Shape of the model.
    """
    keys = document_keys(key, document[None])
    objective = jax.value_and_grad(summed_loss, has_aux=True)
    (loss_sum, count), gradients = objective(parameters, tokens, keys, model)
    return loss_sum, count, gradients


def ordered_sum(values: Any) -> Any:
    """Returns the sum over the first axis, from left to right, one at a time.

    Args:
        values: A tree of arrays, all with as many places; one loop adds up all of it,
            because XLA takes its time for each loop that it compiles.
    """
    begin = jax.tree.map(lambda x: jnp.zeros_like(x[0]), values)
    return jax.lax.scan(
        lambda total, value: (jax.tree.map(jnp.add, total, value), None), begin, values
    )[0]


@partial(jax.jit, static_argnames="optimizer")
def update_in_order(
    state: TrainingState,
    loss_sums: jax.Array,
    counts: jax.Array,
    gradients: Parameters,
    optimizer: Any,
) -> tuple[TrainingState, UpdateOutcome]:
    """Returns the state after one update by the gradients of single documents.

    Args:
        state: Parameters and optimizer state.
        loss_sums: Summed loss of each document of the batch, in its order.
        counts: Valid targets of each.
        gradients: Gradient of each summed loss, documents first, by parameter name.
        optimizer: Adam's settings.
    """
    loss_sum, sums = ordered_sum((loss_sums, gradients))
    count = jnp.sum(counts)
    means = {name: mean_of(x, count) for name, x in sums.items()}
    loss = mean_of(loss_sum, count)
    return finish_update(state, loss, loss_sum, count, means, optimizer)


def gather_controllers(tree: Any) -> Any:
    """Returns the arrays of all controllers in their order, on the host.

    They go as bytes and all at once: an exchange for each array would be a program to
    compile for each shape, and one more meeting.
    """
    if jax.process_count() == 1:
        return tree
    leaves = jax.tree.leaves(tree)
    meet("gather")
    gathered = np.asarray(
        multihost_utils.process_allgather(_as_bytes(leaves), tiled=True)
    )
    ends = np.cumsum([each[0].nbytes for each in leaves])[:-1]
    parts = np.split(gathered, ends, axis=1)
    arrays = (
        np.ascontiguousarray(part).view(each.dtype).reshape(-1, *each.shape[1:])
        for part, each in zip(parts, leaves, strict=True)
    )
    return jax.tree.map(lambda _: next(arrays), tree)


def _as_bytes(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the rows of all arrays side by side."""
    rows = [np.ascontiguousarray(x).reshape(len(x), -1) for x in arrays]
    return np.concatenate([x.view(np.uint8) for x in rows], axis=1)


class SplitUpdate:
    """Makes updates whose bits do not depend on the number of controllers."""

    def __init__(
        self,
        model: ModelConfig,
        train: TrainConfig,
        gather: Gather = gather_controllers,
    ) -> None:
        """Shares the places of a batch out over all devices there are.

        Args:
            model: Shape of the model.
            train: Recipe; a batch has at least as many documents as there are devices.
            gather: How results of all controllers come together.

        Raises:
            Refused: `setting_invalid` when a device would have no document.
        """
        self.model = model
        self.train = train
        self.gather = gather
        devices = ordered_devices()
        if len(devices) > train.batch_documents:
            raise Refused(
                ReasonCode.SETTING_INVALID,
                f"A batch of {train.batch_documents} documents leaves some of"
                f" {len(devices)} devices without any; take larger batches or fewer"
                " devices.",
                ["train.batch_documents"],
            )
        parts = shares(train.batch_documents, len(devices))
        self.parts = list(zip(devices, parts, strict=True))
        self.own = [
            (device, place)
            for device, part in self.parts
            if device.process_index == jax.process_index()
            for place in part
        ]

    @property
    def places(self) -> list[int]:
        """Places of the batch that this controller computes."""
        return [place for _, place in self.own]

    @property
    def places_of_devices(self) -> list[int]:
        """How many places each device computes, all devices in order."""
        return [len(part) for _, part in self.parts]

    def place(self, state: TrainingState) -> TrainingState:
        """Returns the state where updates want it: every controller has all of it."""
        return jax.tree.map(jnp.asarray, state)

    def whole(self, state: TrainingState) -> TrainingState:
        """Returns the state with all of every array on this controller."""
        return state

    def __call__(
        self, state: TrainingState, rows: np.ndarray, batch: np.ndarray, key: jax.Array
    ) -> tuple[TrainingState, UpdateOutcome]:
        """Returns state and outcome of one update; see `training_loop.MakeUpdate`."""
        documents = padded_rows(rows, len(batch))
        placed = {
            device: jax.device_put((state.parameters, key), device)
            for device in dict(self.own)
        }
        results = [
            document_gradient(
                placed[device][0],
                batch[place : place + 1],
                documents[place],
                placed[device][1],
                self.model,
            )
            for device, place in self.own
        ]
        counts = self._places_of_controllers()
        stacked = jax.tree.map(partial(_stacked, rows=max(counts)), *results)
        kept = _kept_places(counts)
        ordered = jax.tree.map(lambda x: x[kept], self.gather(stacked))
        return update_in_order(state, *ordered, optimizer=self.train.optimizer)

    def description(self, state: TrainingState) -> dict[str, Any]:
        """Returns where the state lies, and the texts of the program that adds up."""
        documents = self.train.batch_documents
        gradients = {
            name: jax.ShapeDtypeStruct((documents, *x.shape), x.dtype)
            for name, x in state.parameters.items()
        }
        lowered = update_in_order.lower(
            state,
            jax.ShapeDtypeStruct((documents,), jnp.float32),
            jax.ShapeDtypeStruct((documents,), jnp.int32),
            gradients,
            optimizer=self.train.optimizer,
        )
        # Documents are added up after they were gathered, so devices add up nothing.
        return description_of(state, lowered.as_text(), "")

    def _places_of_controllers(self) -> list[int]:
        counts = [0] * jax.process_count()
        for device, part in self.parts:
            counts[device.process_index] += len(part)
        return counts


def _stacked(*arrays: jax.Array, rows: int) -> np.ndarray:
    """Returns results side by side; every controller has to send equally many rows."""
    stacked = np.stack([np.asarray(array) for array in arrays])
    filling = np.zeros((rows - len(stacked), *stacked.shape[1:]), stacked.dtype)
    return np.concatenate([stacked, filling])


def _kept_places(counts: Sequence[int]) -> np.ndarray:
    """Returns which of the gathered rows are results, in the order of the batch."""
    most = max(counts)
    kept = [np.arange(count) + i * most for i, count in enumerate(counts)]
    return np.concatenate(kept)


class WholeUpdate:
    """Makes updates by the production program on one device: what others must meet."""

    def __init__(self, model: ModelConfig, train: TrainConfig) -> None:
        """Takes the shape of the model and the recipe."""
        self.model = model
        self.train = train
        self.places = list(range(train.batch_documents))
        self.places_of_devices = [train.batch_documents]

    def place(self, state: TrainingState) -> TrainingState:
        """Returns the state where updates want it."""
        return jax.tree.map(jnp.asarray, state)

    def whole(self, state: TrainingState) -> TrainingState:
        """Returns the state with all of every array on this controller."""
        return state

    def __call__(
        self, state: TrainingState, rows: np.ndarray, batch: np.ndarray, key: jax.Array
    ) -> tuple[TrainingState, UpdateOutcome]:
        """Returns state and outcome of one update; see `training_loop.MakeUpdate`."""
        keys = document_keys(key, jnp.asarray(padded_rows(rows, len(batch))))
        optimizer = self.train.optimizer
        return training_update(state, jnp.asarray(batch), keys, self.model, optimizer)

    def description(self, state: TrainingState) -> dict[str, Any]:
        """Returns where the state lies, and the text of the program."""
        train = self.train
        rows = jnp.zeros(train.batch_documents, jnp.int32)
        tokens = jnp.zeros((len(rows), self.model.context_tokens + 1), jnp.int32)
        keys = document_keys(jax.random.key(0), rows)
        lowered = training_update.lower(
            state, tokens, keys, self.model, train.optimizer
        )
        return description_of(state, lowered.as_text(), "")
