"""The stage that evaluates the released parameters, and other first seeds beside."""

from model.config import EvaluateConfig, ModelConfig, TrainConfig, to_dict
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.refusals import RefusedPair, StatedRow
from warehouse.records.training import (
    AttentionWeight,
    Baseline,
    Evaluation,
    Initialization,
    Perplexity,
    TokenLoss,
)
from warehouse.store import Execution

EVALUATE = "model.programs.evaluate_heldout"
INITIALIZATIONS = "model.programs.train_initializations"


@stage(
    programs=(EVALUATE, INITIALIZATIONS),
    writes=(
        Measurement,
        Comparison,
        Refusal,
        RefusedPair,
        StatedRow,
        Evaluation,
        TokenLoss,
        AttentionWeight,
        Baseline,
        Perplexity,
        Initialization,
    ),
)
def evaluate_heldout(
    work: Work,
    tokens: Execution,
    trained: Execution,
    model: ModelConfig,
    train: TrainConfig,
    evaluate: EvaluateConfig,
) -> None:
    """Measures losses, baselines, boundary and reference on held-out text.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        trained: The uninterrupted training, whose parameters are released.
        model: Shape of the model.
        train: Recipe and seeds, for trainings from other first seeds.
        evaluate: Batch sizes, and how much each check visits.
    """
    corpus = work.fetch(tokens, "tokens.npz", "corpus.json")
    release = work.fetch(trained, "parameters.npz", "training_state.json")
    request = {
        "tokens": corpus["tokens.npz"],
        "corpus": corpus["corpus.json"],
        "parameters": release["parameters.npz"],
        "training_state": release["training_state.json"],
        "model": to_dict(model),
        "evaluate": to_dict(evaluate),
    }

    work.run(EVALUATE, request)
    if work.is_asked_for(INITIALIZATIONS):
        work.run(INITIALIZATIONS, request | {"train": to_dict(train)})
