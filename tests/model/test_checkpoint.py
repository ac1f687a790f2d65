"""A checkpoint is whole or absent, and refuses by the one thing that is wrong."""

import dataclasses
import errno
import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model import checkpoint
from model.batches import Cursor
from model.checkpoint_manifest import MISMATCH_CODES, Progress, mismatch_code
from model.config import TrainConfig
from model.digests import tree_sha256
from model.folders import folder_sha256
from model.refusal import Refused
from model.training import TrainingState, initial_state
from tests.model.checkpoints import IDENTITY, MODEL


def progress(step: int) -> Progress:
    return Progress(
        step=step,
        cursor=Cursor(epoch=0, position=16 * step),
        order_sha256="c",
        cumulative_valid_targets=150 * step,
    )


def state(step: int) -> TrainingState:
    fresh = initial_state(MODEL, 1)
    adam = fresh.adam._replace(step=fresh.adam.step + np.int32(step))
    moments = {name: x + np.float32(0.1) for name, x in adam.first_moment.items()}
    return fresh._replace(adam=adam._replace(first_moment=moments))


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    checkpoint.write_checkpoint(folder, state(4), progress(4), IDENTITY)
    return folder / "update-000004"


@pytest.fixture
def copied(committed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(committed, tmp_path / "update-000004"))


def load(folder: Path, identity: dict[str, Any] = IDENTITY) -> TrainingState:
    return checkpoint.load_checkpoint(folder, MODEL, identity)[0]


def test_what_is_written_comes_back_bit_by_bit(committed: Path) -> None:
    restored, where = checkpoint.load_checkpoint(committed, MODEL, IDENTITY)
    before = tree_sha256(checkpoint.state_arrays(state(4)))
    assert tree_sha256(checkpoint.state_arrays(restored)) == before
    assert where == progress(4)


def test_equal_states_give_equal_files(committed: Path, tmp_path: Path) -> None:
    again = checkpoint.write_checkpoint(tmp_path, state(4), progress(4), IDENTITY)
    for file in ("arrays.npz", "manifest.json", "COMMITTED"):
        assert (again / file).read_bytes() == (committed / file).read_bytes()
    assert sorted(path.name for path in again.iterdir()) == [
        "COMMITTED",
        "arrays.npz",
        "manifest.json",
    ]


def test_the_latest_checkpoint_is_never_an_uncommitted_one(
    committed: Path, tmp_path: Path
) -> None:
    shutil.copytree(committed, tmp_path / "update-000004")
    half = Path(shutil.copytree(committed, tmp_path / "update-000006"))
    (half / "COMMITTED").unlink()
    assert checkpoint.latest_checkpoint(tmp_path).name == "update-000004"
    with pytest.raises(Refused) as refused:
        load(half)
    assert refused.value.code == "checkpoint_uncommitted"
    (tmp_path / "update-000004" / "COMMITTED").unlink()
    with pytest.raises(Refused) as refused:
        checkpoint.latest_checkpoint(tmp_path)
    assert refused.value.code == "checkpoint_absent"


@pytest.mark.parametrize("file", ["arrays.npz", "manifest.json", "COMMITTED"])
def test_a_write_that_fails_at_any_file_commits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """Over a checkpoint of another training, whose mark must not vouch for a half."""
    other = {**IDENTITY, "dropout_seed": 1}
    checkpoint.write_checkpoint(tmp_path, state(6), progress(6), other)
    replace = Path.replace

    def fail(self: Path, target: Path) -> Path:
        if Path(target).name == file:
            raise OSError("no space left")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(Refused, match=r"update 6 .*no space") as refused:
        checkpoint.write_checkpoint(tmp_path, state(6), progress(6), IDENTITY)
    assert refused.value.code == "checkpoint_not_written"
    assert list(tmp_path.rglob(".*.tmp")) == []
    with pytest.raises(Refused) as refused:
        checkpoint.latest_checkpoint(tmp_path)
    assert refused.value.code == "checkpoint_absent"


@pytest.mark.parametrize("is_there", [False, True])
def test_a_write_without_room_for_the_last_file_changes_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """Neither where nothing was, nor where a checkpoint of another training lies."""
    folder = tmp_path / "none" / "yet"
    if is_there:
        other = {**IDENTITY, "dropout_seed": 1}
        checkpoint.write_checkpoint(folder, state(6), progress(6), other)
    before = folder_sha256(tmp_path)

    def fill_the_disk(step: str) -> None:
        if step == "COMMITTED/half_written":
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(Refused, match="No space left") as refused:
        checkpoint.write_checkpoint(
            folder, state(6), progress(6), IDENTITY, fill_the_disk
        )
    assert refused.value.code == "checkpoint_not_written"
    assert folder_sha256(tmp_path) == before
    assert folder.exists() == is_there


def test_a_write_tells_every_step_in_its_order(tmp_path: Path) -> None:
    """At each step before the mark has its name, no checkpoint is committed."""
    steps: list[str] = []
    committed: list[str] = []

    def at_step(step: str) -> None:
        steps.append(step)
        if (tmp_path / "update-000004" / "COMMITTED").exists():
            committed.append(step)

    checkpoint.write_checkpoint(tmp_path, state(4), progress(4), IDENTITY, at_step)
    files = ("arrays.npz", "manifest.json", "COMMITTED")
    halves = (("before_temporary", "half_written"), ("before_rename", "renamed"))
    inner = [f"{name}/{kind}" for half in halves for name in files for kind in half]
    assert steps == ["folder/before", *inner, "folder/after"]
    assert committed == ["COMMITTED/renamed", "folder/after"]


def test_a_refusal_names_every_field_that_differs(committed: Path) -> None:
    changed = {**IDENTITY, "order_seed": 99, "dropout_seed": 98}
    with pytest.raises(Refused, match=r"order_seed 12.* 99; dropout_seed 13.* 98"):
        load(committed, changed)


def test_writing_a_committed_checkpoint_again_touches_nothing(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replayed update reaches its checkpoint a second time; a kill must not hurt."""

    def fail(*_: object) -> None:
        raise AssertionError("a committed file was replaced")

    monkeypatch.setattr(Path, "replace", fail)
    monkeypatch.setattr(Path, "unlink", fail)
    again = checkpoint.write_checkpoint(copied.parent, state(4), progress(4), IDENTITY)
    assert again == copied


NESTED = {
    "data": "tokens_sha256",
    "tokenizer": "version",
    "architecture": "heads",
    "optimizer": "beta2",
    "precision": "moments",
    "numerics": "nproc",
}


@pytest.mark.parametrize("field", list(MISMATCH_CODES))
def test_each_changed_setting_has_its_own_code_and_is_named(
    committed: Path, field: str
) -> None:
    changed = dict(IDENTITY)
    if field in NESTED:
        changed[field] = {**IDENTITY[field], NESTED[field]: "another"}
    else:
        changed[field] = IDENTITY[field] + 1
    with pytest.raises(Refused, match=NESTED.get(field, field)) as refused:
        load(committed, changed)
    place = f"{field}.{NESTED[field]}" if field in NESTED else field
    assert refused.value.code == mismatch_code(place)
    assert len(set(MISMATCH_CODES.values())) == len(MISMATCH_CODES)


def test_every_optimizer_field_is_held_against_the_checkpoint(committed: Path) -> None:
    for field in dataclasses.fields(TrainConfig().optimizer):
        optimizer = {**IDENTITY["optimizer"], field.name: 0.5}
        with pytest.raises(Refused, match=f"optimizer.{field.name}") as refused:
            load(committed, {**IDENTITY, "optimizer": optimizer})
        assert refused.value.code == f"checkpoint_mismatch_{field.name}"


def test_a_checkpoint_keeps_the_average_where_one_is_kept(
    committed: Path, tmp_path: Path
) -> None:
    """Its value differs from the parameters', so that neither can stand for both."""
    averaging = {**IDENTITY["optimizer"], "average_decay": 0.9}
    identity = {**IDENTITY, "optimizer": averaging}
    average = {name: x + np.float32(1) for name, x in state(4).parameters.items()}
    averaged = state(4)._replace(average=average)
    written = checkpoint.write_checkpoint(tmp_path, averaged, progress(4), identity)
    restored = load(written, identity)
    before = tree_sha256(checkpoint.state_arrays(averaged))
    assert tree_sha256(checkpoint.state_arrays(restored)) == before
    assert restored.average is not None
    assert load(committed).average is None
    arrays = checkpoint.state_arrays(averaged)
    arrays.pop("average/wpe.weight")
    reseal(written, npz(arrays))
    with pytest.raises(Refused, match="'average/wpe") as refused:
        load(written, identity)
    assert refused.value.code == "checkpoint_array_missing"


def reseal(folder: Path, arrays: bytes, manifest: dict[str, Any] | None = None) -> None:
    """Writes other arrays with digests that fit, as a careful forger would."""
    manifest = manifest or json.loads((folder / "manifest.json").read_bytes())
    (folder / "arrays.npz").write_bytes(arrays)
    digest = hashlib.sha256(arrays).hexdigest()
    manifest["arrays_file"] = {"sha256": digest, "bytes": len(arrays)}
    text = json.dumps(manifest).encode()
    (folder / "manifest.json").write_bytes(text)
    (folder / "COMMITTED").write_text(hashlib.sha256(text).hexdigest())


def npz(arrays: dict[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


NAME = "second_moment/wpe.weight"
Change = Callable[[dict[str, np.ndarray]], object]
CHANGES: dict[str, Change] = {
    "checkpoint_array_missing": lambda arrays: arrays.pop(NAME),
    "checkpoint_array_extra": lambda arrays: arrays.update({"more": arrays[NAME]}),
    "checkpoint_array_shape": lambda arrays: arrays.update({NAME: arrays[NAME].T}),
    "checkpoint_array_dtype": lambda arrays: arrays.update(
        {NAME: arrays[NAME].astype(np.float64)}
    ),
    "checkpoint_checksum": lambda arrays: arrays.update({NAME: arrays[NAME] + 1}),
    "checkpoint_pickled": lambda arrays: arrays.update(
        {NAME: np.array([{}], dtype=object)}
    ),
}


@pytest.mark.parametrize("code", list(CHANGES))
def test_each_wrong_array_has_its_own_code_even_when_resealed(
    copied: Path, code: str
) -> None:
    arrays = checkpoint.state_arrays(state(4))
    CHANGES[code](arrays)
    reseal(copied, npz(arrays))
    with pytest.raises(Refused) as refused:
        load(copied)
    assert refused.value.code == code


def test_a_truncated_file_and_a_flipped_bit_are_told_apart(copied: Path) -> None:
    content = (copied / "arrays.npz").read_bytes()
    (copied / "arrays.npz").write_bytes(content[:-1])
    with pytest.raises(Refused, match="of 2") as refused:
        load(copied)
    assert refused.value.code == "checkpoint_truncated"
    flipped = bytearray(content)
    flipped[len(flipped) // 2] ^= 1
    (copied / "arrays.npz").write_bytes(flipped)
    with pytest.raises(Refused) as refused:
        load(copied)
    assert refused.value.code == "checkpoint_checksum"
    (copied / "arrays.npz").unlink()
    with pytest.raises(Refused) as refused:
        load(copied)
    assert refused.value.code == "checkpoint_damaged"


def test_an_unknown_version_is_refused_before_anything_else(copied: Path) -> None:
    manifest = json.loads((copied / "manifest.json").read_bytes())
    arrays = (copied / "arrays.npz").read_bytes()
    reseal(copied, arrays, {**manifest, "version": 2, "progress": "other layout"})
    with pytest.raises(Refused, match="2") as refused:
        load(copied)
    assert refused.value.code == "checkpoint_format_unknown"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 1}'])
def test_a_manifest_that_is_no_manifest_is_damage(copied: Path, text: str) -> None:
    (copied / "manifest.json").write_text(text)
    (copied / "COMMITTED").write_text(hashlib.sha256(text.encode()).hexdigest())
    with pytest.raises(Refused) as refused:
        load(copied)
    assert refused.value.code == "checkpoint_damaged"


def test_a_manifest_changed_behind_its_mark_is_damage(copied: Path) -> None:
    text = (copied / "manifest.json").read_text()
    (copied / "manifest.json").write_text(text.replace('"step": 4', '"step": 5'))
    with pytest.raises(Refused, match="COMMITTED") as refused:
        load(copied)
    assert refused.value.code == "checkpoint_damaged"


@pytest.mark.parametrize(
    ("group", "value"),
    [("progress", {"step": 4}), ("arrays_file", {}), ("arrays", []), ("identity", 3)],
)
def test_a_field_of_another_type_is_damage_and_no_crash(
    copied: Path, group: str, value: object
) -> None:
    manifest = json.loads((copied / "manifest.json").read_bytes())
    text = json.dumps({**manifest, group: value}).encode()
    (copied / "manifest.json").write_bytes(text)
    (copied / "COMMITTED").write_text(hashlib.sha256(text).hexdigest())
    with pytest.raises(Refused) as refused:
        load(copied)
    assert refused.value.code == "checkpoint_damaged"


def test_a_step_that_contradicts_the_optimizer_is_damage(copied: Path) -> None:
    manifest = json.loads((copied / "manifest.json").read_bytes())
    manifest["progress"]["step"] = 5
    reseal(copied, (copied / "arrays.npz").read_bytes(), manifest)
    with pytest.raises(Refused, match="5") as refused:
        load(copied)
    assert refused.value.code == "checkpoint_damaged"
