"""A restore from a damaged checkpoint, alone and together with something else.

Each damage has to be refused for its own reason. Another setting must not hide it, and
no damage may hide another, with one exception that is meant: what stands in bytes that
nobody committed is not looked into, so a file that is another one is all that is named.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from model import checkpoint
from model.checkpoint_manifest import MANIFEST, MARK, VERSION
from model.checks.checkpoint_refusals import (
    CLAIM,
    Identity,
    changed_settings,
    refused_restore,
    with_changes,
    wrong_setting,
)
from model.checks.refused import Wrong, pair_row
from model.checks.rows import Row
from model.config import ModelConfig
from model.folders import folder_sha256
from model.refusal import ReasonCode

DAMAGE = "damaged_checkpoint"
DAMAGED_AND_CHANGED = "damaged_checkpoint_under_another_setting"
# The manifest says what a checkpoint was made by: when it is another one, or half of a
# write, its identity means nothing.
OF_THE_MANIFEST = ("version", "manifest", "uncommitted")

Change = Callable[[dict[str, Any]], object]


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One way to damage a checkpoint, and how its refusal has to read."""

    wrong: Wrong
    apply: Callable[[Path], None]


def refuse_damages(
    folder: Path, model: ModelConfig, identity: Identity, scratch: Path
) -> Iterator[tuple[Row, list[Row]]]:
    """Yields what became of a restore from each damaged copy of a checkpoint."""
    for damage in every_damage(folder):
        copy = _damaged(folder, scratch / damage.wrong.case, damage)
        attempt = partial(checkpoint.load_checkpoint, copy, model, identity)
        yield refused_restore(DAMAGE, damage.wrong, copy, attempt)


def refuse_damages_under_settings(
    folder: Path, model: ModelConfig, identity: Identity, scratch: Path
) -> Iterator[Row]:
    """Yields what became of a restore of each damage under each changed setting."""
    for damage in every_damage(folder):
        wrong = damage.wrong
        copy = _damaged(folder, scratch / wrong.case, damage)
        for path, value in changed_settings(identity).items():
            wanted = with_changes(identity, {path: value})
            attempt = partial(checkpoint.load_checkpoint, copy, model, wanted)
            setting = wrong_setting(path)
            if wrong.case in OF_THE_MANIFEST:
                unread = Wrong(case=setting.case, code=setting.code, fields=())
                ordered = (wrong, unread)
            else:
                ordered = (setting, wrong)
            digest = partial(folder_sha256, copy)
            yield pair_row(CLAIM, DAMAGED_AND_CHANGED, *ordered, attempt, digest)


def refuse_two_damages(
    folder: Path, model: ModelConfig, identity: Identity, scratch: Path
) -> Iterator[Row]:
    """Yields what became of a restore with two arrays damaged, each in its own way."""
    one, other = _parameter_arrays(folder)[:2]
    first, second = array_damages(one), array_damages(other)
    for before, after in itertools.combinations(first, 2):
        pair = (first[before], second[after])
        copy = _damaged(folder, scratch / before / after, *pair)
        attempt = partial(checkpoint.load_checkpoint, copy, model, identity)
        digest = partial(folder_sha256, copy)
        wrong = (pair[0].wrong, pair[1].wrong)
        yield pair_row(CLAIM, DAMAGE, *wrong, attempt, digest)


def every_damage(folder: Path) -> list[Damage]:
    """Returns every way in which a checkpoint is damaged here."""
    array = _parameter_arrays(folder)[0]
    return [*array_damages(array).values(), *_file_damages()]


def array_damages(array: str) -> dict[str, Damage]:
    """Returns the damages of one array, in the order in which they are looked for."""
    code, path = ReasonCode, f"arrays.{array}"

    def damage(case: str, reason: ReasonCode, field: str, change: Change) -> Damage:
        told = (repr(field.removeprefix("arrays.") if case == "extra" else array),)
        wrong = Wrong(case=case, code=reason, fields=(field,), told=told)
        return Damage(wrong=wrong, apply=partial(_change_arrays, change=change))

    every = (
        damage(
            *("missing", code.CHECKPOINT_ARRAY_MISSING, path),
            lambda have: have.pop(array),
        ),
        damage(
            *("extra", code.CHECKPOINT_ARRAY_EXTRA, "arrays.extra"),
            lambda have: have.update(extra=np.zeros(3, np.float32)),
        ),
        damage(
            *("pickled", code.CHECKPOINT_PICKLED, path),
            lambda have: have.update({array: np.array([{}], dtype=object)}),
        ),
        damage(
            *("misshapen", code.CHECKPOINT_ARRAY_SHAPE, f"{path}.shape"),
            lambda have: have.update({array: have[array][..., None]}),
        ),
        damage(
            *("mistyped", code.CHECKPOINT_ARRAY_DTYPE, f"{path}.dtype"),
            lambda have: have.update({array: have[array].astype(np.float64)}),
        ),
        damage(
            *("checksum/array", code.CHECKPOINT_CHECKSUM, f"{path}.sha256"),
            lambda have: have.update({array: have[array] + 1}),
        ),
    )
    return {damage.wrong.case: damage for damage in every}


def _file_damages() -> list[Damage]:
    code, arrays = ReasonCode, checkpoint.ARRAYS

    def damage(
        case: str, reason: ReasonCode, field: str, apply: Callable[[Path], None]
    ) -> Damage:
        told = (str(VERSION + 1) if case == "version" else field.partition(".")[0],)
        wrong = Wrong(case=case, code=reason, fields=(field,), told=told)
        return Damage(wrong=wrong, apply=apply)

    def renumber(copy: Path) -> None:
        reseal(copy, version=VERSION + 1)

    def unmark(copy: Path) -> None:
        (copy / MARK).unlink()

    return [
        damage("checksum/file", code.CHECKPOINT_CHECKSUM, arrays, _flip_one_bit),
        damage("truncated", code.CHECKPOINT_TRUNCATED, arrays, _cut_off),
        damage("version", code.CHECKPOINT_FORMAT_UNKNOWN, "version", renumber),
        damage("manifest", code.CHECKPOINT_DAMAGED, MANIFEST, _edit_manifest),
        damage("uncommitted", code.CHECKPOINT_UNCOMMITTED, MARK, unmark),
    ]


def _damaged(folder: Path, place: Path, *damages: Damage) -> Path:
    copy = place / folder.name
    shutil.copytree(folder, copy)
    for damage in damages:
        damage.apply(copy)
    return copy


def _parameter_arrays(folder: Path) -> list[str]:
    return sorted(name for name in _arrays(folder) if "/" in name)


def _arrays(folder: Path) -> dict[str, Any]:
    # Pickled arrays are made here, by the damage that came before.
    with np.load(folder / checkpoint.ARRAYS, allow_pickle=True) as archive:
        return {name: archive[name] for name in archive.files}


def _change_arrays(copy: Path, change: Change) -> None:
    changed = _arrays(copy)
    change(changed)
    reseal(copy, arrays=changed)


def reseal(copy: Path, arrays: Mapping[str, Any] | None = None, **fields: Any) -> None:
    """Writes changes with digests that fit, as a careful forger would."""
    manifest = json.loads((copy / MANIFEST).read_bytes()) | fields
    if arrays is not None:
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        content = buffer.getvalue()
        (copy / checkpoint.ARRAYS).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        manifest["arrays_file"] = {"sha256": digest, "bytes": len(content)}
    text = json.dumps(manifest).encode()
    (copy / MANIFEST).write_bytes(text)
    (copy / MARK).write_text(hashlib.sha256(text).hexdigest())


def _flip_one_bit(copy: Path) -> None:
    content = bytearray((copy / checkpoint.ARRAYS).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / checkpoint.ARRAYS).write_bytes(content)


def _cut_off(copy: Path) -> None:
    content = (copy / checkpoint.ARRAYS).read_bytes()
    (copy / checkpoint.ARRAYS).write_bytes(content[:-1])


def _edit_manifest(copy: Path) -> None:
    text = (copy / MANIFEST).read_text("utf-8")
    (copy / MANIFEST).write_text(text.replace('"epoch": ', '"epoch": 1'), "utf-8")
