"""Logits, losses and gradients against the float64 reference, and across shapes.

A mistake in the objective trains to a plausible loss, so it is looked for where it can
not hide: in single logits and losses, in gradients by finite differences, and in what
another batch size does to the same document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from model.batches import gather_batch
from model.checks.differences import largest_value
from model.checks.gradients import measure_directions, slope
from model.checks.rows import Row, count, real
from model.config import ModelConfig
from model.parameters import Parameters
from model.reference import objective as reference_objective
from model.reference import transformer as reference

REFERENCE, GRADIENT = "1.9", "1.10"
ENTRIES_A_TENSOR = 3
# Enough for every key and query to matter; the reference is run twice an entry.
GRADIENT_TOKENS = 17

Logits = Callable[[Parameters, np.ndarray], np.ndarray]


def reference_logits(
    parameters: Mapping[str, np.ndarray], tokens: np.ndarray, model: ModelConfig
) -> np.ndarray:
    """Returns the logits [N, T, V] of the reference, float64.

    Args:
        parameters: Parameters by name.
        tokens: Documents [N, T + 1].
        model: Shape of the model.
    """
    return np.stack([reference.forward(parameters, x[:-1], model)[0] for x in tokens])


def measure_reference(
    expected: np.ndarray, tokens: np.ndarray, logits: np.ndarray, losses: np.ndarray
) -> list[Row]:
    """Returns how far logits and losses of the system lie from the reference.

    Args:
        expected: Logits of the reference [N, T, V].
        tokens: Documents [N, T + 1].
        logits: Logits of the system [N, T, V].
        losses: Token losses of the system [N, T].
    """
    targets = tokens[:, 1:]
    is_target = targets != reference.PAD
    exact = np.stack(
        [
            reference_objective.token_losses(*pair)
            for pair in zip(expected, targets, strict=True)
        ]
    )
    apart = np.abs(logits.astype(np.float64) - expected)[is_target].max()
    losses_apart = np.abs(losses.astype(np.float64) - exact)[is_target].max()
    mean = float(losses.astype(np.float64).sum()) / int(is_target.sum())
    # The second softmax reads the system's own logits: it isolates the objective.
    mean_apart = abs(mean - reference_objective.mean_loss(logits, targets))
    hidden = int((losses[~is_target] != 0.0).sum())
    compared = int(is_target.sum())
    return [
        real(REFERENCE, "logit_largest_difference", "", apart, "logits"),
        real(REFERENCE, "token_loss_largest_difference", "", losses_apart, "nats"),
        real(REFERENCE, "mean_loss_difference", "", mean_apart, "nats"),
        count(REFERENCE, "padded_targets_with_loss", "", hidden, "targets"),
        count(REFERENCE, "targets_compared", "", compared, "targets"),
    ]


def crafted_logits(vocabulary: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Returns targets [1, T] and, by name, logits [1, T, V] that no trained model has.

    Args:
        vocabulary: V.
    """
    targets = np.array([[vocabulary - 1, 3, reference.PAD, vocabulary // 2]], np.int32)
    ladder = np.linspace(60.0, -60.0, vocabulary)
    even = np.sin(np.arange(targets.size * vocabulary)).reshape(*targets.shape, -1)
    table = {"unlikely": ladder + even, "large": even + 200.0, "small": even - 200.0}
    return targets, {name: found.astype(np.float32) for name, found in table.items()}


def measure_crafted(
    token_losses: Callable[[np.ndarray, np.ndarray], np.ndarray],
    loss_sum_and_count: Callable[[np.ndarray, np.ndarray], Sequence[np.ndarray]],
    vocabulary: int,
) -> list[Row]:
    """Returns how far losses of crafted logits lie from the reference.

    An objective that takes the logarithm of a probability, or the exponential of a
    logit as it is, is right wherever a trained model goes.

    Args:
        token_losses: Logits [1, T, V] and targets [1, T] to losses [1, T].
        loss_sum_and_count: The same to the summed loss and its targets.
        vocabulary: V.
    """
    targets, table = crafted_logits(vocabulary)
    rows = []
    for name, logits in table.items():
        exact = reference_objective.token_losses(logits[0], targets[0])
        own = np.asarray(token_losses(logits, targets), np.float64)[0]
        apart = largest_value(np.abs(own - exact) / np.maximum(exact, 1.0))
        case, lost = f"token_losses/{name}", int((~np.isfinite(own)).sum())
        measure = "crafted_loss_largest_difference"
        rows.append(real(REFERENCE, measure, case, apart, "1"))
        measure = "crafted_losses_not_finite"
        rows.append(count(REFERENCE, measure, case, lost, "losses"))
        total = float(loss_sum_and_count(logits, targets)[0])
        share = abs(total - exact.sum()) / max(exact.sum(), 1.0)
        measure, case = "crafted_sum_largest_difference", f"loss_sum_and_count/{name}"
        rows.append(real(GRADIENT, measure, case, share, "1"))
    return rows


class BatchLogits(NamedTuple):
    """Logits of documents, and the size of the batches they were computed in."""

    batch_documents: int
    """Rows of the compiled program."""
    values: np.ndarray
    """Logits [N, T, V]."""


def measure_batch_shapes(
    logits: Logits,
    parameters: Parameters,
    tokens: np.ndarray,
    sizes: Sequence[int],
    losses: np.ndarray,
) -> list[Row]:
    """Returns how far logits move when the same documents share another batch.

    Every size is compared with batches of one document, and those with the largest
    size, called once more, and with the stored losses of the released evaluation.

    Args:
        logits: The system under qualification, [R, T] to [R, T, V]; every size is a
            program of its own, so the products may be summed in another order.
        parameters: Parameters by name.
        tokens: Documents [N, T + 1].
        sizes: Documents of a batch, each at least 1.
        losses: Stored token losses of the released evaluation [N, T].
    """
    largest = max(*sizes, 2)
    few, stored = tokens[:largest], losses[:largest]
    run = partial(_in_batches, logits, parameters, few[:, :-1])
    alone = run(1)
    rows = [_single_losses(alone, few, stored)]
    for size in sizes:
        own, other = (alone, run(largest)) if size == 1 else (run(size), alone)
        rows.append(_shapes_apart(own, other, few[:, :-1]))
    return rows


def _shapes_apart(own: BatchLogits, other: BatchLogits, inputs: np.ndarray) -> Row:
    if own.batch_documents == other.batch_documents:
        raise ValueError(
            f"batches of {own.batch_documents} documents are compared with themselves"
        )
    apart = np.abs(own.values.astype(np.float64) - other.values)
    largest = apart[inputs != reference.PAD].max()
    return real(
        REFERENCE,
        "batch_shape_largest_difference",
        f"batch-{own.batch_documents:02d}",
        largest,
        "logits",
        f"against batches of {other.batch_documents}",
    )


def _single_losses(alone: BatchLogits, tokens: np.ndarray, stored: np.ndarray) -> Row:
    """How far the losses of documents alone lie from the stored ones, in nats."""
    targets = tokens[:, 1:]
    exact = [
        reference_objective.token_losses(*pair)
        for pair in zip(alone.values, targets, strict=True)
    ]
    apart = np.abs(stored.astype(np.float64) - np.stack(exact))
    largest = apart[targets != reference.PAD].max()
    measure = "single_document_loss_largest_difference"
    return real(REFERENCE, measure, "", largest, "nats", "against the stored losses")


def _in_batches(
    logits: Logits, parameters: Parameters, inputs: np.ndarray, size: int
) -> BatchLogits:
    results = []
    for start in range(0, len(inputs), size):
        chosen = np.arange(start, min(start + size, len(inputs)))
        batch = gather_batch(inputs, chosen, size)
        results.append(np.asarray(logits(parameters, batch))[: len(chosen)])
    return BatchLogits(size, np.concatenate(results))


def measure_gradients(
    gradients: Mapping[str, np.ndarray],
    parameters: Mapping[str, np.ndarray],
    tokens: np.ndarray,
    model: ModelConfig,
    seed: int,
) -> list[Row]:
    """Returns how far gradients lie from central differences of the reference.

    Of every tensor the entry with the largest gradient and two drawn ones that have a
    gradient at all are moved; of the fused QKV the largest of each third, because a
    path that is cut off there leaves the others as they are. The difference is a share
    of the largest gradient of the tensor. Then each tensor is moved as a whole, which
    no entry escapes. Padded targets of the documents are counted.

    Args:
        gradients: Gradient of the mean loss by the system, without dropout.
        parameters: Parameters by name.
        tokens: Documents [N, T + 1] the loss is taken over.
        model: Shape of the model.
        seed: Names the drawn entries.
    """
    exact = {name: np.asarray(x, dtype=np.float64) for name, x in parameters.items()}
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = []
    for name, gradient in gradients.items():
        flat = np.asarray(gradient, dtype=np.float64).ravel()
        scale = float(np.abs(flat).max())
        largest = _largest_entries(np.abs(gradient), 3 if ".c_attn." in name else 1)
        others = np.setdiff1d(np.flatnonzero(flat), largest)
        if others.size < ENTRIES_A_TENSOR:
            others = np.setdiff1d(np.arange(flat.size), largest)
        drawn = generator.choice(others, ENTRIES_A_TENSOR - 1, replace=False)
        entries = [*largest, *map(int, drawn)]
        only = partial(_only, shape=np.shape(gradient))
        apart = largest_value(
            abs(flat[entry] - slope(exact, name, only(entry), tokens, model))
            for entry in entries
        )
        # A tensor whose gradient is exactly 0 is measured in nats, not as a share.
        share = apart / scale if scale > 0.0 else apart
        detail = f"entries {entries}, largest gradient {scale:.3e}"
        rows += [
            real(GRADIENT, "gradient_largest_difference", name, share, "1", detail),
            count(GRADIENT, "gradient_entries", name, len(set(entries)), "entries"),
        ]
    rows += measure_directions(
        "gradient_directional_difference", gradients, parameters, tokens, model, seed
    )
    padded = int((tokens[:, 1:] == reference.PAD).sum())
    rows.append(count(GRADIENT, "gradient_padded_targets", "", padded, "targets"))
    return rows


def measure_padded_document(gradients: Mapping[str, np.ndarray]) -> Row:
    """Returns how many entries of gradients are not finite beside a document of PAD.

    A query without any key is where weights become 0/0; the loss leaves it out, and its
    gradient does not.

    Args:
        gradients: Gradient of the mean loss over documents, of which one is all PAD.

    Raises:
        ValueError: There is no gradient.
    """
    if not gradients:
        raise ValueError("there is no gradient that could be finite")
    wrong = sum(int((~np.isfinite(x)).sum()) for x in gradients.values())
    measure = "gradients_not_finite_beside_padding"
    return count(GRADIENT, measure, "", wrong, "entries")


def _only(entry: int, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the direction that moves one entry by 1 and no other."""
    direction = np.zeros(shape)
    direction.flat[entry] = 1.0
    return direction


def _largest_entries(sizes: np.ndarray, parts: int) -> list[int]:
    """Returns the flat index of the largest entry in each part of the last axis."""
    index = np.arange(sizes.size).reshape(sizes.shape)
    found = []
    for part in np.split(index, parts, axis=-1):
        flat = part.ravel()
        found.append(int(flat[np.asarray(sizes).ravel()[flat].argmax()]))
    return found


def mixed_documents(tokens: np.ndarray, wanted: int) -> np.ndarray:
    """Returns short documents of different lengths, padded to the longest of them.

    A loss that counts PAD is right wherever there is none, so the shorter ones keep
    theirs. Finite differences cost two forward passes an entry, so all are cut to their
    first tokens, each to a length of its own: the loss over the beginning of a document
    is as good a function as any.

    Args:
        tokens: Documents [N, T + 1].
        wanted: Number of documents; from 2 on there is PAD.
    """
    lengths = (tokens != reference.PAD).sum(axis=1)
    order = np.argsort(lengths, kind="stable")
    is_repeated = np.diff(lengths[order], prepend=-1) == 0
    # One of each length first, and the shortest others where there are too few lengths.
    chosen = order[np.argsort(is_repeated, kind="stable")][:wanted]
    chosen = chosen[np.argsort(lengths[chosen], kind="stable")]
    width = min(int(lengths[chosen].max()), GRADIENT_TOKENS)
    # BOS and one target are left of the first.
    kept = np.maximum(width - np.arange(len(chosen))[::-1, None], 2)
    return np.where(np.arange(width) < kept, tokens[chosen, :width], reference.PAD)
