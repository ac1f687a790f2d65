"""Checkpoints in a common place: a folder or a URL, the mark last, one who decides.

One process here; several are the business of `tests/tasks/test_gang_training.py`.
"""

import uuid
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

from model import shared_checkpoint
from model.batches import Cursor
from model.checkpoint import state_arrays
from model.checkpoint_manifest import MARK, Progress
from model.config import ModelConfig, TrainConfig, to_dict
from model.digests import tree_sha256
from model.refusal import Refused
from model.shared_checkpoint import SharedCheckpoints, agreed_digests
from model.training import TrainingState, initial_state

MODEL = ModelConfig()
IDENTITY: dict[str, Any] = {
    "data": {"split_sha256": "a", "tokens_sha256": "b"},
    "order_seed": 12,
    "batch_documents": 16,
    "tokenizer": {"name": "bytes"},
    "architecture": to_dict(MODEL),
    "optimizer": to_dict(TrainConfig().optimizer),
    "precision": {"sums": "split"},
    "dropout_seed": "13 by document",
    "initialization_seed": 11,
    "numerics": {"jaxlib": "0.10.2", "nproc": "2", "key_implementation": "threefry"},
}
FRESH = initial_state(MODEL, 1)


def state(step: int) -> TrainingState:
    return FRESH._replace(adam=FRESH.adam._replace(step=np.int32(step)))


def progress(step: int) -> Progress:
    return Progress(
        step=step,
        cursor=Cursor(position=16 * step),
        order_sha256="c",
        cumulative_valid_targets=9,
    )


@pytest.fixture(params=["folder", "memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder, an object store without renames, and a file system behind a URL."""
    return {
        "folder": str(tmp_path / "common"),
        "memory": f"memory://{uuid.uuid4().hex}/common",
        "file": f"file://{tmp_path}/common",
    }[request.param]


def seen_from(place: str, folder: Path) -> SharedCheckpoints:
    """The place as a controller sees it that has a folder of its own."""
    return SharedCheckpoints(place, folder)


def restored_update(place: str, folder: Path) -> int | None:
    restored = seen_from(place, folder).restore(MODEL, IDENTITY)
    return None if restored is None else restored[1].step


def test_what_one_commits_another_restores_bit_by_bit(
    place: str, tmp_path: Path
) -> None:
    writer = seen_from(place, tmp_path / "a")
    assert writer.save(state(4), progress(4), IDENTITY) == "update-000004"
    restored = seen_from(place, tmp_path / "b").restore(MODEL, IDENTITY)
    assert restored is not None
    found, where, controllers = restored
    assert tree_sha256(state_arrays(found)) == tree_sha256(state_arrays(state(4)))
    assert where == progress(4)
    digest = tree_sha256(state_arrays(state(4)))
    assert controllers == {"count": 1, "parts": [digest]}


def test_nothing_committed_is_nothing_restored(place: str, tmp_path: Path) -> None:
    assert restored_update(place, tmp_path / "a") is None


def test_the_last_commit_is_chosen_and_never_what_lies_there_without_one(
    place: str, tmp_path: Path
) -> None:
    writer = seen_from(place, tmp_path / "a")
    for step in (2, 4):
        writer.save(state(step), progress(step), IDENTITY)

    class Killed(Exception):
        pass

    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        writer.save(state(6), progress(6), IDENTITY, before_commit=die)
    files, path = fsspec.core.url_to_fs(place)
    assert files.exists(f"{path}/update-000006/arrays.npz")
    assert not files.exists(f"{path}/update-000006/{MARK}")
    assert restored_update(place, tmp_path / "b") == 4
    believer = seen_from(place, tmp_path / "c")
    believer._latest_update = lambda: 6  # type: ignore[method-assign]
    with pytest.raises(Refused) as refused:
        believer.restore(MODEL, IDENTITY)
    assert refused.value.code in ("checkpoint_uncommitted", "checkpoint_damaged")
    # A reader that believes in files alone would take it.
    files.pipe_file(f"{path}/update-000006/{MARK}", b"0" * 64)
    with pytest.raises(Refused) as refused:
        restored_update(place, tmp_path / "d")
    assert refused.value.code == "checkpoint_damaged"


def test_a_write_again_takes_back_the_mark_first(place: str, tmp_path: Path) -> None:
    """Another training's mark must not vouch for a half of this one."""
    seen_from(place, tmp_path / "a").save(state(4), progress(4), IDENTITY)
    changed = state(4)._replace(
        parameters={n: x * 2 for n, x in FRESH.parameters.items()}
    )

    def is_unmarked() -> None:
        assert restored_update(place, tmp_path / "b") is None

    again = seen_from(place, tmp_path / "a")
    again.save(changed, progress(4), IDENTITY, before_commit=is_unmarked)
    restored = seen_from(place, tmp_path / "c").restore(MODEL, IDENTITY)
    assert restored is not None
    digest = tree_sha256(state_arrays(restored[0]))
    assert digest == tree_sha256(state_arrays(changed))


def test_of_two_trainings_at_one_url_one_commits_and_the_other_hears_of_it(
    tmp_path: Path,
) -> None:
    place = f"memory://{uuid.uuid4().hex}/common"

    def commit_first() -> None:
        seen_from(place, tmp_path / "b").save(state(4), progress(4), IDENTITY)

    late = seen_from(place, tmp_path / "a")
    with pytest.raises(Refused, match="Another training has committed") as refused:
        late.save(state(4), progress(4), IDENTITY, before_commit=commit_first)
    assert refused.value.code == "checkpoint_not_written"
    assert restored_update(place, tmp_path / "c") == 4


def test_an_altered_byte_is_refused(place: str, tmp_path: Path) -> None:
    seen_from(place, tmp_path / "a").save(state(4), progress(4), IDENTITY)
    files, path = fsspec.core.url_to_fs(place)
    arrays = f"{path}/update-000004/arrays.npz"
    content = bytearray(files.cat_file(arrays))
    content[len(content) // 2] ^= 1
    files.pipe_file(arrays, bytes(content))
    with pytest.raises(Refused) as refused:
        restored_update(place, tmp_path / "b")
    assert refused.value.code == "checkpoint_checksum"


def test_a_checkpoint_that_this_controller_cannot_see_is_refused(
    tmp_path: Path,
) -> None:
    """Hosts with folders of their own: controller 0 chose what others do not have."""
    url = f"memory://{uuid.uuid4().hex}/common"
    checkpoints = seen_from(url, tmp_path / "a")
    checkpoints._latest_update = lambda: 4  # type: ignore[method-assign]
    with pytest.raises(Refused) as refused:
        checkpoints.restore(MODEL, IDENTITY)
    assert refused.value.code == "checkpoint_damaged"


def test_controllers_with_different_states_commit_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = "ab" * 32
    monkeypatch.setattr(shared_checkpoint.jax, "process_count", lambda: 2)
    monkeypatch.setattr(shared_checkpoint, "meet", lambda name: None)

    def gathered(other: str):
        rows = [np.frombuffer(bytes.fromhex(each), np.uint8) for each in (own, other)]
        return lambda array: np.stack(rows)

    helper = shared_checkpoint.multihost_utils
    monkeypatch.setattr(helper, "process_allgather", gathered(own))
    assert agreed_digests(own) == [own, own]
    monkeypatch.setattr(helper, "process_allgather", gathered("cd" * 32))
    with pytest.raises(Refused) as refused:
        agreed_digests(own)
    assert refused.value.code == "controllers_apart"
    assert refused.value.fields == ("controllers.1",)
