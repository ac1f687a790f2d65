"""Claim 1.11: malformed targets at each place where the system takes them.

Targets come in with the documents of a training or an evaluation, and meet logits in
the loss. A check that nobody calls refuses nothing, so each of the three is asked as it
is called in earnest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import jax.numpy as jnp
import numpy as np

from model import evaluation, objective, training_loop
from model.checks.refused import RefusalRows, Wrong, pair_row, refused_rows
from model.config import ModelConfig, TrainConfig
from model.digests import array_sha256
from model.parameters import Parameters
from model.refusal import ReasonCode
from model.training import fresh_state

CLAIM = "1.11"
TARGETS, UNTOUCHED = "malformed_targets", "targets_after_refusal"
DOCUMENTS = 2
ORDINARY = 5
"""A token that every model of bytes has."""

Spoil = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One place where targets come in."""

    good: np.ndarray
    """An array that it takes."""
    spoils: Mapping[str, tuple[str, Spoil]]
    """Kind and change of each malformation, in the order in which kinds are looked at;
    whatever is cut, the last number stays."""
    take: Callable[[np.ndarray], object]
    """Gives it an array."""


def entries(parameters: Parameters, model: ModelConfig) -> dict[str, Entry]:
    """Returns every place where the system takes targets, by its name.

    Args:
        parameters: Parameters by name, of any values.
        model: Shape of the model.
    """
    vocabulary = model.vocabulary_tokens
    documents = np.full((DOCUMENTS, model.context_tokens + 1), ORDINARY, np.int32)
    of_documents = _spoils(lambda array: array[-1], vocabulary)
    targets = documents[:, 1:]
    logits = jnp.zeros((*targets.shape, vocabulary), dtype=jnp.float32)
    of_targets = _spoils(lambda array: array[-1:], vocabulary)
    return {
        "training": Entry(
            good=documents,
            spoils=of_documents,
            take=partial(_train, parameters, model),
        ),
        "evaluation": Entry(
            good=documents,
            spoils=of_documents,
            take=lambda given: evaluation.evaluate_tokens(
                parameters, given, model, DOCUMENTS
            ),
        ),
        # Values are unknown while a program is traced; types and shapes are not.
        "loss": Entry(
            good=targets,
            spoils={k: v for k, v in of_targets.items() if v[0] != "range"},
            take=lambda given: objective.loss_sum_and_count(logits, given),  # type: ignore[arg-type]
        ),
    }


def _train(parameters: Parameters, model: ModelConfig, documents: np.ndarray) -> None:
    """Asks for the first update of a training on these documents."""
    train = TrainConfig()
    state = fresh_state(parameters, is_averaged=train.optimizer.is_averaged)
    progress = training_loop.initial_progress(train, DOCUMENTS)
    asked = (state, progress, documents, model, train)
    next(training_loop.run_updates(*asked, final_update=1))


def _spoils(lone: Spoil, vocabulary_tokens: int) -> dict[str, tuple[str, Spoil]]:
    """Returns the malformations; `lone` leaves a row that could be broadcast."""
    return {
        "dtype": ("dtype", lambda array: array.astype(np.int64)),
        "real_numbers": ("dtype", lambda array: array.astype(np.float32)),
        "shape": ("shape", lambda array: array[:, 1:]),
        "broadcastable": ("shape", lone),
        "below_range": ("range", lambda array: _with_last(array, -1)),
        "above_range": ("range", lambda array: _with_last(array, vocabulary_tokens)),
    }


def _with_last(array: np.ndarray, value: int) -> np.ndarray:
    """Returns an array whose last number is another."""
    changed = array.copy()
    changed[(-1,) * changed.ndim] = value
    return changed


def measure_malformed_targets(found: Mapping[str, Entry]) -> RefusalRows:
    """Returns what became of targets with a wrong type, shape or range, and with two.

    Args:
        found: Places where targets come in, by name.
    """
    rows = RefusalRows(refusals=[], comparisons=[], refused_pairs=[])
    for name, entry in found.items():
        for case in entry.spoils:
            given = _given(entry, case)
            refused, about = refused_rows(
                CLAIM, TARGETS, _wrong(name, entry, case), *given, UNTOUCHED
            )
            rows.refusals.append(refused)
            rows.comparisons.extend(about)
        for pair in _pairs(entry):
            first, second = (_wrong(name, entry, case) for case in pair)
            given = _given(entry, *pair)
            rows.refused_pairs.append(pair_row(CLAIM, TARGETS, first, second, *given))
    return rows


def _pairs(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yields the malformations that can be made together: those of two kinds."""
    for first, second in combinations(entry.spoils, 2):
        if entry.spoils[first][0] != entry.spoils[second][0]:
            yield first, second


def _wrong(name: str, entry: Entry, case: str) -> Wrong:
    kind = entry.spoils[case][0]
    code = ReasonCode(f"targets_{kind}")
    return Wrong(case=f"{name}/{case}", code=code, fields=(kind,))


def _given(entry: Entry, *cases: str) -> tuple[Callable[[], object], Callable[[], str]]:
    array = entry.good
    for case in cases:
        array = entry.spoils[case][1](array)

    def attempt() -> None:
        try:
            entry.take(array)
        except (IndexError, TypeError, ValueError):
            # An error of whatever met them next: they came in, and that is the row.
            return

    return attempt, partial(array_sha256, array)
