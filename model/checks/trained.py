"""A training that is watched while it goes: some updates made again, all draws counted.

Reads what the training has and changes nothing, so that the watched training and those
that nobody watches stay the same, bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from model.checks import updates
from model.checks.draws import (
    Consumed,
    measure_dropout,
    measure_dropout_places,
    measure_other_seeds,
    measure_short_batch,
    measure_thinned_logits,
    measure_uneven_epoch,
    thinning_factors,
)
from model.checks.evaluation import measure_validation
from model.checks.first_loss import RecordedLoss, measure_loss, measure_other_losses
from model.checks.gradients import measure_thinned_directions
from model.checks.objective import mixed_documents
from model.checks.rows import Row, comparison
from model.digests import tree_sha256
from model.parameters import Parameters, initial_parameters, load_parameters
from model.tokenizer import PAD
from model.training import TrainingState, dropout_key
from model.training_loop import CompletedUpdate
from model.training_request import TrainingRequest

if TYPE_CHECKING:
    from jaxtyping import Key

GRADIENT_DOCUMENTS = 2
"""Short documents whose gradient with dropout the reference follows."""


class TrainingChecks:
    """Rows about the updates of one training."""

    def __init__(self, request: TrainingRequest) -> None:
        """Has seen no update and no evaluation."""
        self.request = request
        self.checked = updates.checked_updates(request.final_update)
        self.consumed = Consumed()
        self.evaluations = 0
        self.measurements: list[Row] = []
        self.comparisons: list[Row] = []

    def see(
        self, before: TrainingState, completed: CompletedUpdate, loss_nats: float
    ) -> None:
        """Looks at one update, and makes it again where it is one of the chosen.

        Args:
            before: State before the update.
            completed: The update.
            loss_nats: Its loss as it was recorded.
        """
        self.consumed.see(completed)
        if completed.update in self.checked:
            self._make_again(before, completed, loss_nats)

    def evaluated(
        self, update: int, parameters: Parameters, losses: np.ndarray
    ) -> None:
        """Looks at one document of an evaluation of validation, the next one each time.

        Args:
            update: Number of the update that the evaluation follows.
            parameters: What is evaluated after this update.
            losses: Token losses of every validation document [N, T].
        """
        tokens = self.request.corpus.tokens["validation"]
        chosen = [self.evaluations % len(tokens)]
        self.evaluations += 1
        row = measure_validation(
            update, parameters, tokens[chosen], losses[chosen], self.request.model
        )
        self.measurements.append(row)

    def finish(self, learning_rates: Sequence[float], first_update: int) -> None:
        """Looks at what only all updates show.

        Args:
            learning_rates: Recorded rate of every update, one after another.
            first_update: Number of the first of them.
        """
        request = self.request
        if not learning_rates:
            return
        documents = len(request.corpus.tokens["train"])
        self.measurements += self.consumed.measure(request.train, documents)
        self.measurements.append(measure_uneven_epoch(request.train, documents))
        self.measurements.append(measure_short_batch(request.corpus.tokens["train"]))
        self.measurements += measure_other_seeds(request.train, documents)
        optimizer = request.train.optimizer
        self.measurements.append(
            updates.measure_learning_rates(learning_rates, first_update, optimizer)
        )

    def released(self, saved: Path, last: TrainingState) -> None:
        """Looks at what is evaluated and released: the average where one is taken.

        Args:
            saved: File of the released parameters.
            last: State after the last update.
        """
        model, optimizer = self.request.model, self.request.train.optimizer
        owed = last.average if optimizer.is_averaged else last.parameters
        assert owed is not None, "the state was begun without an average"
        source = "the average of parameters" if optimizer.is_averaged else "the last"
        found = tree_sha256(load_parameters(saved, model))
        self.comparisons.append(
            comparison(
                "2.9", "released_parameters", "", tree_sha256(owed), found, source
            )
        )

    def _make_again(
        self, before: TrainingState, completed: CompletedUpdate, loss_nats: float
    ) -> None:
        request, update = self.request, completed.update
        model, train = request.model, request.train
        tokens, rows = request.corpus.tokens["train"], completed.rows
        # Put together here: what the training made of its rows is in question.
        documents = np.full((train.batch_documents, tokens.shape[1]), PAD, np.int32)
        documents[: len(rows)] = tokens[rows]
        recorded = RecordedLoss(
            update=update,
            nats=loss_nats,
            documents=documents,
            key_data=completed.key_data,
        )
        start, gradients = before.parameters, completed.outcome.gradients
        if update == 1:
            # From the seed alone, and not from what the training says it began with.
            start = initial_parameters(model, train.initialization_seed)
            after = completed.state.parameters
            self.comparisons += measure_other_losses(recorded, start, after, model)
            self._check_recipe(start, documents, gradients)
        loss, expected = measure_loss(recorded, start, model)
        self.comparisons.append(loss)
        self.measurements += updates.measure_gradients(update, expected, gradients)
        self.measurements += updates.measure_update(
            f"trained/update-{update:03d}",
            before,
            gradients,
            completed.state,
            train.optimizer,
        )

    def _check_recipe(
        self, parameters: Parameters, documents: np.ndarray, gradients: Parameters
    ) -> None:
        """Looks at what needs no training: dropout, and a recipe that moves."""
        model, train = self.request.model, self.request.train
        self.measurements.append(measure_dropout_places(parameters, documents, model))
        if model.dropout_rate > 0.0:
            keys = [dropout_key(train.dropout_seed, update) for update in (1, 2)]
            self.measurements += measure_dropout(keys, model, train.dropout_seed)
            self._check_thinned(parameters, documents, keys[0])
        self.measurements += updates.measure_moving_recipe(parameters, gradients)

    def _check_thinned(
        self, parameters: Parameters, documents: np.ndarray, key: Key[Any, ""]
    ) -> None:
        """Looks at logits and gradients under the masks that a key draws."""
        model, train = self.request.model, self.request.train
        size = train.batch_documents
        masks = thinning_factors(key, size, model)
        self.measurements += measure_thinned_logits(
            parameters, documents, key, masks, model
        )
        # A corpus smaller than a batch leaves rows of PAD alone.
        whole = documents[(documents != PAD).any(axis=1)]
        few = mixed_documents(whole, min(GRADIENT_DOCUMENTS, len(whole)))
        self.measurements += measure_thinned_directions(
            parameters, few, size, key, masks, model, train.dropout_seed
        )
