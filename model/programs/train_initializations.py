"""Trains the same recipe from other first seeds, and evaluates each.

One seed says nothing about the spread, and a spread without the seeds that failed says
too little; so every seed gives a row, whatever became of it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from model.checks.rows import Row, comparison
from model.config import EvaluateConfig, ModelConfig, TrainConfig, from_dict
from model.corpus import Corpus, load_corpus
from model.digests import tree_sha256
from model.evaluation import evaluate_split
from model.parameters import Parameters, load_parameters
from model.programs import entry
from model.refusal import ReasonCode, Refused
from model.training import initial_state, released_parameters
from model.training_loop import initial_progress, run_updates

CLAIM = "2.8"
# Far from the seeds of order, dropout and the other draws, which stay the same.
SEED_STEP = 1000
FAILURES = frozenset({ReasonCode.NON_FINITE_LOSS, ReasonCode.NON_FINITE_GRADIENT})


def main(request: dict[str, Any], out: Path) -> None:
    """Measures claim 2.8.

    Args:
        request: `model`, `train`, `evaluate` (settings), `parameters` (of the release),
            `tokens` and `corpus` (paths).
        out: Result folder.
    """
    model = from_dict(ModelConfig, request["model"])
    train = from_dict(TrainConfig, request["train"])
    settings = from_dict(EvaluateConfig, request["evaluate"])
    corpus = load_corpus(Path(request["tokens"]), Path(request["corpus"]), model)
    released = tree_sha256(load_parameters(Path(request["parameters"]), model))
    updates = settings.initialization_updates or train.updates
    rows = []
    for seed in initialization_seeds(train, settings.initializations):
        recipe = replace(train, initialization_seed=seed)
        row = train_and_evaluate(corpus, model, recipe, updates)
        rows.append(row | {"is_released": seed == train.initialization_seed})
        loss = row["heldout_nats_per_token"]
        said = row["failure_reason"] or f"held-out {loss:.3f} nats/token"
        entry.report(event="initialization", message=f"first seed {seed}: {said}")
    entry.write_rows(out, "initializations", rows)
    if updates == train.updates:
        source, repeated = "the released parameters", rows[0]["parameters_sha256"]
        compared = comparison(
            CLAIM, "released_initialization", "", released, repeated, source
        )
        entry.write_rows(out, "comparisons", [compared])


def initialization_seeds(train: TrainConfig, wanted: int) -> list[int]:
    """First seeds: the released one, then every thousandth after it, below 2**32."""
    first = train.initialization_seed
    return [(first + SEED_STEP * number) % 2**32 for number in range(wanted)]


def train_and_evaluate(
    corpus: Corpus, model: ModelConfig, train: TrainConfig, updates: int
) -> Row:
    """Returns the row of one training, which has failed where its numbers did.

    Args:
        corpus: Tokens of every split.
        model: Shape of the model.
        train: Recipe and seeds.
        updates: Updates to make.
    """
    documents = corpus.tokens["train"]
    state = initial_state(
        model, train.initialization_seed, is_averaged=train.optimizer.is_averaged
    )
    progress, failure = initial_progress(train, len(documents)), None
    try:
        for done in run_updates(state, progress, documents, model, train, updates):
            state, progress = done.state, done.progress
    except Refused as refused:
        if refused.code not in FAILURES:
            raise
        failure = str(refused.code)
    released = released_parameters(state)
    return {
        "initialization_seed": train.initialization_seed,
        "updates": progress.step,
        "asked_updates": updates,
        "parameters_sha256": tree_sha256(released),
        "failure_reason": failure,
        **_losses(released, corpus, model, is_failed=failure is not None),
    }


def _losses(
    parameters: Parameters, corpus: Corpus, model: ModelConfig, *, is_failed: bool
) -> Row:
    heldout = evaluate_split(parameters, corpus.tokens["heldout"], model)
    validation = evaluate_split(parameters, corpus.tokens["validation"], model)
    found: Row = {
        "validation_nats_per_token": validation.loss_sum_nats
        / validation.valid_targets,
        "heldout_nats_per_token": heldout.loss_sum_nats / heldout.valid_targets,
        "heldout_correct_targets": heldout.correct_targets,
    }
    if is_failed:
        found = dict.fromkeys(found)
    return found | {"heldout_valid_targets": heldout.valid_targets}


if __name__ == "__main__":
    entry.run(main)
