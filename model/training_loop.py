"""Update after update from a state and a cursor, on the host.

The loop owns no numerics: it takes the batch that the cursor points at, the key that
belongs to the number of the update, and stops at the first value that is not finite.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from model.batches import Cursor, epoch_order, gather_batch, take_batch
from model.checkpoint_manifest import Progress
from model.config import ModelConfig, TrainConfig
from model.digests import array_sha256
from model.objective import check_documents
from model.refusal import ReasonCode, Refused
from model.training import (
    TrainingState,
    UpdateOutcome,
    dropout_key,
    training_update,
)

MakeUpdate = Callable[
    [TrainingState, np.ndarray, np.ndarray, jax.Array],
    tuple[TrainingState, UpdateOutcome],
]
"""Makes one update of a state, the rows of its batch, their tokens and its key."""


@dataclass(frozen=True, kw_only=True)
class CompletedUpdate:
    """One update that was made, what it consumed and what it left."""

    update: int
    """Number of the update, from 1."""
    cursor: Cursor
    """Where the order stood before the batch."""
    rows: np.ndarray
    """Rows of the training split in the batch, int32, at most the batch size."""
    key_data: np.ndarray
    """Data of the dropout key, uint32."""
    outcome: UpdateOutcome
    """Loss, targets and gradients, all before the parameters moved."""
    state: TrainingState
    """State after the update."""
    progress: Progress
    """Where the training stands after the update."""
    duration_ns: int
    """Time until the new state was ready."""


def initial_progress(train: TrainConfig, documents: int) -> Progress:
    """Returns the progress of a training that has made no update."""
    order = epoch_order(train.order_seed, 0, documents)
    return Progress(
        step=0,
        cursor=Cursor(),
        order_sha256=array_sha256(order),
        cumulative_valid_targets=0,
    )


def run_updates(
    state: TrainingState,
    progress: Progress,
    tokens: np.ndarray,
    model: ModelConfig,
    train: TrainConfig,
    final_update: int,
    make_update: MakeUpdate | None = None,
) -> Iterator[CompletedUpdate]:
    """Yields every update from the one after `progress` to `final_update`.

    Args:
        state: State between two updates.
        progress: Where the training stands.
        tokens: Training documents [N, context + 1], int32.
        model: Shape of the model.
        train: Recipe and seeds.
        final_update: Number of the last update.
        make_update: Makes one update; None is `training_update` on the whole batch.

    Raises:
        Refused: `targets_dtype`, `targets_shape` or `targets_range` before the first
            update; `non_finite_loss` or `non_finite_gradient`, naming the update.
    """
    # Once for the whole training: batches are rows of these documents.
    check_documents(tokens, model.vocabulary_tokens, model.context_tokens)
    for update in range(progress.step + 1, final_update + 1):
        started_ns = time.perf_counter_ns()
        rows, after = take_batch(
            progress.cursor,
            order_seed=train.order_seed,
            documents=len(tokens),
            batch_documents=train.batch_documents,
        )
        batch = gather_batch(tokens, rows, train.batch_documents)
        key = dropout_key(train.dropout_seed, update)
        if make_update is None:
            state, outcome = training_update(
                state, jnp.asarray(batch), key, model, train.optimizer
            )
        else:
            state, outcome = make_update(state, rows, batch, key)
        jax.block_until_ready(state)
        duration_ns = time.perf_counter_ns() - started_ns
        _check_finite(update, outcome)
        before = progress.cursor
        progress = _advance(progress, after, outcome, train, len(tokens))
        yield CompletedUpdate(
            update=update,
            cursor=before,
            rows=rows,
            key_data=np.asarray(jax.random.key_data(key)),
            outcome=outcome,
            state=state,
            progress=progress,
            duration_ns=duration_ns,
        )


def _advance(
    progress: Progress,
    after: Cursor,
    outcome: UpdateOutcome,
    train: TrainConfig,
    documents: int,
) -> Progress:
    order_sha256 = progress.order_sha256
    if after.epoch != progress.cursor.epoch:
        order = epoch_order(train.order_seed, after.epoch, documents)
        order_sha256 = array_sha256(order)
    valid_targets = progress.cumulative_valid_targets + int(outcome.valid_targets)
    return replace(
        progress,
        step=progress.step + 1,
        cursor=after,
        order_sha256=order_sha256,
        cumulative_valid_targets=valid_targets,
    )


def _check_finite(update: int, outcome: UpdateOutcome) -> None:
    """Stops a training whose numbers have left the real line."""
    loss = float(outcome.loss)
    if not np.isfinite(loss):
        raise Refused(
            ReasonCode.NON_FINITE_LOSS,
            f"The loss of update {update} is {loss!r}, which no update may follow;"
            " lower the learning rate or go back to the last checkpoint.",
            [f"updates.{update}.loss"],
        )
    if not bool(outcome.is_gradient_finite):
        gradients = outcome.gradients.items()
        leaf = min(name for name, x in gradients if not np.isfinite(x).all())
        raise Refused(
            ReasonCode.NON_FINITE_GRADIENT,
            f"The gradient of {leaf!r} in update {update} is not finite, so no update"
            " may follow; lower the learning rate or go back to the last checkpoint.",
            [f"updates.{update}.gradients"],
        )
