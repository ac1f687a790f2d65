"""Learns one batch by heart, without dropout, in a bounded number of updates.

A model that cannot do this has a broken gradient path, mask or target, whatever its
loss curve on the whole corpus looks like.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp

from model.checks.baselines import memorization_floor_nats
from model.checks.rows import count, real
from model.config import ModelConfig, TrainConfig, from_dict
from model.corpus import load_corpus
from model.evaluation import evaluate_split
from model.programs import entry
from model.training import initial_state, training_update

CLAIM = "1.12"


def main(request: dict[str, Any], out: Path) -> None:
    """Measures the part of claim 1.12 about one batch.

    Args:
        request: `model`, `train` (settings), `tokens` and `corpus` (paths).
        out: Result folder.
    """
    model = from_dict(ModelConfig, request["model"])
    train = from_dict(TrainConfig, request["train"])
    corpus = load_corpus(Path(request["tokens"]), Path(request["corpus"]), model)
    documents = corpus.tokens["train"][: train.overfit_documents]

    # The last parameters are judged: this is about the gradient path, not a release.
    batch, averaged = jnp.asarray(documents), train.optimizer.is_averaged
    state = initial_state(model, train.initialization_seed, is_averaged=averaged)
    for _ in range(train.overfit_updates):
        state, _ = training_update(state, batch, None, model, train.optimizer)
    result = evaluate_split(state.parameters, documents, model)
    loss = result.loss_sum_nats / result.valid_targets
    above = loss - memorization_floor_nats(documents)

    detail = f"{len(documents)} documents, floor {loss - above:.4f} nats"
    updates = train.overfit_updates
    rows = [
        real(CLAIM, "overfit_nats_per_token", "", loss, "nats", detail),
        real(CLAIM, "overfit_above_floor_nats_per_token", "", above, "nats", detail),
        count(CLAIM, "overfit_updates", "", updates, "updates"),
    ]
    entry.write_rows(out, "measurements", rows)


if __name__ == "__main__":
    entry.run(main)
