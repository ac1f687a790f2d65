"""Whether an evaluation is the same however it is cut, and leaves no trace.

The mean over a split is a ratio of two sums; whoever averages the means of batches
gets another number as soon as two batches differ in length, which is shown beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from model.checks.differences import largest_difference, largest_value
from model.checks.rows import (
    Row,
    array_comparison,
    comparison,
    count,
    real,
    real_comparison,
)
from model.config import ModelConfig
from model.evaluation import Evaluation, sequential_sum
from model.parameters import Parameters
from model.reference import objective as reference_objective
from model.reference import transformer as reference
from model.tokenizer import PAD

BATCHES, UNCHANGED, TOKENS = "2.6", "2.7", "2.9"


class BatchEvaluation(NamedTuple):
    """Losses of documents, and the size of the batches they were computed in."""

    batch_documents: int
    """Documents of a batch."""
    losses: np.ndarray
    """Loss of every position in nats [N, T], float32."""
    valid_targets: np.ndarray
    """Valid targets of every document [N], as the program counted them."""


Evaluate = Callable[[Parameters, np.ndarray, int], BatchEvaluation]


def measure_batch_sizes(
    evaluate: Evaluate,
    parameters: Parameters,
    tokens: np.ndarray,
    sizes: Sequence[int],
    released: BatchEvaluation,
) -> list[Row]:
    """Returns whether losses, sum and count are the same bits at every batch size.

    Every size is compared with batches of one document, and those with what was stored
    of the released evaluation, so that both sides always come from calls of their own.

    Args:
        evaluate: Evaluates documents in batches of a size.
        parameters: Parameters by name.
        tokens: Documents [N, T + 1].
        sizes: Documents of a batch.
        released: Stored evaluation of the same documents, in larger batches than one.

    Raises:
        ValueError: Both sides of a comparison have the same batch size.
    """
    alone = evaluate(parameters, tokens, 1)
    rows = []
    for size in sizes:
        own = alone if size == 1 else evaluate(parameters, tokens, size)
        rows += _compare_sizes(own, released if size == 1 else alone, tokens)
    return rows + [_largest_mean_error(rows)]


def _compare_sizes(
    own: BatchEvaluation, other: BatchEvaluation, tokens: np.ndarray
) -> list[Row]:
    """Rows of one batch size; the counts are held against the tokens themselves."""
    size = own.batch_documents
    if size == other.batch_documents:
        raise ValueError(f"batches of {size} documents are compared with themselves")
    case = f"batch-{size:02d}"
    source = f"batches of {other.batch_documents} documents"
    total = sequential_sum(other.losses)
    targets = int((tokens[:, 1:] != PAD).sum())
    means, summed, counted = _batch_means(own)
    off_by = abs(means - total / targets)
    apart = counted - targets
    # A target of PAD loses nothing, whatever the sign of its zero.
    expected, measured = (each.losses + np.float32(0.0) for each in (other, own))
    return [
        array_comparison(BATCHES, "token_losses", case, expected, measured, source),
        real_comparison(BATCHES, "batch_loss_sum_nats", case, total, summed, source),
        count(BATCHES, "valid_targets_apart", case, apart, "targets"),
        real(BATCHES, "mean_of_batch_means_off_by", case, off_by, "nats"),
    ]


def _batch_means(own: BatchEvaluation) -> tuple[float, float, int]:
    """Unweighted mean of batch means, and the sum and count over all batches."""
    means, total, counted, size = [], np.float64(0.0), 0, own.batch_documents
    for start in range(0, len(own.losses), size):
        batch = own.losses[start : start + size].astype(np.float64)
        targets = int(own.valid_targets[start : start + size].sum())
        # Documents that were left out have no target; they are told by the losses.
        means.append(float(batch.sum()) / max(targets, 1))
        # Loss after loss onto one running sum, as over the whole set.
        total = np.cumsum(np.concatenate([[total], batch.ravel()]))[-1]
        counted += targets
    return float(np.mean(means)), float(total), counted


def _largest_mean_error(rows: Sequence[Row]) -> Row:
    errors = [row for row in rows if row.get("measure") == "mean_of_batch_means_off_by"]
    # What is no number has become null; it is the largest of all.
    sizes = [math.nan if x is None else x for x in (r["value_real"] for r in errors)]
    largest = largest_value(sizes)
    cases = [row["case_name"] for row in errors]
    found = (
        case
        for case, x in zip(cases, sizes, strict=True)
        if x == largest or math.isnan(x)
    )
    measure = "mean_of_batch_means_largest_error"
    return real(BATCHES, measure, "", largest, "nats", next(found, ""))


def measure_state(before: str, after: str) -> Row:
    """Returns the comparison of parameters before and after all evaluations."""
    source = "digest of the parameters before the evaluation"
    return comparison(
        UNCHANGED, "parameters_after_evaluation", "heldout", before, after, source
    )


def token_loss_rows(
    tokens: np.ndarray, ids: Sequence[str], evaluation: Evaluation, split: str
) -> list[dict[str, Any]]:
    """Returns one row of `token_losses` for every valid target, in summation order.

    Args:
        tokens: Documents [N, T + 1].
        ids: Their ids.
        evaluation: Losses and predictions.
        split: Split they belong to.
    """
    targets = tokens[:, 1:]
    rows = []
    for document, position in np.argwhere(targets != PAD):
        target = int(targets[document, position])
        predicted = int(evaluation.predictions[document, position])
        rows.append(
            {
                "release_policy": "fp32",
                "split": split,
                "document_id": ids[document],
                "position": int(position),
                "target_token": target,
                # float32 to float: exact
                "loss_nats": float(evaluation.losses[document, position]),
                "predicted_token": predicted,
                "is_correct": predicted == target,
            }
        )
    return rows


def stored_losses(
    rows: Sequence[dict[str, Any]], ids: Sequence[str], positions: int
) -> np.ndarray:
    """Returns the losses [N, T] of documents as rows of `token_losses` hold them.

    Args:
        rows: Rows of `token_losses`.
        ids: Ids of the documents, in order.
        positions: T, positions of a document; those without a row have a loss of 0.
    """
    place = {document_id: number for number, document_id in enumerate(ids)}
    losses = np.zeros((len(ids), positions), dtype=np.float32)
    for row in rows:
        if row["document_id"] in place:
            # a float32 once, so nothing is rounded
            losses[place[row["document_id"]], row["position"]] = row["loss_nats"]
    return losses


def measure_validation(
    update: int,
    parameters: Parameters,
    tokens: np.ndarray,
    losses: np.ndarray,
    model: ModelConfig,
) -> Row:
    """Returns how far losses of an evaluation in a training lie from the reference's.

    An evaluation that keeps the parameters it once saw repeats its first number, and a
    training looks as if it had stopped.

    Args:
        update: Number of the update that the evaluation follows.
        parameters: What is evaluated after this update, by name.
        tokens: Documents [N, T + 1], a few of those evaluated.
        losses: Their token losses by the evaluation [N, T].
        model: Shape of the model.

    Reference: model/reference/transformer.py, model/reference/objective.py
    """
    arrays = {name: np.asarray(x) for name, x in parameters.items()}
    exact = [
        reference_objective.token_losses(
            reference.forward(arrays, row[:-1], model)[0], row[1:]
        )
        for row in tokens
    ]
    apart = largest_difference(np.stack(exact), losses.astype(np.float64))
    case = f"update-{update:03d}"
    return real(TOKENS, "validation_loss_largest_difference", case, apart, "nats")


def measure_predictions(
    rows: Sequence[dict[str, Any]], ids: Sequence[str], expected: np.ndarray
) -> list[Row]:
    """Returns how far predicted tokens lie below the likeliest of the reference.

    The distance is one of reference logits, 0 where both name the same token. Two
    tokens that rounding can exchange lie no further apart than it moves both of them.

    Args:
        rows: Rows of `token_losses`.
        ids: Ids of the compared documents, in order.
        expected: Their logits by the reference [N, T, V].
    """
    place = {document_id: number for number, document_id in enumerate(ids)}
    below = [0.0]
    for row in rows:
        if row["document_id"] in place:
            exact = expected[place[row["document_id"]], row["position"]]
            below.append(float(exact.max() - exact[row["predicted_token"]]))
    measure = "predicted_token_largest_shortfall"
    return [
        real(TOKENS, measure, "heldout", float(np.max(below)), "logits"),
        count(TOKENS, "predicted_tokens_compared", "heldout", len(below) - 1, "tokens"),
    ]


def measure_token_rows(
    rows: Sequence[dict[str, Any]], evaluation: Evaluation
) -> list[Row]:
    """Returns whether sums over the written rows are exactly the reported ones.

    Args:
        rows: Rows of `token_losses`.
        evaluation: The reported sums.

    Raises:
        ValueError: There is no row, whose sum is that of no target.
    """
    if not rows:
        raise ValueError("there is no row to add up")
    total = 0.0
    for row in rows:
        total += row["loss_nats"]
    correct = sum(row["is_correct"] for row in rows)
    source = "the reported evaluation"
    return [
        real_comparison(
            TOKENS,
            "row_loss_sum_nats",
            "heldout",
            evaluation.loss_sum_nats,
            total,
            source,
        ),
        comparison(
            TOKENS,
            "row_valid_targets",
            "heldout",
            str(evaluation.valid_targets),
            str(len(rows)),
            source,
        ),
        comparison(
            TOKENS,
            "row_correct_targets",
            "heldout",
            str(evaluation.correct_targets),
            str(correct),
            source,
        ),
    ]
