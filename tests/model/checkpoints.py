"""The identity of a made-up training, and its first checkpoint."""

from pathlib import Path
from typing import Any

from model import checkpoint
from model.batches import Cursor
from model.checkpoint_manifest import Progress
from model.config import ModelConfig, TrainConfig, to_dict
from model.training import initial_state

MODEL = ModelConfig()
IDENTITY: dict[str, Any] = {
    "data": {"split_sha256": "a", "tokens_sha256": "b"},
    "order_seed": 12,
    "batch_documents": 16,
    "tokenizer": {"name": "bytes", "version": 1},
    "architecture": to_dict(MODEL),
    "optimizer": to_dict(TrainConfig().optimizer),
    "precision": {"parameters": "float32", "moments": "float32", "dense": "fp32"},
    "dropout_seed": 13,
    "initialization_seed": 11,
    "numerics": {"jaxlib": "0.10.2", "nproc": "2", "key_implementation": "threefry"},
}


def first_checkpoint(checkpoints: Path, identity: dict[str, Any] = IDENTITY) -> Path:
    """Writes the checkpoint of a training that has made no update yet."""
    where = Progress(
        step=0, cursor=Cursor(), order_sha256="c", cumulative_valid_targets=0
    )
    state = initial_state(MODEL, 1)
    return checkpoint.write_checkpoint(checkpoints, state, where, identity)


def unmet(rows: list) -> list:
    """Returns the rows of a matrix of refusals that a verdict would not accept."""
    return [
        row
        for refused, about in rows
        for row in (refused, *about)
        if row.get("expected_reason", row.get("expected"))
        != row.get("received_reason", row.get("measured"))
    ]
