"""What a training program is asked, as one frozen value, and who it thereby is.

The identity is written into every checkpoint, field by field, so that a restore under
another setting is refused by the field that differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.config import ModelConfig, TrainConfig, from_dict, to_dict
from model.corpus import Corpus, load_corpus
from model.refusal import ReasonCode, Refused
from model.runtime import describe


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """One training, from its start or from a checkpoint, to its last update."""

    label: str
    """Name of the training in the evidence."""
    model: ModelConfig
    train: TrainConfig
    corpus: Corpus
    final_update: int
    """Last update to make."""
    suffix: str
    """Ending of the names of artifacts, so that several trainings can keep theirs."""
    is_evaluated: bool
    """Whether validation is evaluated and the parameters become artifacts."""
    checkpoint_folder: Path | None
    """Where committed checkpoints go, None for nowhere."""
    checkpoint_every_updates: int
    restore_folder: Path | None
    """Folder whose latest committed checkpoint is the start, None to start afresh."""
    pause_after_update: int | None
    """Update after which to wait for a kill, None for never."""
    watched_write: int | None
    """Update whose checkpoint tells every step of its write, None for none."""
    pause_at_step: str | None
    """Step of the watched write at which to wait for a kill, None for never."""
    compared_trace: Path | None
    """Trace of another training; arrays of the first difference are kept."""


def read_request(request: Mapping[str, Any]) -> TrainingRequest:
    """Returns the typed request of `model.programs.train_model`.

    Args:
        request: `label`, `model`, `train`, `tokens` and `corpus` (paths); optional are
            `stop_after_update`, `suffix`, `evaluate`, `checkpoint_folder`,
            `checkpoint_every_updates`, `restore_folder`, `pause_after_update`,
            `watched_write`, `pause_at_step` and `compared_trace`.

    Raises:
        Refused: A field is absent or has no meaning, or the corpus is malformed.
    """
    absent = {"label", "model", "train", "tokens", "corpus"} - request.keys()
    if absent:
        raise Refused(
            ReasonCode.REQUEST_MALFORMED,
            f"The training request lacks {min(absent)!r}; it needs label, model, train,"
            " tokens and corpus.",
        )
    model = from_dict(ModelConfig, request["model"])
    train = from_dict(TrainConfig, request["train"])
    stop = request.get("stop_after_update")
    return TrainingRequest(
        label=request["label"],
        model=model,
        train=train,
        corpus=load_corpus(Path(request["tokens"]), Path(request["corpus"]), model),
        final_update=train.updates if stop is None else min(stop, train.updates),
        suffix=request.get("suffix", ""),
        is_evaluated=request.get("evaluate", True),
        checkpoint_folder=_path(request.get("checkpoint_folder")),
        checkpoint_every_updates=request.get("checkpoint_every_updates", 1),
        restore_folder=_path(request.get("restore_folder")),
        pause_after_update=request.get("pause_after_update"),
        watched_write=request.get("watched_write"),
        pause_at_step=request.get("pause_at_step"),
        compared_trace=_path(request.get("compared_trace")),
    )


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def training_identity(request: TrainingRequest) -> dict[str, Any]:
    """Returns what the training is, by the fields that a checkpoint is held against."""
    train = request.train
    return {
        "data": {
            "split_sha256": request.corpus.split_sha256,
            "tokens_sha256": request.corpus.description["tokens_sha256"]["train"],
        },
        "order_seed": train.order_seed,
        "batch_documents": train.batch_documents,
        "tokenizer": dict(request.corpus.description["tokenizer"]),
        "architecture": to_dict(request.model),
        "optimizer": to_dict(train.optimizer),
        # Written out although there is one choice today: a checkpoint outlives it.
        "precision": {"parameters": "float32", "moments": "float32", "dense": "fp32"},
        "dropout_seed": train.dropout_seed,
        "initialization_seed": train.initialization_seed,
        "numerics": describe(),
    }
