"""The start of a training that goes on: the checkpoint that its request asks for.

One function, so that whoever holds a request against a checkpoint, a training or a
check of it, goes the same way and asks for the same identity.
"""

from __future__ import annotations

from pathlib import Path

from model.checkpoint import latest_checkpoint, load_checkpoint
from model.checkpoint_manifest import Progress
from model.training import TrainingState
from model.training_request import TrainingRequest, training_identity


def restore_training(
    request: TrainingRequest,
) -> tuple[TrainingState, Progress, Path]:
    """Returns state and progress of the latest committed checkpoint, and its folder.

    Args:
        request: The training that goes on, with a `restore_folder`.

    Raises:
        Refused: No checkpoint is committed, or the last one is damaged or of another
            training than this request asks for.
    """
    assert request.restore_folder is not None, "nothing to restore from"
    latest = latest_checkpoint(request.restore_folder)
    identity = training_identity(request)
    state, progress = load_checkpoint(latest, request.model, identity)
    return state, progress, latest
