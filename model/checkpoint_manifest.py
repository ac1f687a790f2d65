"""The manifest of a checkpoint: what was trained, how far, and which arrays.

A checkpoint belongs to one training. What makes it that one is written field by field,
so that a restore under another setting is refused by the field that differs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from model.batches import Cursor
from model.config import OptimizerConfig
from model.digests import array_sha256
from model.refusal import ReasonCode, Refused

FORMAT = "text-harness training checkpoint"
SHARDED_FORMAT = "text-harness sharded training checkpoint"
"""Format of a checkpoint whose state lies in the files of several controllers."""
VERSION = 1
MANIFEST, MARK = "manifest.json", "COMMITTED"

# One reason code for each field of the identity.
MISMATCH_CODES = {
    "data": ReasonCode.CHECKPOINT_MISMATCH_DATA,
    "order_seed": ReasonCode.CHECKPOINT_MISMATCH_ORDER_SEED,
    "batch_documents": ReasonCode.CHECKPOINT_MISMATCH_BATCH,
    "tokenizer": ReasonCode.CHECKPOINT_MISMATCH_TOKENIZER,
    "architecture": ReasonCode.CHECKPOINT_MISMATCH_ARCHITECTURE,
    "optimizer": ReasonCode.CHECKPOINT_MISMATCH_OPTIMIZER,
    "precision": ReasonCode.CHECKPOINT_MISMATCH_POLICY,
    "dropout_seed": ReasonCode.CHECKPOINT_MISMATCH_DROPOUT_SEED,
    "initialization_seed": ReasonCode.CHECKPOINT_MISMATCH_INITIALIZATION_SEED,
    "numerics": ReasonCode.CHECKPOINT_MISMATCH_NUMERICS,
}
# Parts with a code of their own; a new optimizer field cannot be without one.
_PARTS_WITH_A_CODE = {
    "optimizer": tuple(field.name for field in fields(OptimizerConfig)),
    "numerics": ("jaxlib", "xla_flags", "nproc", "key_implementation"),
}
_PART_CODES = {
    f"{field}.{part}": ReasonCode(f"checkpoint_mismatch_{part}")
    for field, parts in _PARTS_WITH_A_CODE.items()
    for part in parts
}


def mismatch_code(place: str) -> ReasonCode:
    """Returns the code of a difference, such as of ``optimizer.beta2``."""
    return _PART_CODES.get(place, MISMATCH_CODES[place.partition(".")[0]])


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a training stands between two updates, beside its arrays."""

    step: int
    """Updates made."""
    cursor: Cursor
    """Position in the shuffled order of the next update."""
    order_sha256: str
    """Digest of the document order of the cursor's epoch."""
    cumulative_valid_targets: int
    """Valid targets consumed by all updates so far."""


def manifest_bytes(
    arrays: Mapping[str, np.ndarray],
    file: bytes,
    progress: Progress,
    identity: Mapping[str, Any],
    parts: Mapping[str, Any] | None = None,
) -> bytes:
    """Returns the manifest as JSON text; equal states give equal bytes.

    Args:
        arrays: Every array of the state by its name in the checkpoint.
        file: Content of the array file.
        progress: Where the training stands.
        identity: What the training is, one entry for each of `MISMATCH_CODES`.
        parts: What each controller of a training by several held; None for one process.
    """
    described = {
        name: {
            "dtype": array.dtype.name,
            "shape": list(array.shape),
            "sha256": array_sha256(array),
        }
        for name, array in arrays.items()
    }
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "identity": {field: identity[field] for field in MISMATCH_CODES},
        "progress": progress_entries(progress),
        "arrays_file": {"sha256": hashlib.sha256(file).hexdigest(), "bytes": len(file)},
        "arrays": described,
        **({} if parts is None else {"controllers": parts}),
    }
    return json.dumps(manifest, sort_keys=True, indent=1).encode()


def progress_entries(progress: Progress) -> dict[str, Any]:
    """Returns where a training stands as plain values; see `recorded_progress`."""
    return {
        "step": progress.step,
        "epoch": progress.cursor.epoch,
        "position": progress.cursor.position,
        "order_sha256": progress.order_sha256,
        "cumulative_valid_targets": progress.cumulative_valid_targets,
    }


def read_manifest(checkpoint: Path, wanted: str = FORMAT) -> dict[str, Any]:
    """Returns the manifest of a checkpoint, held against its commit mark.

    Args:
        checkpoint: Folder of the checkpoint.
        wanted: Format that it has to have.

    Raises:
        Refused: `checkpoint_absent` without a mark, `checkpoint_damaged` when mark or
            manifest cannot be read or differ, `checkpoint_format_unknown`.
    """
    if not (checkpoint / MARK).is_file():
        raise Refused(
            ReasonCode.CHECKPOINT_UNCOMMITTED,
            f"Checkpoint {checkpoint.name!r} has no mark {MARK!r}, so its write never"
            " ended; use an earlier checkpoint.",
            [MARK],
        )
    try:
        text = (checkpoint / MANIFEST).read_bytes()
        mark = (checkpoint / MARK).read_bytes().decode("ascii")
        if hashlib.sha256(text).hexdigest() != mark:
            raise ValueError(f"its digest is not the one in {MARK}")
        manifest = json.loads(text)
        found = (manifest["format"], manifest["version"])
        if found == (wanted, VERSION):
            _check_layout(manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(
            ReasonCode.CHECKPOINT_DAMAGED,
            f"The manifest of checkpoint {checkpoint.name!r} is damaged ({error}); use"
            " an earlier checkpoint.",
            [MANIFEST],
        ) from error
    if found != (wanted, VERSION):
        raise Refused(
            ReasonCode.CHECKPOINT_FORMAT_UNKNOWN,
            f"Checkpoint {checkpoint.name!r} has format {found!r}; what reads it here"
            f" wants {(wanted, VERSION)!r}.",
            ["format"] * (found[0] != wanted) + ["version"] * (found[1] != VERSION),
        )
    return manifest


def _check_layout(manifest: Mapping[str, Any]) -> None:
    """Raises ValueError or KeyError unless every field has its type."""
    progress = manifest["progress"]
    is_sharded = manifest["format"] == SHARDED_FORMAT
    files = manifest["files"].values() if is_sharded else [manifest["arrays_file"]]
    numbers = ("step", "epoch", "position", "cumulative_valid_targets")
    arrays = manifest["arrays"].values()
    own = ("shard_shape", list) if is_sharded else ("sha256", str)
    described = (own, ("dtype", str), ("shape", list))
    typed: list[tuple[Any, type]] = [
        (manifest["identity"], dict),
        *((progress[name], int) for name in numbers),
        (progress["order_sha256"], str),
        *((file["bytes"], int) for file in files),
        *((file["sha256"], str) for file in files),
        *((array[name], kind) for array in arrays for name, kind in described),
    ]
    wrong = [value for value, kind in typed if type(value) is not kind]
    if wrong:
        raise ValueError(f"{wrong[0]!r} has a wrong type")


def check_identity(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Holds what a checkpoint was made by against what goes on from it.

    Args:
        recorded: Identity in the manifest.
        wanted: Identity of the training that restores.

    Raises:
        Refused: With the code of the first part that differs, in the order of
            `MISMATCH_CODES`; text and fields name every part that differs, so that
            none hides another.
    """
    differences = [
        difference
        for field in MISMATCH_CODES
        for difference in _differences(field, recorded.get(field), wanted.get(field))
    ]
    if differences:
        first = differences[0][0]
        every = "; ".join(f"{place} {text}" for place, text in differences)
        raise Refused(
            mismatch_code(first),
            f"Checkpoint was made with {every}; restore it under the same setting, or"
            " train afresh.",
            (place for place, _ in differences),
        )


def _differences(place: str, old: Any, new: Any) -> Iterator[tuple[str, str]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted(old.keys() | new.keys()):
            yield from _differences(f"{place}.{name}", old.get(name), new.get(name))
    # The type counts: a seed 1 is not the rate 1.0, nor the flag true.
    elif (type(old), old) != (type(new), new):
        yield place, f"{old!r}, this training has {new!r}"


def recorded_progress(recorded: Mapping[str, Any], step: int) -> Progress:
    """Returns the progress of a manifest, held against the optimizer's own count.

    Raises:
        Refused: `checkpoint_damaged` when the two counts differ.
    """
    if recorded["step"] != step:
        raise Refused(
            ReasonCode.CHECKPOINT_DAMAGED,
            f"Checkpoint counts {recorded['step']!r} updates and its optimizer {step};"
            " use an earlier checkpoint.",
            ["progress.step"],
        )
    return Progress(
        step=step,
        cursor=Cursor(epoch=recorded["epoch"], position=recorded["position"]),
        order_sha256=recorded["order_sha256"],
        cumulative_valid_targets=recorded["cumulative_valid_targets"],
    )
