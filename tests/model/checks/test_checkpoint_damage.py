"""Damage is refused for its own reason, and nothing that is wrong hides it."""

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model import checkpoint
from model.checkpoint_arrays import read_arrays
from model.checkpoint_manifest import check_identity
from model.checks import checkpoint_damage as damage
from model.config import ModelConfig, TrainConfig, to_dict
from model.refusal import Refused
from tests.model.checkpoints import MODEL, first_checkpoint, unmet

IDENTITY: dict[str, Any] = {
    "data": {"split_sha256": "a"},
    "order_seed": 12,
    "batch_documents": 16,
    "tokenizer": {"version": 1},
    "architecture": {"width": 24},
    "optimizer": {
        name: to_dict(TrainConfig().optimizer)[name]
        for name in ("beta1", "average_decay")
    },
    "precision": {"dense": "fp32"},
    "dropout_seed": 13,
    "initialization_seed": 11,
    "numerics": {"jaxlib": "0.10.2"},
}
LEAVES, DAMAGES = 11, 11


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return first_checkpoint(tmp_path_factory.mktemp("damage"), IDENTITY)


def hidden(rows: list[dict]) -> set[tuple[str, str]]:
    return {
        (row["first_change"], row["second_change"])
        for row in rows
        if row["expected_reason"] != row["received_reason"]
        or row["expected_fields"] != row["received_fields"]
        or row["sha256_before"] != row["sha256_after"]
    }


def test_every_damage_is_refused_for_its_own_reason(
    folder: Path, tmp_path: Path
) -> None:
    rows = list(damage.refuse_damages(folder, MODEL, IDENTITY, tmp_path))
    assert unmet(rows) == []
    assert len(rows) == DAMAGES
    # Two of them are a wrong digest: of an array, and of the whole file.
    assert len({refused["received_reason"] for refused, _ in rows}) == len(rows) - 1


def test_a_changed_setting_hides_no_damage_that_can_be_looked_at(
    folder: Path, tmp_path: Path
) -> None:
    rows = list(damage.refuse_damages_under_settings(folder, MODEL, IDENTITY, tmp_path))
    assert len(rows) == LEAVES * DAMAGES
    assert hidden(rows) == set()
    fields = {
        (row["first_change"], row["second_change"]): row["received_fields"]
        for row in rows
    }
    assert fields["order_seed", "truncated"] == '["arrays.npz", "order_seed"]'
    # What an uncommitted manifest says was never promised to be true.
    assert fields["uncommitted", "order_seed"] == '["COMMITTED"]'


def test_a_restore_that_looks_at_the_setting_only_hides_the_damage(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def setting_first(
        path: Path, manifest: Mapping[str, Any], identity: Any, declared: Any
    ) -> dict[str, np.ndarray]:
        check_identity(manifest["identity"], identity)
        return read_arrays(path, manifest, declared)

    monkeypatch.setattr(checkpoint, "_verified_arrays", setting_first)
    rows = list(damage.refuse_damages_under_settings(folder, MODEL, IDENTITY, tmp_path))
    readable = DAMAGES - len(damage.OF_THE_MANIFEST)
    assert len(hidden(rows)) == LEAVES * readable


def test_no_damage_of_an_array_hides_that_of_another(
    folder: Path, tmp_path: Path
) -> None:
    rows = list(damage.refuse_two_damages(folder, MODEL, IDENTITY, tmp_path))
    assert len(rows) == 15
    assert hidden(rows) == set()


def test_a_restore_that_stops_at_the_first_array_hides_the_second(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("model.checkpoint_arrays.joined", lambda refusals: refusals[0])
    rows = list(damage.refuse_two_damages(folder, MODEL, IDENTITY, tmp_path))
    assert len(hidden(rows)) == 15


def test_an_array_of_another_shape_and_type_is_named_for_both(
    folder: Path, tmp_path: Path
) -> None:
    copy = damage._damaged(folder, tmp_path)
    name = damage._parameter_arrays(copy)[0]

    def spoil(have: dict[str, Any]) -> None:
        have[name] = have[name].astype(np.float64)[None]

    damage._change_arrays(copy, spoil)
    with pytest.raises(Refused, match=r"shape .*; besides, .*dtype") as refused:
        checkpoint.load_checkpoint(copy, MODEL, IDENTITY)
    assert refused.value.fields == (f"arrays.{name}.shape", f"arrays.{name}.dtype")
    assert refused.value.code == "checkpoint_array_shape"


def test_arrays_of_another_training_are_held_against_its_own_manifest(
    folder: Path,
) -> None:
    """A wider model needs other arrays, which is no damage of this checkpoint."""
    wider = ModelConfig(width=48)
    wanted = {**IDENTITY, "architecture": {"width": 48}}
    with pytest.raises(Refused) as refused:
        checkpoint.load_checkpoint(folder, wider, wanted)
    assert refused.value.fields == ("architecture.width",)


def test_an_array_whose_header_promises_other_bytes_is_damage(
    folder: Path, tmp_path: Path
) -> None:
    """The bytes of an array are read by its own header, which may lie about them."""
    copy = damage._damaged(folder, tmp_path)
    name = damage._parameter_arrays(copy)[0]
    content = io.BytesIO()
    with (
        zipfile.ZipFile(copy / checkpoint.ARRAYS) as old,
        zipfile.ZipFile(content, "w") as new,
    ):
        for item in old.namelist():
            data = old.read(item)
            new.writestr(item, data[:-4] if item == f"{name}.npy" else data)
    (copy / checkpoint.ARRAYS).write_bytes(content.getvalue())
    digest = hashlib.sha256(content.getvalue()).hexdigest()
    size = len(content.getvalue())
    damage.reseal(copy, arrays_file={"sha256": digest, "bytes": size})
    with pytest.raises(Refused, match="no readable NPZ") as refused:
        checkpoint.load_checkpoint(copy, MODEL, IDENTITY)
    assert refused.value.code == "checkpoint_damaged"
    assert refused.value.fields == ("arrays.npz",)


def test_a_checkpoint_of_other_arrays_names_every_one_as_data(
    folder: Path, tmp_path: Path
) -> None:
    """A sentence with fifty names helps nobody; the data have them all."""
    copy = damage._damaged(folder, tmp_path)
    damage._change_arrays(copy, lambda have: have.clear())
    with pytest.raises(Refused, match=r"lacks array .* and 49 more") as refused:
        checkpoint.load_checkpoint(copy, MODEL, IDENTITY)
    assert len(refused.value.fields) == 52
