"""Faults of what is drawn: documents twice, never, or in another order; parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from model.faults import Fault

GROUP = "order"
fault = partial(Fault, group=GROUP, stages=("train_model",))
BATCH_DOCUMENTS = 16


def _first_order_again(original: Callable[..., np.ndarray]) -> Any:
    return lambda order_seed, epoch, documents: original(order_seed, 0, documents)


def _one_key(original: Callable[..., dict[str, Any]]) -> Any:
    def initial_parameters(model: Any, seed: int) -> dict[str, Any]:
        import jax

        key = jax.random.key(seed)
        return {
            name: x
            if x.ndim == 1
            else jax.random.normal(key, x.shape, x.dtype) * x.std()
            for name, x in original(model, seed).items()
        }

    return initial_parameters


def _epoch_stays(original: Callable[..., Any]) -> Any:
    def take_batch(cursor: Any, **named: Any) -> Any:
        rows, after = original(cursor, **named)
        return rows, replace(after, epoch=cursor.epoch)

    return take_batch


def _rest_dropped(original: Callable[..., Any]) -> Any:
    def take_batch(cursor: Any, **named: Any) -> Any:
        rows, after = original(cursor, **named)
        if cursor.position and len(rows) < named["batch_documents"]:
            return original(after, **named)
        return rows, after

    return take_batch


def _moved_when_restored(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a restore whose cursor is another than the one that was saved."""

    def replacement(original: Callable[..., Any]) -> Any:
        def restore_training(request: Any) -> Any:
            state, progress, latest = original(request)
            return state, replace(progress, cursor=change(progress.cursor)), latest

        return restore_training

    return replacement


def _one_back(cursor: Any) -> Any:
    return replace(cursor, position=max(cursor.position - BATCH_DOCUMENTS, 0))


def _one_ahead(cursor: Any) -> Any:
    return replace(cursor, position=cursor.position + BATCH_DOCUMENTS)


def _next_epoch(cursor: Any) -> Any:
    return replace(cursor, epoch=cursor.epoch + 1)


def _other_order_when_restored(original: Callable[..., Any]) -> Any:
    def run_updates(state: Any, progress: Any, *rest: Any) -> Any:
        tokens, model, train, final_update = rest
        if progress.step:
            train = replace(train, order_seed=train.order_seed + 1)
        return original(state, progress, tokens, model, train, final_update)

    return run_updates


def _epoch_added_to_seed(original: Callable[..., np.ndarray]) -> Any:
    return lambda order_seed, epoch, documents: original(
        order_seed + epoch, 0, documents
    )


def _buffer_reused(original: Callable[..., np.ndarray]) -> Any:
    kept: dict[tuple[int, ...], np.ndarray] = {}

    def gather_batch(
        tokens: np.ndarray, rows: np.ndarray, batch_documents: int
    ) -> np.ndarray:
        batch = original(tokens, rows, batch_documents)
        before = kept.get(batch.shape, batch)
        batch[len(rows) :] = before[len(rows) :]
        kept[batch.shape] = batch
        return batch.copy()

    return gather_batch


FAULTS = (
    fault(
        name="epoch-zero-permutation-replayed",
        summary="Every epoch has the order of the first one.",
        source="huggingface/accelerate#2016",
        claim="2.1",
        replaces="model.batches.epoch_order",
        replacement=_first_order_again,
    ),
    fault(
        name="one-key-for-every-tensor",
        summary="Every tensor is drawn with the key of the seed itself.",
        source="google/flax#2665",
        claim="2.1",
        replaces="model.parameters.initial_parameters",
        replacement=_one_key,
    ),
    fault(
        name="epoch-counter-not-advanced",
        summary="The epoch stays 0, and so does the order.",
        source="modelscope/ms-swift#10050",
        claim="2.1",
        replaces="model.batches.take_batch",
        replacement=_epoch_stays,
    ),
    fault(
        name="incomplete-last-batch-dropped-in-training",
        summary="Documents that fill no whole batch are never trained on.",
        source="pytorch/pytorch#25162",
        claim="2.1",
        replaces="model.batches.take_batch",
        replacement=_rest_dropped,
    ),
    fault(
        name="cursor-repeats-last-batch",
        summary="A restored training sees the last batch again.",
        source="huggingface/accelerate#3242",
        claim="2.1",
        stages=("resume_training",),
        replaces="model.restore.restore_training",
        replacement=_moved_when_restored(_one_back),
    ),
    fault(
        name="cursor-skips-one-batch",
        summary="A restored training skips one batch.",
        source="huggingface/accelerate#4233",
        claim="2.1",
        stages=("resume_training",),
        replaces="model.restore.restore_training",
        replacement=_moved_when_restored(_one_ahead),
    ),
    fault(
        name="next-epoch-order-saved",
        summary="A restored training goes on in the order of the next epoch.",
        source="huggingface/accelerate#4233",
        claim="2.1",
        stages=("resume_training",),
        replaces="model.restore.restore_training",
        replacement=_moved_when_restored(_next_epoch),
    ),
    fault(
        name="other-shuffle-seed",
        summary="A restored training shuffles by another seed.",
        source="huggingface/transformers#40691",
        claim="2.1",
        stages=("resume_training",),
        replaces="model.training_loop.run_updates",
        replacement=_other_order_when_restored,
    ),
    fault(
        name="files-from-different-steps",
        summary="The arrays are of one update, the cursor is of the one before.",
        source="petuum/adaptdl#70",
        claim="2.2",
        stages=("certify_recovery",),
        replaces="model.restore.restore_training",
        replacement=_moved_when_restored(_one_back),
    ),
    fault(
        name="epoch-added-to-order-seed",
        summary="The second epoch of a seed has the order of the next seed's first.",
        source="open-mmlab/mmagic#815",
        claim="2.1",
        replaces="model.batches.epoch_order",
        replacement=_epoch_added_to_seed,
    ),
    fault(
        name="stale-rows-in-short-batch",
        summary="What a short batch does not fill holds documents of the batch before.",
        source="SJTU-DENG-Lab/Diffulex#44",
        claim="2.1",
        replaces="model.batches.gather_batch",
        replacement=_buffer_reused,
    ),
)
