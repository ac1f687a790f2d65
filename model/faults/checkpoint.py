"""Faults of checkpoints: how they are written, and what a restore looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from model.faults import Fault
from model.refusal import ReasonCode, Refused

GROUP = "checkpoint"
fault = partial(Fault, group=GROUP, stages=("certify_recovery",))
MARK = "COMMITTED"


def _pass_by(step: str) -> None:
    """Does nothing at a step of a write."""


def _in_place(original: Callable[..., None]) -> Any:
    def write_files(
        target: Path, files: Mapping[str, bytes], at_step: Any = _pass_by
    ) -> None:
        at_step("folder/before")
        target.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            at_step(f"{name}/before_temporary")
            with (target / name).open("wb") as file:
                file.write(content[: len(content) // 2])
                file.flush()
                at_step(f"{name}/half_written")
                file.write(content[len(content) // 2 :])
            at_step(f"{name}/before_rename")
            at_step(f"{name}/renamed")
        at_step("folder/after")

    return write_files


def _mark_first(original: Callable[..., None]) -> Any:
    def write_files(
        target: Path, files: Mapping[str, bytes], at_step: Any = _pass_by
    ) -> None:
        original(target, {MARK: files[MARK], **files}, at_step)

    return write_files


def _warned_only(original: Callable[..., None]) -> Any:
    return lambda recorded, wanted: None


def _data_not_compared(original: Callable[..., None]) -> Any:
    def check_identity(recorded: Any, wanted: Any) -> None:
        original(recorded, {**wanted, "data": recorded.get("data")})

    return check_identity


def _file_not_hashed(original: Callable[..., bytes]) -> Any:
    return lambda path, recorded: path.read_bytes()


def _extra_ignored(original: Callable[..., Iterator[Refused]]) -> Any:
    def wrong_names(found: set[str], wanted: set[str]) -> Iterator[Refused]:
        return (
            wrong
            for wrong in original(found, wanted)
            if wrong.code != ReasonCode.CHECKPOINT_ARRAY_EXTRA
        )

    return wrong_names


def _shapes_digested(original: Callable[..., dict[str, str]]) -> Any:
    def digest(kind: str, leaf: str, value: Any) -> dict[str, str]:
        made = original(kind, leaf, value)
        return made | {"sha256": made["shape"]}

    return digest


def _last_by_date(original: Callable[[Path], Path]) -> Any:
    def latest_checkpoint(folder: Path) -> Path:
        original(folder)
        marks = folder.glob(f"update-*/{MARK}")
        return max(marks, key=lambda mark: mark.stat().st_mtime_ns).parent

    return latest_checkpoint


def _mark_is_enough(original: Callable[..., bool]) -> Any:
    return lambda target, content, manifest: (target / MARK).is_file()


FAULTS = (
    fault(
        name="checkpoint-written-in-place",
        summary="Files are written under their final names, the mark too.",
        source="huggingface/transformers#35782",
        claim="2.3",
        stages=("certify_crash",),
        replaces="model.checkpoint.write_files",
        replacement=_in_place,
    ),
    fault(
        name="latest-pointer-before-data",
        summary="The mark that commits a checkpoint gets its name first.",
        source="petuum/adaptdl#70",
        claim="2.3",
        stages=("certify_crash",),
        replaces="model.checkpoint.write_files",
        replacement=_mark_first,
    ),
    fault(
        name="config-mismatch-warned-only",
        summary="A restore under other settings is not refused.",
        source="Nerogar/OneTrainer#1604",
        claim="2.4",
        replaces="model.checkpoint_manifest.check_identity",
        replacement=_warned_only,
    ),
    fault(
        name="dataset-mismatch-accepted",
        summary="A restore does not ask which data the training had.",
        source="none known; the fixture's own rule",
        claim="2.4",
        replaces="model.checkpoint_manifest.check_identity",
        replacement=_data_not_compared,
    ),
    fault(
        name="integrity-hash-not-verified",
        summary="The array file is read whatever its digest is.",
        source="NVIDIA/Megatron-LM#4378",
        claim="2.4",
        replaces="model.checkpoint_arrays._verified_file",
        replacement=_file_not_hashed,
    ),
    fault(
        name="unexpected-keys-ignored",
        summary="Arrays that no training of this kind has are passed over.",
        source="pytorch/pytorch#141256",
        claim="2.4",
        replaces="model.checkpoint_arrays._wrong_names",
        replacement=_extra_ignored,
    ),
    fault(
        name="states-compared-by-shape",
        summary="The trace of a training digests the shape of an array, not its bytes.",
        source="thought of in this project; a fingerprint of names only is its like",
        claim="2.5",
        # Both sides of the comparison are as blind, so that nothing ever parts.
        stages=("train_model", "drill_recovery"),
        replaces="model.update_trace._digest",
        replacement=_shapes_digested,
    ),
    fault(
        name="latest-checkpoint-by-date",
        summary="A restore takes the checkpoint whose files are the youngest.",
        source="huggingface/transformers#28862",
        claim="2.3",
        stages=("certify_crash",),
        replaces="model.checkpoint.latest_checkpoint",
        replacement=_last_by_date,
    ),
    fault(
        name="existing-checkpoint-kept",
        summary="A checkpoint is not written where one of its number has a mark.",
        source="google/orbax#2657",
        claim="2.3",
        stages=("certify_crash",),
        replaces="model.checkpoint._is_committed",
        replacement=_mark_is_enough,
    ),
)
