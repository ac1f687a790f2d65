"""Checkpoints of a state in parts: four virtual devices of one process, then fewer.

What several controllers do to each other is the business of
`tests/tasks/test_gang_sharded.py`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from model import collective_update, sharded_checkpoint
from model.batches import Cursor
from model.checkpoint import state_arrays
from model.checkpoint_manifest import MANIFEST, MARK, Progress
from model.config import ModelConfig, TrainConfig, to_dict
from model.digests import tree_sha256
from model.refusal import Refused
from model.sharded_checkpoint import STATE, ShardedCheckpoints
from model.sharded_update import ShardedUpdate, parted_axis
from model.training import TrainingState, initial_state

MODEL = ModelConfig()
TRAIN = TrainConfig()
IDENTITY: dict[str, Any] = {
    "data": {"split_sha256": "a", "tokens_sha256": "b"},
    "order_seed": 12,
    "batch_documents": 16,
    "tokenizer": {"name": "bytes"},
    "architecture": to_dict(MODEL),
    "optimizer": to_dict(TRAIN.optimizer),
    "precision": {"sums": "sharded"},
    "dropout_seed": "13 by document",
    "initialization_seed": 11,
    "numerics": {"jaxlib": "0.10.2", "nproc": "2", "key_implementation": "threefry"},
}


def progress(step: int) -> Progress:
    return Progress(
        step=step,
        cursor=Cursor(position=16 * step),
        order_sha256="c",
        cumulative_valid_targets=9,
    )


def update_on(devices: int, monkeypatch: pytest.MonkeyPatch) -> ShardedUpdate:
    found = jax.devices()[:devices]
    monkeypatch.setattr(collective_update, "ordered_devices", lambda: found)
    return ShardedUpdate(MODEL, TRAIN)


def seen(place: Path, update: ShardedUpdate) -> ShardedCheckpoints:
    return ShardedCheckpoints(str(place), update.template())


def state_of(update: ShardedUpdate, step: int) -> TrainingState:
    fresh = initial_state(MODEL, 1)
    adam = fresh.adam._replace(step=np.int32(step))
    return update.place(fresh._replace(adam=adam))


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Update 4 in parts on four devices, and update 6 that nobody committed."""
    update = update_on(4, monkeypatch)
    checkpoints = seen(tmp_path, update)
    state = state_of(update, 4)
    assert checkpoints.save(state, progress(4), IDENTITY) == "update-000004"

    class Killed(Exception):
        pass

    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        checkpoints.save(state_of(update, 6), progress(6), IDENTITY, die)
    return tmp_path


@pytest.mark.parametrize("devices", [4, 2, 3, 1])
def test_any_number_of_devices_restores_the_bits_of_the_last_commit(
    written: Path, devices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three devices cut other arrays, and along other axes, than four do."""
    expected = tree_sha256(state_arrays(state_of(update_on(1, monkeypatch), 4)))
    assert (written / "update-000006" / STATE).is_dir()
    assert not (written / "update-000006" / MARK).exists()
    update = update_on(devices, monkeypatch)
    restored = seen(written, update).restore(MODEL, IDENTITY)
    assert restored is not None
    state, where, controllers = restored
    assert where == progress(4)
    assert controllers["count"] == 1 and len(controllers["parts"]) == 1
    assert jax.tree.map(lambda x: x.sharding, state) == update.layout(state)
    assert tree_sha256(state_arrays(update.whole(state))) == expected


def test_a_device_holds_its_part_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    update = update_on(4, monkeypatch)
    state = state_of(update, 1)
    leaves = jax.tree.leaves((state.parameters, state.adam.first_moment))
    assert not any(leaf.is_fully_replicated for leaf in leaves)
    own = sum(leaf.addressable_shards[0].data.nbytes for leaf in leaves)
    assert 4 * own == sum(leaf.nbytes for leaf in leaves)
    assert parted_axis((259, 24), 4) == 1
    assert parted_axis((259,), 4) is None
    assert parted_axis((24, 72), 1) is None


def test_nothing_committed_is_nothing_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = update_on(2, monkeypatch)
    assert seen(tmp_path / "empty", update).restore(MODEL, IDENTITY) is None


def refused(written: Path, monkeypatch: pytest.MonkeyPatch, **identity: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        seen(written, update_on(4, monkeypatch)).restore(MODEL, IDENTITY | identity)
    return caught.value


def files_of(written: Path) -> list[Path]:
    state = written / "update-000004" / STATE
    return sorted(path for path in state.rglob("*") if path.is_file())


def test_an_altered_an_added_and_an_absent_file_are_refused_before_orbax_reads(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file in turn: there is none whose damage would be overlooked."""
    monkeypatch.setattr(ShardedCheckpoints, "_saver", lambda self: pytest.fail("read"))
    for file in files_of(written):
        content = bytearray(file.read_bytes())
        if content:
            content[len(content) // 2] ^= 1
            file.write_bytes(bytes(content))
            assert refused(written, monkeypatch).code == "checkpoint_checksum"
            content[len(content) // 2] ^= 1
        file.unlink()
        assert refused(written, monkeypatch).code == "checkpoint_checksum"
        file.write_bytes(bytes(content))
    added = written / "update-000004" / STATE / "more"
    added.write_bytes(b"")
    found = refused(written, monkeypatch)
    assert found.fields == ("more",)


def test_parts_that_are_not_those_that_were_written_are_refused(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that Orbax wrote and that are digested, of an array that was changed."""
    monkeypatch.setattr(sharded_checkpoint, "_parts_sha256", lambda named: "0" * 64)
    assert refused(written, monkeypatch).code == "checkpoint_checksum"


def test_another_training_and_another_kind_of_checkpoint_are_refused(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = refused(written, monkeypatch, dropout_seed="14 by document")
    assert found.code == "checkpoint_mismatch_dropout_seed"
    manifest = written / "update-000004" / MANIFEST
    changed = json.loads(manifest.read_text()) | {"format": "another"}
    manifest.write_text(json.dumps(changed))
    assert refused(written, monkeypatch).code == "checkpoint_damaged"


@pytest.mark.parametrize("place", ["s3://bucket/run", "memory://run", "file:///run"])
def test_a_place_that_orbax_cannot_write_to_is_refused_first(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = update_on(2, monkeypatch)
    with pytest.raises(Refused, match="gs:// alone") as caught:
        ShardedCheckpoints(place, update.template())
    assert caught.value.code == "setting_invalid"


def test_without_orbax_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "orbax.checkpoint", None)
    update = update_on(2, monkeypatch)
    with pytest.raises(Refused, match=r"text-harness\[sharded\]"):
        ShardedCheckpoints(str(tmp_path), update.template())
