"""Claim 2.3: what a checkpoint write leaves, whatever lay there before and when.

A folder of checkpoints may be a copy, whose dates say in which order it was copied, or
hold the checkpoints of a training that was begun before. A write that is killed shows
neither.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from model import checkpoint
from model.checkpoint_manifest import Progress
from model.checks.rows import Row, comparison
from model.folders import folder_sha256
from model.training import initial_state
from model.training_loop import initial_progress
from model.training_request import TrainingRequest, training_identity

CLAIM = "2.3"
OTHER_SEED = 1
"""What is added to the first seed for another training."""


def measure_written(training: TrainingRequest) -> list[Row]:
    """Returns which checkpoint is the last, and what a write leaves of another one.

    Args:
        training: What is trained; nothing is, only its beginning is written.
    """
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        write = _writer(training)
        right = write(scratch / "right", 2, 0)
        return [
            _last_by_number(write, scratch / "dated"),
            *(
                _written_over(write, scratch / case, case, leave, right)
                for case, leave in LEFT.items()
            ),
        ]


Write = Callable[[Path, int, int], Path]


def _writer(training: TrainingRequest) -> Write:
    """Returns a function that writes the checkpoint of an update, by a seed."""
    documents = len(training.corpus.tokens["train"])
    start = initial_progress(training.train, documents)
    identity = training_identity(training)

    def write(folder: Path, update: int, seed: int) -> Path:
        state = initial_state(
            training.model,
            training.train.initialization_seed + seed,
            is_averaged=training.train.optimizer.is_averaged,
        )
        progress: Progress = replace(start, step=update)
        return checkpoint.write_checkpoint(folder, state, progress, identity)

    return write


def _last_by_number(write: Write, folder: Path) -> Row:
    """The checkpoint with the most updates is the last, though another is younger."""
    earlier, last = (write(folder, update, 0) for update in (1, 2))
    for path, seconds in ((earlier, 2e9), (last, 1e9)):
        for file in (*path.iterdir(), path):
            os.utime(file, (seconds, seconds))
    found = checkpoint.latest_checkpoint(folder).name
    source = "the number of updates"
    return comparison(
        CLAIM, "latest_checkpoint", "older_is_younger", "update-000002", found, source
    )


def _damaged(write: Write, folder: Path) -> None:
    file = write(folder, 2, 0) / checkpoint.ARRAYS
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _of_another_training(write: Write, folder: Path) -> None:
    write(folder, 2, OTHER_SEED)


def _without_arrays(write: Write, folder: Path) -> None:
    (write(folder, 2, 0) / checkpoint.ARRAYS).unlink()


LEFT: dict[str, Callable[[Write, Path], None]] = {
    "damaged": _damaged,
    "of_another_training": _of_another_training,
    "without_arrays": _without_arrays,
}
"""What lies under the name of a checkpoint, with a mark, when it is written."""


def _written_over(
    write: Write,
    folder: Path,
    case: str,
    leave: Callable[[Write, Path], None],
    right: Path,
) -> Row:
    leave(write, folder)
    found = folder_sha256(write(folder, 2, 0))
    source = "the same checkpoint in an empty folder"
    return comparison(
        CLAIM, "checkpoint_written_over", case, folder_sha256(right), found, source
    )
