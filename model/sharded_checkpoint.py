"""Committed checkpoints of a state that lies in parts on several controllers.

Orbax writes the parts, each controller its own, into a folder that all of them see, and
reads them back for any other number of devices. What makes a checkpoint count is ours,
as for a state that is whole everywhere: each controller digests the parts it holds, all
files are digested as they lie there, and a mark comes last. A restore digests every
file before Orbax opens one. What Orbax finds out late is refused here first: a place
that it cannot write to, and folders of one name that are not the same folder, for which
it waits ten minutes.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from model.adam import AdamState
from model.checkpoint import KINDS, latest_checkpoint, write_files
from model.checkpoint_manifest import (
    MANIFEST,
    MARK,
    MISMATCH_CODES,
    SHARDED_FORMAT,
    VERSION,
    Progress,
    check_identity,
    progress_entries,
    read_manifest,
    recorded_progress,
)
from model.config import ModelConfig
from model.controllers import meet
from model.digests import tree_sha256
from model.refusal import ReasonCode, Refused
from model.shared_checkpoint import (
    NOTHING,
    agreed_digests,
    chosen_by_first,
    gathered_digests,
)
from model.training import TrainingState

STATE = "state"
"""Folder of a checkpoint that Orbax writes and reads."""
INSTALL = "pip install 'text-harness[sharded]'"

Named = dict[str, Any]
"""Arrays of a state under their names in a checkpoint, kind by kind."""


class ShardedCheckpoints:
    """The committed checkpoints of a training, as one of its controllers sees them."""

    def __init__(self, place: str, template: TrainingState) -> None:
        """Writes and reads nothing yet.

        Args:
            place: Path of a folder that every controller sees, or a URL at gs://.
            template: Shape, dtype and sharding of each array of the state.

        Raises:
            Refused: `setting_invalid` for another place, or without Orbax.
        """
        self.orbax, self.folder = _opened(place)
        self.template = template
        self.place = place
        self.is_common = False

    def save(
        self,
        state: TrainingState,
        progress: Progress,
        identity: Mapping[str, Any],
        before_commit: Callable[[], None] = lambda: None,
    ) -> str | None:
        """Commits a state of which each controller holds parts; all have to call.

        Args:
            state: State between two updates.
            progress: Where the training stands.
            identity: What the training is.
            before_commit: Called by every controller when the bytes lie there.

        Returns:
            Name of the checkpoint where this controller committed it, None elsewhere.

        Raises:
            Refused: `controllers_apart` where they do not see the same folder.
        """
        self._require_common_place()
        target = self.folder / f"update-{progress.step:06d}"
        named = _named(state)
        parts = gathered_digests(_parts_sha256(named))
        if jax.process_index() == 0 and target.exists():
            # A mark of another training must not vouch for a half of this one.
            (target / MARK).unlink(missing_ok=True)
            target.rmtree()
        meet("cleared")
        with self._saver() as saver:
            saver.save(target / STATE, args=self.orbax.args.StandardSave(named))
        manifest = {
            "format": SHARDED_FORMAT,
            "version": VERSION,
            "identity": {field: identity[field] for field in MISMATCH_CODES},
            "progress": progress_entries(progress),
            "arrays": _described(named),
            "files": _digested_files(target / STATE),
            "controllers": {"count": jax.process_count(), "parts": parts},
        }
        before_commit()
        meet("written")
        is_first = jax.process_index() == 0
        if is_first:
            self._commit(target, json.dumps(manifest, sort_keys=True, indent=1))
        meet("committed")
        return str(target.name) if is_first else None

    def _commit(self, target: Any, manifest: str) -> None:
        content = manifest.encode()
        mark = hashlib.sha256(content).hexdigest().encode()
        files = {MANIFEST: content, MARK: mark}
        if isinstance(target, Path):
            write_files(target, files)
            return
        for name, each in files.items():
            (target / name).write_bytes(each)

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
            Refused: As `read_manifest` and `check_identity`; `checkpoint_checksum` when
                files or parts are not those that were committed; `controllers_apart`.
        """
        del model  # the identity has its shape, and the template its arrays
        self._require_common_place()
        update = chosen_by_first(self._latest_update)
        if update == NOTHING:
            return None
        checkpoint = self.folder / f"update-{update:06d}"
        manifest = read_manifest(checkpoint, SHARDED_FORMAT)
        check_identity(manifest["identity"], identity)
        _check_files(checkpoint, manifest["files"])
        meet("verified")
        wanted = _named(self.template)
        with self._saver() as saver:
            restored = saver.restore(
                checkpoint / STATE, args=self.orbax.args.StandardRestore(wanted)
            )
        self._check_parts(restored, manifest)
        progress = recorded_progress(manifest["progress"], int(restored["step"]))
        return _as_state(restored), progress, dict(manifest["controllers"])

    def _latest_update(self) -> int:
        try:
            name = str(latest_checkpoint(self.folder).name)
        except Refused:
            return NOTHING
        return int(name.removeprefix("update-"))

    def _check_parts(self, restored: Named, manifest: Mapping[str, Any]) -> None:
        """Holds parts against those that were saved, where they are cut alike."""
        found = gathered_digests(_parts_sha256(restored))
        written = manifest["controllers"]
        if _described(restored) != manifest["arrays"] or len(found) != written["count"]:
            return
        wrong = [i for i, each in enumerate(found) if each != written["parts"][i]]
        if wrong:
            raise Refused(
                ReasonCode.CHECKPOINT_CHECKSUM,
                f"Controllers {wrong} read other parts than they wrote; use an earlier"
                " checkpoint.",
                [f"controllers.parts.{i}" for i in wrong],
            )

    def _saver(self) -> Any:
        return self.orbax.Checkpointer(self.orbax.StandardCheckpointHandler())

    def _require_common_place(self) -> None:
        """Refuses a folder that is another one for another controller.

        Raises:
            Refused: `controllers_apart`.
        """
        if self.is_common or jax.process_count() == 1:
            return
        number = chosen_by_first(lambda: secrets.randbits(31))
        sign = self.folder / f".meeting-{number}"
        if jax.process_index() == 0:
            self.folder.mkdir(parents=True, exist_ok=True)
            sign.write_bytes(b"")
        meet("sign")
        seen = hashlib.sha256(str(sign.exists()).encode()).hexdigest()
        try:
            agreed = gathered_digests(seen)
        finally:
            meet("seen")
            if jax.process_index() == 0:
                sign.unlink()
        apart = [i for i, each in enumerate(agreed) if each != agreed[0]]
        if apart:
            raise Refused(
                ReasonCode.CONTROLLERS_APART,
                f"Controllers {apart} see another folder at {self.place!r} than"
                " controller 0; give all of them one folder, or a bucket at gs://.",
                [f"controllers.{i}" for i in apart],
            )
        self.is_common = True


def _opened(place: str) -> tuple[Any, Any]:
    """Returns Orbax, and the folder as a path that it takes."""
    if "://" in place and not place.startswith("gs://"):
        raise Refused(
            ReasonCode.SETTING_INVALID,
            f"A state in parts cannot be committed at {place!r}: Orbax writes to a"
            " folder that all controllers see and to gs:// alone; name one of them, or"
            " train by 'split' or 'collective', whose state goes to any URL.",
            ["checkpoints"],
        )
    try:
        # Here, because a state that is whole everywhere needs neither.
        import orbax.checkpoint
        from etils import epath
    except ImportError:
        raise Refused(
            ReasonCode.SETTING_INVALID,
            "A state in parts is committed by Orbax, which is not installed;"
            f" {INSTALL}.",
            ["checkpoints"],
        ) from None
    return orbax.checkpoint, epath.Path(place)


def _named(state: TrainingState) -> Named:
    trees = (state.parameters, state.adam.first_moment, state.adam.second_moment)
    named: Named = {"step": state.adam.step}
    named |= {kind: dict(tree) for kind, tree in zip(KINDS, trees, strict=True)}
    if state.average is not None:
        named["average"] = dict(state.average)
    return named


def _as_state(named: Named) -> TrainingState:
    parameters, first, second = (named[kind] for kind in KINDS)
    adam = AdamState(first_moment=first, second_moment=second, step=named["step"])
    return TrainingState(parameters=parameters, adam=adam, average=named.get("average"))


def _leaves(named: Named) -> dict[str, Any]:
    """Returns each array under its whole name, such as parameters/wte.weight."""
    leaves = {"step": named["step"]}
    for kind, tree in named.items():
        if kind != "step":
            leaves |= {f"{kind}/{name}": array for name, array in tree.items()}
    return leaves


def _described(named: Named) -> dict[str, Any]:
    """Returns shape and cut of each array."""
    return {
        name: {
            "dtype": array.dtype.name,
            "shape": list(array.shape),
            "shard_shape": list(array.sharding.shard_shape(array.shape)),
        }
        for name, array in _leaves(named).items()
    }


def _parts_sha256(named: Named) -> str:
    """Returns one digest of all parts that this controller has to write."""
    parts = {
        f"{name}{shard.index}": np.asarray(shard.data)
        for name, array in _leaves(named).items()
        for shard in array.addressable_shards
    }
    return tree_sha256(parts)


def _digested_files(folder: Any) -> dict[str, dict[str, Any]]:
    """Returns digest and size of every file of a folder that all controllers see.

    Each file is read by one controller: together they read all of them once.
    """
    names = sorted(
        str((parent / name).relative_to(folder))
        for parent, _, files in folder.walk()
        for name in files
    )
    agreed_digests(hashlib.sha256(json.dumps(names).encode()).hexdigest())
    count, index = jax.process_count(), jax.process_index()
    own = np.zeros((len(names), hashlib.sha256().digest_size), np.uint8)
    for i in range(index, len(names), count):
        digest = hashlib.sha256((folder / names[i]).read_bytes()).digest()
        own[i] = np.frombuffer(digest, np.uint8)
    rows = own[None]
    if count > 1:
        meet("files")
        rows = np.asarray(multihost_utils.process_allgather(own))
    return {
        name: {
            "sha256": rows[i % count, i].tobytes().hex(),
            "bytes": (folder / name).stat().length,
        }
        for i, name in enumerate(names)
    }


def _check_files(checkpoint: Any, recorded: Mapping[str, Any]) -> None:
    """Holds all files against the manifest, on every controller alike.

    Raises:
        Refused: `checkpoint_checksum`, naming every file that is absent, added or not
            the one that was committed.
    """
    found = _digested_files(checkpoint / STATE)
    wrong = [
        name
        for name in sorted(found.keys() | recorded.keys())
        if found.get(name) != recorded.get(name)
    ]
    if wrong:
        raise Refused(
            ReasonCode.CHECKPOINT_CHECKSUM,
            f"Checkpoint {checkpoint.name!r} holds other files than were committed"
            f" ({', '.join(wrong[:3])}); use an earlier checkpoint.",
            wrong,
        )
