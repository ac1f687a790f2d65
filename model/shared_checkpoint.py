"""Committed checkpoints of a training by several controllers, in one common place.

The files are those of `model.checkpoint`, and controller 0 alone writes them, because
every controller holds the whole state; all of them digest what they hold first, and a
checkpoint is committed only after every controller has come that far. The place is a
folder that all controllers see, or a URL that fsspec opens; the mark goes there last.
Controller 0 alone decides what is restored, so that none goes on from another update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from model.checkpoint import (
    ARRAYS,
    latest_checkpoint,
    load_checkpoint,
    pass_by,
    state_arrays,
    write_checkpoint,
)
from model.checkpoint_manifest import MANIFEST, MARK, Progress, read_manifest
from model.config import ModelConfig
from model.controllers import meet
from model.digests import tree_sha256
from model.refusal import ReasonCode, Refused
from model.training import TrainingState

FILES = (ARRAYS, MANIFEST, MARK)
"""Files of a checkpoint in the order in which they are written."""
BEFORE_MARK = f"{MARK}/before_rename"
NOTHING = -1


class SharedCheckpoints:
    """The committed checkpoints of a training, as one of its controllers sees them."""

    def __init__(self, place: str, scratch: Path) -> None:
        """Writes and reads nothing yet.

        Args:
            place: Path of a folder that every controller sees, or a URL.
            scratch: Folder of this controller alone, for what goes to a URL.
        """
        self.place = place
        self.is_remote = "://" in place
        self.folder = scratch if self.is_remote else Path(place)

    def save(
        self,
        state: TrainingState,
        progress: Progress,
        identity: Mapping[str, Any],
        before_commit: Callable[[], None] = lambda: None,
    ) -> str | None:
        """Commits a state that all controllers hold; all of them have to call.

        Args:
            state: State between two updates.
            progress: Where the training stands.
            identity: What the training is.
            before_commit: Called by every controller when the bytes lie there.

        Returns:
            Name of the checkpoint where this controller wrote it, None elsewhere.

        Raises:
            Refused: `controllers_apart` when they do not hold the same state,
                `checkpoint_not_written`.
        """
        parts = agreed_digests(tree_sha256(state_arrays(state)))
        described = {"count": jax.process_count(), "parts": parts}
        gate = _Gate(f"written-{progress.step}", before_commit)
        written = None
        if jax.process_index() == 0:
            written = self._write(state, progress, identity, gate, described)
        gate.pass_through()
        meet(f"committed-{progress.step}")
        return written

    def _write(
        self,
        state: TrainingState,
        progress: Progress,
        identity: Mapping[str, Any],
        gate: _Gate,
        parts: Mapping[str, Any],
    ) -> str:
        at_step = pass_by if self.is_remote else gate.at_step
        target = write_checkpoint(
            self.folder, state, progress, identity, at_step, parts
        )
        if self.is_remote:
            self._send(target, gate)
        return target.name

    def _send(self, target: Path, gate: _Gate) -> None:
        files, path = _opened(self.place)
        mark = f"{path}/{target.name}/{MARK}"
        if files.exists(mark):
            # A mark of another training must not vouch for a half of this one.
            files.rm_file(mark)
        files.makedirs(f"{path}/{target.name}", exist_ok=True)
        for name in (ARRAYS, MANIFEST):
            files.pipe_file(
                f"{path}/{target.name}/{name}", (target / name).read_bytes()
            )
        gate.pass_through()
        _commit(files, mark, (target / MARK).read_bytes())

    def restore(
        self, model: ModelConfig, identity: Mapping[str, Any]
    ) -> tuple[TrainingState, Progress, dict[str, Any]] | None:
        """Returns state, progress and who wrote them, of the last commit, to all alike.

        Args:
            model: Shape of the model.
            identity: What the training that goes on is.

        Returns:
            None where nothing was ever committed.

        Raises:
            Refused: As `load_checkpoint`; `controllers_apart` when controllers do not
                read the same state.
        """
        update = chosen_by_first(self._latest_update)
        if update == NOTHING:
            return None
        checkpoint = self._fetched(f"update-{update:06d}")
        state, progress = load_checkpoint(checkpoint, model, identity)
        agreed_digests(tree_sha256(state_arrays(state)))
        return state, progress, dict(read_manifest(checkpoint)["controllers"])

    def _latest_update(self) -> int:
        """Returns the update of the last committed checkpoint, or `NOTHING`."""
        if not self.is_remote:
            try:
                name = latest_checkpoint(self.folder).name
            except Refused:
                return NOTHING
            return int(name.removeprefix("update-"))
        files, path = _opened(self.place)
        files.invalidate_cache()
        marks = sorted(files.glob(f"{path}/update-*/{MARK}"))
        if not marks:
            return NOTHING
        return int(marks[-1].rsplit("/", 2)[-2].removeprefix("update-"))

    def _fetched(self, name: str) -> Path:
        """Returns the folder of a checkpoint on this machine; reading verifies it."""
        target = self.folder / name
        if self.is_remote:
            files, path = _opened(self.place)
            target.mkdir(parents=True, exist_ok=True)
            for file in FILES:
                try:
                    content = files.cat_file(f"{path}/{name}/{file}")
                except FileNotFoundError as error:
                    raise Refused(
                        ReasonCode.CHECKPOINT_DAMAGED,
                        f"Checkpoint {name!r} at {self.place!r} has no {file!r} for"
                        " this controller; give all of them the same place.",
                        [file],
                    ) from error
                (target / file).write_bytes(content)
        return target


class _Gate:
    """A point that all controllers pass together, once, before a commit."""

    def __init__(self, name: str, before: Callable[[], None]) -> None:
        self.name = name
        self.before = before
        self.is_passed = False

    def at_step(self, step: str) -> None:
        """Waits for the others before the mark of a checkpoint is written."""
        if step == BEFORE_MARK:
            self.pass_through()

    def pass_through(self) -> None:
        if not self.is_passed:
            self.is_passed = True
            # Controller 0 alone has written, and others came here sooner.
            meet("bytes")
            self.before()
            meet(self.name)


def agreed_digests(digest: str) -> list[str]:
    """Returns the digest of each controller in their order; all have to be the same.

    Args:
        digest: SHA-256 of what this controller holds, as hex.

    Raises:
        Refused: `controllers_apart`.
    """
    digests = gathered_digests(digest)
    apart = [i for i, each in enumerate(digests) if each != digests[0]]
    if apart:
        raise Refused(
            ReasonCode.CONTROLLERS_APART,
            f"Controllers {apart} hold another state than controller 0; nothing of it"
            " is committed.",
            [f"controllers.{i}" for i in apart],
        )
    return digests


def gathered_digests(digest: str) -> list[str]:
    """Returns the digest of each controller in their order.

    Args:
        digest: SHA-256 of this controller, as hex.
    """
    if jax.process_count() == 1:
        return [digest]
    meet("digests")
    own = np.frombuffer(bytes.fromhex(digest), dtype=np.uint8)
    rows = np.asarray(multihost_utils.process_allgather(own))
    return [row.tobytes().hex() for row in rows]


def chosen_by_first(choose: Callable[[], int]) -> int:
    """Returns what controller 0 chooses, to all alike.

    Args:
        choose: Called by controller 0 alone.
    """
    choice = choose() if jax.process_index() == 0 else 0
    if jax.process_count() > 1:
        meet("choice")
        choice = int(multihost_utils.broadcast_one_to_all(np.int32(choice)))
    return choice


def _commit(files: Any, mark: str, content: bytes) -> None:
    """Writes a mark that nobody else has written meanwhile.

    S3 refuses it on the server (If-None-Match), so that of two trainings in one place
    one commits, and the other hears of it.

    Raises:
        Refused: `checkpoint_not_written` when there is one.
    """
    try:
        files.pipe_file(mark, content, mode="create")
    except OSError as error:  # what S3 refuses has no name of its own
        if not isinstance(error, FileExistsError) and not files.exists(mark):
            raise
        raise Refused(
            ReasonCode.CHECKPOINT_NOT_WRITTEN,
            f"Another training has committed {mark!r} meanwhile; give each a place of"
            " its own.",
            [MARK],
        ) from error


def _opened(place: str) -> tuple[Any, str]:
    """Returns the file system of a URL and the path in it."""
    # Here, because a host with a folder needs no fsspec.
    from fsspec.core import url_to_fs

    files, path = url_to_fs(place)
    return files, str(path).rstrip("/")
