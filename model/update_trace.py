"""The trace of a training: what it started from, and per update all that went through.

Two processes made the same update when every digest is equal. A line goes to the disk
before the next update starts, so the trace of a killed process tells how far it came.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from model.batches import epoch_order
from model.checkpoint_manifest import Progress
from model.config import TrainConfig
from model.digests import array_sha256, tree_sha256
from model.training import TrainingState, dropout_key
from model.training_loop import CompletedUpdate

KINDS = (
    "document_ids",
    "order",
    "cursor",
    "epoch",
    "step",
    "dropout_key",
    "loss_bits",
    "gradients",
    "first_moment",
    "second_moment",
    "parameters",
)
"""What every update has; one that keeps an average has the kind `average` too."""

Arrays = dict[tuple[str, str], ArrayLike]
"""What is digested, by kind and leaf; the leaf is empty where a kind has one value."""


def arrays_of_state(state: TrainingState) -> Arrays:
    """Returns every array of a training state, by kind and leaf."""
    trees: dict[str, Mapping[str, ArrayLike]] = {
        "first_moment": state.adam.first_moment,
        "second_moment": state.adam.second_moment,
        "parameters": state.parameters,
    }
    if state.average is not None:
        trees["average"] = state.average
    arrays: Arrays = {("step", ""): np.asarray(state.adam.step)}
    for kind, tree in trees.items():
        arrays |= {(kind, leaf): tree[leaf] for leaf in sorted(tree)}
    return arrays


def arrays_of_update(
    completed: CompletedUpdate, document_ids: Sequence[str], train: TrainConfig
) -> Arrays:
    """Returns everything that an update consumed and produced, causes first.

    Args:
        completed: The update.
        document_ids: Ids of all training documents, in row order.
        train: Recipe and seeds.
    """
    ids = [document_ids[row] for row in completed.rows]
    state = arrays_of_state(completed.state)
    gradients = completed.outcome.gradients
    return {
        ("document_ids", ""): np.frombuffer(json.dumps(ids).encode(), dtype=np.uint8),
        ("order", ""): epoch_order(
            train.order_seed, completed.cursor.epoch, len(document_ids)
        ),
        ("cursor", ""): np.asarray(completed.cursor.position, dtype=np.int64),
        ("epoch", ""): np.asarray(completed.cursor.epoch, dtype=np.int64),
        ("step", ""): state.pop(("step", "")),
        ("dropout_key", ""): completed.key_data,
        ("loss_bits", ""): np.asarray(completed.outcome.loss),
        **{("gradients", leaf): gradients[leaf] for leaf in sorted(gradients)},
        **state,
    }


def standing_sha256(
    state: TrainingState, progress: Progress, train: TrainConfig, documents: int
) -> str:
    """Returns one digest over everything that the next update follows from.

    Args:
        state: State between two updates.
        progress: Where the training stands.
        train: Recipe and seeds.
        documents: Number of training documents.
    """
    arrays = {f"{kind}/{leaf}": x for (kind, leaf), x in arrays_of_state(state).items()}
    key = dropout_key(train.dropout_seed, progress.step + 1)
    told = json.dumps([asdict(progress), asdict(train)], sort_keys=True)
    return tree_sha256(
        {
            **arrays,
            "progress": np.frombuffer(told.encode(), dtype=np.uint8),
            "order": epoch_order(train.order_seed, progress.cursor.epoch, documents),
            "dropout_key": jax.random.key_data(key),
        }
    )


def trace_start(state: TrainingState, update: int) -> dict[str, Any]:
    """Returns the first line of a trace: the state that a training starts from.

    Args:
        state: The first state, or the restored one.
        update: Updates that were made before it.
    """
    return {
        "update": update,
        "is_start": True,
        "values": {"step": int(state.adam.step)},
        "digests": _digests(arrays_of_state(state)),
    }


def trace_update(
    completed: CompletedUpdate, document_ids: Sequence[str], train: TrainConfig
) -> dict[str, Any]:
    """Returns one line of the trace: the update, readable values, and all digests.

    Args:
        completed: The update.
        document_ids: Ids of all training documents, in row order.
        train: Recipe and seeds.
    """
    loss = np.asarray(completed.outcome.loss)
    return {
        "update": completed.update,
        "values": {
            "document_ids": [document_ids[row] for row in completed.rows],
            "cursor": completed.cursor.position,
            "epoch": completed.cursor.epoch,
            "step": int(completed.state.adam.step),
            "dropout_key": completed.key_data.tolist(),
            "loss_bits": f"0x{int(loss.view(np.uint32)):08x}",
        },
        "digests": _digests(arrays_of_update(completed, document_ids, train)),
    }


def _digests(arrays: Arrays) -> list[dict[str, str]]:
    return [_digest(kind, leaf, value) for (kind, leaf), value in arrays.items()]


def _digest(kind: str, leaf: str, value: ArrayLike) -> dict[str, str]:
    array = np.asarray(value)
    return {
        "kind": kind,
        "leaf": leaf,
        "dtype": array.dtype.name,
        "shape": json.dumps(list(array.shape)),
        "sha256": array_sha256(array),
    }


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """Appends one line of a trace and flushes it to the disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, sort_keys=True) + "\n")
        file.flush()
        os.fsync(file.fileno())
