"""Committed checkpoints of a training: written so that a kill leaves none in part.

Every file goes to a temporary name and is flushed to the disk before the first one is
renamed, so that a full disk changes nothing; the mark that makes the checkpoint exist
gets its name last, and each step has a name, so that a proof can kill a process there.
A restore verifies everything before any array is used, and refuses with the one reason
code of the field that differs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from model.adam import AdamState
from model.checkpoint_arrays import Declared, read_arrays, recorded_arrays, write_arrays
from model.checkpoint_manifest import (
    MANIFEST,
    MARK,
    Progress,
    check_identity,
    manifest_bytes,
    read_manifest,
    recorded_progress,
)
from model.config import ModelConfig
from model.parameters import parameter_table
from model.refusal import ReasonCode, Refused, joined
from model.training import TrainingState

ARRAYS = "arrays.npz"
KINDS = ("parameters", "first_moment", "second_moment")

AtStep = Callable[[str], None]
"""Called with the name of each step of a write, before the step that follows it."""


def pass_by(step: str) -> None:
    """Does nothing at a step of a write."""


def state_arrays(state: TrainingState) -> dict[str, np.ndarray]:
    """Returns every array of the state on the host, under its name in a checkpoint."""
    arrays = {"step": np.asarray(state.adam.step)}
    trees = (state.parameters, state.adam.first_moment, state.adam.second_moment)
    for kind, tree in zip(KINDS, trees, strict=True):
        arrays |= {f"{kind}/{name}": np.asarray(x) for name, x in tree.items()}
    for name, x in (state.average or {}).items():
        arrays[f"average/{name}"] = np.asarray(x)
    return dict(sorted(arrays.items()))


def write_checkpoint(
    folder: Path,
    state: TrainingState,
    progress: Progress,
    identity: Mapping[str, Any],
    at_step: AtStep = pass_by,
    parts: Mapping[str, Any] | None = None,
) -> Path:
    """Writes one committed checkpoint and returns its folder.

    Args:
        folder: Folder of all checkpoints of this training; created when absent.
        state: State between two updates.
        progress: Where the training stands.
        identity: What the training is, one entry for each of `MISMATCH_CODES`.
        at_step: Hears the name of every step at which a process may die.
        parts: What each controller of a training by several held; None for one process.

    Raises:
        Refused: `checkpoint_not_written` when the folder takes no more bytes.
    """
    target = folder / f"update-{progress.step:06d}"
    arrays = state_arrays(state)
    content = write_arrays(arrays)
    manifest = manifest_bytes(arrays, content, progress, identity, parts)
    if _is_committed(target, content, manifest):
        return target
    mark = hashlib.sha256(manifest).hexdigest().encode()
    absent = _first_absent(target)
    try:
        write_files(target, {ARRAYS: content, MANIFEST: manifest, MARK: mark}, at_step)
    except OSError as error:
        _take_back(target, absent)
        raise Refused(
            ReasonCode.CHECKPOINT_NOT_WRITTEN,
            f"The checkpoint of update {progress.step} cannot be written to"
            f" {target.name!r} ({error.strerror or error}); the last committed one"
            " stays. Make room, or name a folder that can be written.",
        ) from error
    return target


def _first_absent(target: Path) -> Path | None:
    """Returns the outermost folder that a write makes, None where all are there."""
    absent = [path for path in (target, *target.parents) if not path.exists()]
    return absent[-1] if absent else None


def _take_back(target: Path, absent: Path | None) -> None:
    """Removes what a failed write has made, as far as the disk lets it."""
    if absent is not None:
        shutil.rmtree(absent, ignore_errors=True)
    for temporary in target.glob(".*.tmp"):
        with suppress(OSError):
            temporary.unlink()


def write_files(
    target: Path, files: Mapping[str, bytes], at_step: AtStep = pass_by
) -> None:
    """Takes all the room first, then gives every file its name, the mark its last."""
    at_step("folder/before")
    target.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        _write_temporary(target / name, content, at_step)
    # A mark of another training must not vouch for a half of this one.
    (target / MARK).unlink(missing_ok=True)
    _flush_folder(target)
    for name in files:
        at_step(f"{name}/before_rename")
        _temporary(target / name).replace(target / name)
        _flush_folder(target)
        at_step(f"{name}/renamed")
    _flush_folder(target.parent)
    at_step("folder/after")


def _is_committed(target: Path, content: bytes, manifest: bytes) -> bool:
    """Whether exactly this checkpoint lies there, so that no write can endanger it."""
    files = {ARRAYS: content, MANIFEST: manifest}
    files[MARK] = hashlib.sha256(manifest).hexdigest().encode()
    return all(
        (target / name).is_file() and (target / name).read_bytes() == expected
        for name, expected in files.items()
    )


def latest_checkpoint(folder: Path) -> Path:
    """Returns the folder of the committed checkpoint with the most updates.

    Args:
        folder: Folder of all checkpoints of a training.

    Raises:
        Refused: `checkpoint_absent` when none is committed.
    """
    committed = sorted(mark.parent for mark in folder.glob(f"update-*/{MARK}"))
    if not committed:
        raise Refused(
            ReasonCode.CHECKPOINT_ABSENT,
            f"Folder {folder.name!r} holds no committed checkpoint; give the folder of"
            f" a training that wrote update-NNNNNN/{MARK}.",
        )
    return committed[-1]


def load_checkpoint(
    checkpoint: Path, model: ModelConfig, identity: Mapping[str, Any]
) -> tuple[TrainingState, Progress]:
    """Returns state and progress of a committed checkpoint, after verifying all of it.

    Args:
        checkpoint: Folder of one checkpoint.
        model: Shape of the model that goes on.
        identity: What the training that goes on is, by field.

    Raises:
        Refused: With the reason code of the first thing that is absent, damaged or
            different. Text and fields name all of them, with one exception: where the
            manifest is not the committed one, nothing that it says is looked at.
    """
    manifest = read_manifest(checkpoint)
    kinds = [*KINDS, "average"] if identity["optimizer"]["average_decay"] else KINDS
    arrays = _verified_arrays(
        checkpoint / ARRAYS, manifest, identity, _declared(model, kinds)
    )
    trees: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    for spec in parameter_table(model):
        for kind, tree in trees.items():
            tree[spec.name] = jnp.asarray(arrays[f"{kind}/{spec.name}"])
    adam = AdamState(
        first_moment=trees["first_moment"],
        second_moment=trees["second_moment"],
        step=jnp.asarray(arrays["step"]),
    )
    progress = recorded_progress(manifest["progress"], int(arrays["step"]))
    state = TrainingState(
        parameters=trees["parameters"], adam=adam, average=trees.get("average")
    )
    return state, progress


def _verified_arrays(
    path: Path,
    manifest: Mapping[str, Any],
    identity: Mapping[str, Any],
    declared: Declared,
) -> dict[str, np.ndarray]:
    """Returns the arrays of this very training, or refuses all that is wrong at once.

    Another setting must not hide damage: the arrays of another training are held
    against what its own manifest says of them, because this model may need others.
    """
    wrong: list[Refused] = []
    try:
        check_identity(manifest["identity"], identity)
    except Refused as refused:
        wrong.append(refused)
        declared = recorded_arrays(manifest)
    try:
        arrays = read_arrays(path, manifest, declared)
    except Refused as refused:
        wrong.append(refused)
    if wrong:
        raise joined(wrong)
    return arrays


def _declared(
    model: ModelConfig, kinds: Sequence[str]
) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and dtype of every array a checkpoint of this model must hold."""
    declared: dict[str, tuple[tuple[int, ...], str]] = {"step": ((), "int32")}
    for spec in parameter_table(model):
        for kind in kinds:
            # Moments are stored like parameters: rounding them would change the run.
            declared[f"{kind}/{spec.name}"] = (spec.shape, spec.dtype)
    return declared


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")


def _write_temporary(path: Path, content: bytes, at_step: AtStep) -> None:
    at_step(f"{path.name}/before_temporary")
    half = len(content) // 2
    with _temporary(path).open("wb") as file:
        file.write(content[:half])
        file.flush()
        at_step(f"{path.name}/half_written")
        file.write(content[half:])
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Makes renames in a folder survive a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
