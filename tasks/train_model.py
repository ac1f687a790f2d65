"""The stage that trains the model without interruption, and overfits one batch."""

from model.config import ModelConfig, TrainConfig, to_dict
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.records.training import Evaluation, Update, UpdateDigest
from warehouse.store import Execution


@stage(
    programs=("model.programs.train_model", "model.programs.overfit_batch"),
    writes=(Measurement, Comparison, Update, UpdateDigest, Evaluation),
)
def train_model(
    work: Work, tokens: Execution, model: ModelConfig, train: TrainConfig
) -> None:
    """Trains to the last update; the training that all others are compared with.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        model: Shape of the model.
        train: Recipe and seeds.
    """
    files = work.fetch(tokens, "tokens.npz", "corpus.json")
    request = {
        "tokens": files["tokens.npz"],
        "corpus": files["corpus.json"],
        "model": to_dict(model),
        "train": to_dict(train),
    }

    work.run("model.programs.train_model", request | {"label": "uninterrupted"})
    work.run("model.programs.overfit_batch", request, label="overfit one batch")
