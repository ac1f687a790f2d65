"""Claim 2.1, before any kill: what a training draws, and that it never draws it twice.

A training that repeats its dropout key or its order equals itself in every restore, and
learns a little worse. So keys and rows are looked at as they were consumed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from model.batches import Cursor, epoch_order, gather_batch, take_batch
from model.checks.differences import largest_value
from model.checks.rows import Row, count, real
from model.config import ModelConfig, TrainConfig
from model.parameters import Parameters
from model.reference import transformer as reference
from model.training import dropout_key, mean_loss
from model.training_loop import CompletedUpdate
from model.transformer import drop, logits

if TYPE_CHECKING:
    from jaxtyping import Key

ORDERS, DROPOUT = "2.1", "2.9"
ENTRIES = 100_000
"""Numbers that dropout is tried on, at each place, or a few more."""
THINNED_DOCUMENTS = 2
"""Documents of a batch whose logits the reference computes too."""

SEEDS = 4
"""Seeds next to each other whose first draws are compared, and draws of each."""


class Consumed:
    """What the updates of one training have consumed."""

    def __init__(self) -> None:
        """Has seen no update."""
        self.keys: list[tuple[int, ...]] = []
        self.epochs: dict[int, list[int]] = {}

    def see(self, completed: CompletedUpdate) -> None:
        """Remembers the key and the rows of one update."""
        self.keys.append(tuple(map(int, completed.key_data)))
        rows = self.epochs.setdefault(completed.cursor.epoch, [])
        rows.extend(map(int, completed.rows))

    def measure(self, train: TrainConfig, documents: int) -> list[Row]:
        """Returns what was drawn twice, or was no draw of its own.

        Args:
            train: Recipe and seeds.
            documents: Number of training documents.
        """
        whole = [rows for rows in self.epochs.values() if len(rows) >= documents]
        every = list(range(documents))
        unfair = sum(sorted(rows) != every for rows in whole)
        again = len(whole) - len({tuple(rows) for rows in whole})
        repeated = len(self.keys) - len(set(self.keys))
        others = {*self._of_the_order(train), *_first_keys(train)}
        shared = sum(key in others for key in self.keys)
        return [
            count(ORDERS, "dropout_keys_consumed", "", len(self.keys), "keys"),
            count(ORDERS, "dropout_keys_repeated", "", repeated, "keys"),
            count(ORDERS, "dropout_keys_of_another_draw", "", shared, "keys"),
            count(ORDERS, "whole_epochs", "", len(whole), "epochs"),
            count(ORDERS, "epochs_without_every_document", "", unfair, "epochs"),
            count(ORDERS, "epochs_in_a_repeated_order", "", again, "epochs"),
        ]

    def _of_the_order(self, train: TrainConfig) -> Iterator[tuple[int, ...]]:
        """The numbers that name the order of each epoch, as a key would hold them."""
        for epoch in self.epochs:
            yield train.order_seed, epoch
            yield epoch, train.order_seed


def _first_keys(train: TrainConfig) -> Iterator[tuple[int, ...]]:
    """Data of the keys that seeds alone give; each update has to fold in its number."""
    for seed in (train.order_seed, train.initialization_seed, train.dropout_seed):
        yield tuple(map(int, np.asarray(jax.random.key_data(jax.random.key(seed)))))


def measure_uneven_epoch(train: TrainConfig, documents: int) -> Row:
    """Returns how many documents an epoch with a short last batch has not just once.

    The declared corpus may fill every batch, and then nothing can be left out.

    Args:
        train: Recipe and seeds.
        documents: Number of training documents.
    """
    # One document is left for the last batch.
    size, cursor = max(documents - 1, 1), Cursor()
    seen: list[int] = []
    # So many batches and no more: an epoch may never end.
    for _ in range(-(-documents // size)):
        rows, cursor = take_batch(
            cursor,
            order_seed=train.order_seed,
            documents=documents,
            batch_documents=size,
        )
        seen.extend(map(int, rows))
    # A batch of the next epoch in the place of the rest would show one of them twice.
    unfair = sum(seen.count(document) != 1 for document in range(documents))
    detail = f"{documents} documents in batches of {size}"
    measure = "documents_not_once_in_an_uneven_epoch"
    return count(ORDERS, measure, "", unfair, "documents", detail)


def measure_short_batch(tokens: np.ndarray) -> Row:
    """Returns how many rows of a short batch are neither its document nor PAD.

    The declared corpus fills every batch, and what an earlier batch has left in a
    buffer shows only where a later one does not fill it.

    Args:
        tokens: Training documents [N, T + 1].
    """
    size, apart = max(len(tokens), 2), 0
    for rows in (np.arange(len(tokens)), np.arange(1)):
        expected = np.full((size, tokens.shape[1]), reference.PAD, tokens.dtype)
        expected[: len(rows)] = tokens[rows]
        found = gather_batch(tokens, rows.astype(np.int32), size)
        apart += int((found != expected).any(axis=1).sum())
    detail = f"1 document after {len(tokens)} in batches of {size}"
    return count(ORDERS, "rows_apart_in_a_short_batch", "", apart, "rows", detail)


def measure_other_seeds(train: TrainConfig, documents: int) -> list[Row]:
    """Returns how many draws of neighbouring seeds are one and the same.

    A seed to which the number of the draw is added gives the next draw of one training
    to the training beside it.

    Args:
        train: Recipe and seeds.
        documents: Number of training documents.
    """
    orders, keys = set(), set()
    for seed, number in itertools.product(range(SEEDS), range(SEEDS)):
        order = epoch_order(train.order_seed + seed, number, documents)
        orders.add(np.asarray(order).tobytes())
        key = dropout_key(train.dropout_seed + seed, number + 1)
        keys.add(np.asarray(jax.random.key_data(key)).tobytes())
    detail, measure = f"{SEEDS} draws of {SEEDS} seeds", "draws_shared_by_seeds"
    return [
        count(ORDERS, measure, "order", SEEDS**2 - len(orders), "draws", detail),
        count(ORDERS, measure, "dropout_key", SEEDS**2 - len(keys), "draws", detail),
    ]


def measure_alike_tensors(parameters: Parameters) -> Row:
    """Returns how alike any two fresh tensors are, in standard deviations.

    One key for all of them draws the same numbers again, only scaled. What is filled
    with one number is not drawn.

    Args:
        parameters: Fresh parameters by name.
    """
    flat = {name: np.asarray(x, np.float64).ravel() for name, x in parameters.items()}
    drawn = {name: x for name, x in flat.items() if np.ptp(x)}
    most, detail = math.nan, "there are no two drawn tensors"
    for one, other in itertools.combinations(sorted(drawn), 2):
        size = min(drawn[one].size, drawn[other].size)
        share = np.corrcoef(drawn[one][:size], drawn[other][:size])[0, 1]
        apart = abs(float(share)) * math.sqrt(size)
        if not apart <= most:
            most, detail = apart, f"{one} and {other}"
    return real(ORDERS, "tensors_alike_deviation", "", most, "1", detail)


def measure_dropout(
    keys: Sequence[Key[Any, ""]], model: ModelConfig, seed: int
) -> list[Row]:
    """Returns what the model's dropout keeps, what it makes of it, and where.

    It is tried on arrays of the model's own form: a mask that documents, positions or
    channels share keeps as many numbers as one that they do not.

    Args:
        keys: Dropout keys of two updates or more.
        model: Shape of the model, whose dropout rate is more than 0.
        seed: Names the numbers that it is tried on.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    # Away from 0, so that what is kept can be told from what is dropped.
    shape = (model.context_tokens, model.width)
    documents = max(-(-ENTRIES // math.prod(shape)), 2)
    x = generator.uniform(0.5, 2.0, (documents, *shape)).astype(np.float32)
    places = range(1 + 2 * model.blocks)
    rate = model.dropout_rate
    thin = jax.jit(partial(drop, rate=rate))
    kept, alike, errors, masks = [], [], [], set()
    for key in keys:
        for place in places:
            found = np.asarray(thin(jnp.asarray(x), key, jnp.int32(place)))
            is_kept = found != 0.0
            masks.add(is_kept.tobytes())
            kept.append(_deviation(is_kept, 1.0 - rate))
            alike += _neighbours(is_kept, rate)
            errors.append(_largest_error_ulp(found[is_kept], x[is_kept], rate))
    repeated = len(keys) * len(places) - len(masks)
    untouched = np.asarray(drop(jnp.asarray(x), None, 0, rate))
    changed = int((untouched != x).sum())
    detail = f"{len(masks)} draws of {x.size} numbers"
    nearest = largest_value(alike)
    return [
        real(DROPOUT, "dropout_kept_deviation", "", max(kept), "1", detail),
        real(DROPOUT, "dropout_neighbours_deviation", "", nearest, "1", detail),
        real(
            DROPOUT, "dropout_largest_error", "", largest_value(errors), "ulp", detail
        ),
        count(DROPOUT, "dropout_masks_repeated", "", repeated, "masks"),
        count(DROPOUT, "numbers_changed_without_key", "", changed, "numbers"),
    ]


def _deviation(is_so: np.ndarray, share: float) -> float:
    """Returns how far a count lies from its expectation, in standard deviations."""
    expected = is_so.size * share
    return float(abs(int(is_so.sum()) - expected) / np.sqrt(expected * (1.0 - share)))


def _neighbours(is_kept: np.ndarray, rate: float) -> list[float]:
    """Returns how far numbers share the fate of a neighbour, along each axis.

    Every number has one neighbour at most, so that all pairs are draws of their own.
    """
    share, found = (1.0 - rate) ** 2 + rate**2, []
    for axis in range(is_kept.ndim):
        along = np.moveaxis(is_kept, axis, 0)
        pairs = along[: len(along) // 2 * 2].reshape(-1, 2, *along.shape[1:])
        if pairs.size:
            found.append(_deviation(pairs[:, 0] == pairs[:, 1], share))
    return found


def _largest_error_ulp(found: np.ndarray, x: np.ndarray, rate: float) -> float:
    """Returns how far kept numbers lie from x / (1 - rate), in units of the last."""
    exact = x.astype(np.float64) / (1.0 - rate)
    spacing = np.spacing(exact.astype(np.float32)).astype(np.float64)
    return largest_value(np.abs(found.astype(np.float64) - exact) / spacing)


def measure_dropout_places(
    parameters: Parameters, documents: np.ndarray, model: ModelConfig
) -> Row:
    """Returns how many places of the model draw no mask, or one too many.

    Counted in the traced training loss: after the embedding, and after attention and
    feed-forward of every block.

    Args:
        parameters: Parameters by name.
        documents: A batch.
        model: Shape of the model.
    """
    loss = partial(mean_loss, model=model)
    program = jax.make_jaxpr(loss)(
        parameters, jnp.asarray(documents), jax.random.key(0)
    )
    draws = _draws(program.jaxpr)
    wanted = 1 + 2 * model.blocks if model.dropout_rate > 0.0 else 0
    detail = f"{draws} draws, {wanted} places"
    missing = abs(draws - wanted)
    return count(DROPOUT, "dropout_places_apart", "", missing, "places", detail)


def thinning_factors(
    key: Key[Any, ""], documents: int, model: ModelConfig
) -> list[np.ndarray]:
    """Returns what dropout multiplies by at each place of the model [B, T, D], float64.

    Args:
        key: Dropout key of an update.
        documents: Documents of a batch.
        model: Shape of the model, whose dropout rate is more than 0.
    """
    ones = jnp.ones((documents, model.context_tokens, model.width), dtype=jnp.float32)
    thin = jax.jit(partial(drop, rate=model.dropout_rate))
    return [
        np.asarray(thin(ones, key, jnp.int32(place)), np.float64)
        for place in range(1 + 2 * model.blocks)
    ]


def measure_thinned_logits(
    parameters: Parameters,
    documents: np.ndarray,
    key: Key[Any, ""],
    masks: Sequence[np.ndarray],
    model: ModelConfig,
) -> list[Row]:
    """Returns how far logits with dropout lie from the reference's under its masks.

    Where in the model something is dropped shows in no mask and in no loss curve.

    Args:
        parameters: Parameters by name.
        documents: Batch of an update.
        key: Dropout key of the update.
        masks: Its `thinning_factors`.
        model: Shape of the model.

    Reference: model/reference/transformer.py
    """
    inputs = jnp.asarray(documents[:, :-1])
    found = jax.jit(partial(logits, model=model))(parameters, inputs, dropout_key=key)
    arrays = {name: np.asarray(x) for name, x in parameters.items()}
    apart = []
    for row, tokens in enumerate(documents[:THINNED_DOCUMENTS, :-1]):
        factors = [mask[row] for mask in masks]
        exact, _ = reference.forward(arrays, tokens, model, thinned=factors)
        own = np.asarray(found[row], np.float64)
        apart.append(np.abs(own - exact)[documents[row, 1:] != reference.PAD].max())
    largest, compared = float(np.max(apart)), len(apart)
    measure = "thinned_logit_largest_difference"
    return [
        real(DROPOUT, measure, "", largest, "logits"),
        count(DROPOUT, "thinned_documents", "", compared, "documents"),
    ]


def _draws(program: Any) -> int:
    """Returns how often a program draws random bits, its inner programs included."""
    found = 0
    for equation in program.eqns:
        found += equation.primitive.name == "random_bits"
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                found += _draws(inner)
    return found
