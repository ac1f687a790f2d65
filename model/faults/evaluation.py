"""Faults of evaluation: averages of averages, documents left out, and side effects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from model.faults import INITIALIZATIONS, Fault
from model.tokenizer import BOS

GROUP = "evaluation"
fault = partial(
    Fault,
    group=GROUP,
    stages=("evaluate_heldout",),
    left_out=(INITIALIZATIONS,),
)
BATCH_DOCUMENTS = 5


def _mean_of_means(original: Callable[..., Any]) -> Any:
    def evaluate_split(*arguments: Any, **named: Any) -> Any:
        found = original(*arguments, **named)
        counts = (found.losses != 0.0).sum(axis=1)
        cuts = range(BATCH_DOCUMENTS, len(counts), BATCH_DOCUMENTS)
        batches = zip(np.split(found.losses, cuts), np.split(counts, cuts), strict=True)
        means = [float(losses.sum()) / int(count.sum()) for losses, count in batches]
        total = float(np.mean(means)) * found.valid_targets
        return found._replace(loss_sum_nats=total)

    return evaluate_split


def _rest_dropped(original: Callable[..., Any]) -> Any:
    def evaluate_tokens(
        parameters: Any, tokens: np.ndarray, model: Any, size: int, *rest: Any
    ) -> Any:
        found = original(parameters, tokens, model, size, *rest)
        for kept in found:
            kept[len(tokens) - len(tokens) % size :] = 0
        return found

    return evaluate_tokens


def _filled_with_duplicates(original: Callable[..., Any]) -> Any:
    def evaluate_tokens(
        parameters: Any, tokens: np.ndarray, model: Any, size: int, *rest: Any
    ) -> Any:
        found = original(parameters, tokens, model, size, *rest)
        again = -len(tokens) % size
        found.valid_targets[-1] += found.valid_targets[:again].sum()
        return found

    return evaluate_tokens


def _single_precision(original: Callable[[np.ndarray], float]) -> Any:
    def sequential_sum(losses: np.ndarray) -> float:
        return float(np.cumsum(losses.ravel(), dtype=np.float32)[-1])

    return sequential_sum


def _state_changed(original: Callable[..., Any]) -> Any:
    def evaluate_split(parameters: Any, *rest: Any, **named: Any) -> Any:
        found = original(parameters, *rest, **named)
        for name, x in parameters.items():
            parameters[name] = x.astype(jnp.bfloat16).astype(x.dtype)
        return found

    return evaluate_split


def _failures_left_out(original: Callable[..., Any]) -> Any:
    # The last seed stands for one whose training failed.
    return lambda train, wanted: original(train, wanted)[:-1]


def _predicted_late(original: Callable[..., Any]) -> Any:
    def evaluate_tokens(*arguments: Any) -> Any:
        found = original(*arguments)
        found.predictions[:, 1:] = found.predictions[:, :-1].copy()
        return found

    return evaluate_tokens


def _padding_compared(original: Callable[..., Any]) -> Any:
    def compare_logits(exact: Any, rounded: Any, targets: Any) -> Any:
        return original(exact, rounded, np.maximum(targets, BOS))

    return compare_logits


def _first_parameters_kept(original: Callable[..., Any]) -> Any:
    kept: list[Any] = []

    def evaluate_tokens(parameters: Any, *rest: Any) -> Any:
        kept.append(parameters)
        return original(kept[0], *rest)

    return evaluate_tokens


def _training_key_consumed(original: Callable[..., Any]) -> Any:
    def evaluate_split(*arguments: Any, **named: Any) -> Any:
        from model.replaced import replace

        # What training and evaluation draw from one stream, one of them misses.
        replace(
            "model.training.dropout_key",
            lambda before: lambda seed, update: before(seed, update + 1),
        )
        return original(*arguments, **named)

    return evaluate_split


FAULTS = (
    fault(
        name="mean-of-batch-means",
        summary="The loss of a split is the mean of the means of its batches.",
        source="huggingface/transformers#41898",
        claim="2.9",
        replaces="model.evaluation.evaluate_split",
        replacement=_mean_of_means,
    ),
    fault(
        name="last-batch-dropped",
        summary="Documents that fill no whole batch are not evaluated.",
        source="mosaicml/composer#2218",
        claim="2.6",
        replaces="model.evaluation.evaluate_tokens",
        replacement=_rest_dropped,
    ),
    fault(
        name="last-batch-padded-with-duplicates",
        summary="The last batch is filled with the first documents, which count again.",
        source="pytorch/pytorch#22584",
        claim="2.6",
        replaces="model.evaluation.evaluate_tokens",
        replacement=_filled_with_duplicates,
    ),
    fault(
        name="low-precision-accumulator",
        summary="Losses are summed in float32 instead of float64.",
        source="facebookresearch/ParlAI#623",
        claim="2.9",
        replaces="model.evaluation.sequential_sum",
        replacement=_single_precision,
    ),
    fault(
        name="evaluation-mutates-state",
        summary="An evaluation leaves its parameters rounded to bfloat16.",
        source="azadef/ynet#7",
        claim="2.7",
        replaces="model.evaluation.evaluate_split",
        replacement=_state_changed,
    ),
    fault(
        name="evaluation-changes-training",
        summary="An evaluation in the middle of a training changes what follows it.",
        source="azadef/ynet#7",
        claim="2.7",
        stages=("train_model",),
        replaces="model.evaluation.evaluate_split",
        replacement=_state_changed,
    ),
    fault(
        name="predictions-one-position-late",
        summary="The most likely token of a position is recorded at the next one.",
        source="huggingface/transformers#47394",
        claim="2.9",
        replaces="model.evaluation.evaluate_tokens",
        replacement=_predicted_late,
    ),
    fault(
        name="failed-seed-hidden",
        summary="One training of several first seeds is not reported.",
        source="none known; the fixture's own rule",
        claim="2.8",
        left_out=(),
        replaces="model.programs.train_initializations.initialization_seeds",
        replacement=_failures_left_out,
    ),
    fault(
        name="errors-averaged-over-padding",
        summary="The error of a precision is taken at padded places too.",
        source="d2l-ai/d2l-en#2076",
        claim="3.6",
        stages=("quantize_cache",),
        replaces="model.checks.precision.compare_logits",
        replacement=_padding_compared,
    ),
    fault(
        name="evaluation-of-first-parameters",
        summary="Every evaluation is one of the parameters that the first one saw.",
        source="tenstorrent/tt-forge-onnx#297",
        claim="2.9",
        stages=("train_model",),
        replaces="model.evaluation.evaluate_tokens",
        replacement=_first_parameters_kept,
    ),
    fault(
        name="evaluation-consumes-training-key",
        summary="An evaluation takes the dropout key that was the next update's.",
        source="azadef/ynet#7",
        claim="2.7",
        stages=("train_model",),
        replaces="model.evaluation.evaluate_split",
        replacement=_training_key_consumed,
    ),
)
