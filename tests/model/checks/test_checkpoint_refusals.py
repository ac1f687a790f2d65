"""The matrix of single changes refuses each for its reason, and could fail itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from model import checkpoint
from model.checkpoint_manifest import MISMATCH_CODES, check_identity
from model.checks import checkpoint_refusals as refusals
from model.refusal import Refused
from tests.model.checkpoints import IDENTITY, MODEL, first_checkpoint, unmet


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return first_checkpoint(tmp_path_factory.mktemp("refusals"), IDENTITY)


def test_every_leaf_of_the_identity_is_refused_named_and_leaves_the_folder(
    folder: Path,
) -> None:
    rows = list(refusals.refuse_settings(folder, MODEL, IDENTITY))
    assert unmet(rows) == []
    cases = {refused["case_name"] for refused, _ in rows}
    assert {"optimizer/beta2", "numerics/nproc", "order_seed"} <= cases
    leaves = sum(len(v) if isinstance(v, dict) else 1 for v in IDENTITY.values())
    assert len(cases) == len(rows) == leaves
    codes = {refused["received_reason"] for refused, _ in rows}
    # Every optimizer field has a code of its own, so their common one is left over.
    whole = set(map(str, MISMATCH_CODES.values())) - {"checkpoint_mismatch_optimizer"}
    own = {f"checkpoint_mismatch_{name}" for name in IDENTITY["optimizer"]}
    assert own <= codes
    assert whole - {"checkpoint_mismatch_numerics"} <= codes


def test_a_checkpoint_records_every_leaf_that_is_changed() -> None:
    """The two are listed by different walks, so that neither can lose a leaf alone."""
    recorded = {row["field"] for row in refusals.recorded_fields(IDENTITY)}
    assert recorded == set(refusals.changed_settings(IDENTITY))
    assert {"numerics.nproc", "order_seed", "tokenizer.version"} <= recorded


def test_a_changed_leaf_changes_nothing_else() -> None:
    changed = refusals.with_changes(IDENTITY, {"optimizer.beta2": 0.5, "order_seed": 1})
    assert changed["optimizer"] == {**IDENTITY["optimizer"], "beta2": 0.5}
    assert changed["order_seed"] == 1
    same = changed | {name: IDENTITY[name] for name in ("optimizer", "order_seed")}
    assert same == IDENTITY
    assert IDENTITY["order_seed"] == 12


def hidden(rows: list[dict]) -> list[tuple[str, str]]:
    """The pairs that a verdict would not accept."""
    return [
        (row["first_change"], row["second_change"])
        for row in rows
        if row["expected_reason"] != row["received_reason"]
        or row["expected_fields"] != row["received_fields"]
        or row["sha256_before"] != row["sha256_after"]
    ]


# Few leaves, two of them in one field, so that every pair takes a moment only.
FEW: dict[str, Any] = IDENTITY | {
    "architecture": {"width": 24},
    "optimizer": {"beta1": 0.9, "beta2": 0.999, "average_decay": 0.0},
    "numerics": {"jax": "0.10.2", "jaxlib": "0.10.2"},
}
LEAVES = 2 + 1 + 1 + 2 + 1 + 3 + 3 + 1 + 1 + 2


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return first_checkpoint(tmp_path_factory.mktemp("few"), FEW)


def test_of_every_pair_of_leaves_both_are_named(small: Path) -> None:
    rows = list(refusals.refuse_two_settings(small, MODEL, FEW))
    pairs = {(row["first_change"], row["second_change"]) for row in rows}
    assert len(pairs) == len(rows) == LEAVES * (LEAVES - 1) // 2
    assert ("optimizer/beta1", "optimizer/beta2") in pairs
    assert ("numerics/jax", "numerics/jaxlib") in pairs
    assert hidden(rows) == []


def test_a_restore_that_stops_at_the_first_field_hides_the_others(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check can fail: a restore that names one field only is seen."""

    def first_only(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        for field in MISMATCH_CODES:
            check_identity(recorded, {**recorded, field: wanted[field]})

    monkeypatch.setattr(checkpoint, "check_identity", first_only)
    rows = list(refusals.refuse_two_settings(small, MODEL, FEW))
    of_one_field = {("optimizer/beta1", "optimizer/beta2")}
    parted = set(hidden(rows))
    assert len(parted) > 100
    assert not parted & of_one_field


def test_a_restore_that_stops_at_the_first_leaf_of_a_field_is_seen(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two leaves of one field, which pairs of whole fields would not tell apart."""

    def one_leaf(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        few = dict(wanted)
        for field, value in wanted.items():
            if isinstance(value, Mapping):
                apart = [name for name in value if value[name] != recorded[field][name]]
                few[field] = {
                    **recorded[field],
                    **{name: value[name] for name in apart[:1]},
                }
        check_identity(recorded, few)

    monkeypatch.setattr(checkpoint, "check_identity", one_leaf)
    parted = set(hidden(list(refusals.refuse_two_settings(small, MODEL, FEW))))
    assert ("optimizer/beta1", "optimizer/beta2") in parted
    assert ("numerics/jax", "numerics/jaxlib") in parted
    assert ("order_seed", "numerics/jax") not in parted


def test_a_restore_that_accepts_a_changed_setting_is_seen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "check_identity", lambda *_: None)
    # Another average decay changes the arrays too, which the loader sees by itself.
    rows = [
        row
        for row in refusals.refuse_settings(folder, MODEL, IDENTITY)
        if row[0]["case_name"] != "optimizer/average_decay"
    ]
    assert {refused["received_reason"] for refused, _ in rows} == {None}
    assert len(unmet(rows)) == 2 * len(rows)  # neither refused nor named


def test_a_restore_that_blames_a_neighbour_is_seen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sentence still holds the right name, which is all that a search would see."""

    def blaming(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        try:
            check_identity(recorded, wanted)
        except Refused as refused:
            fields = (*refused.fields, "numerics.jax")
            raise Refused(refused.code, refused.message, fields) from None

    monkeypatch.setattr(checkpoint, "check_identity", blaming)
    rows = list(refusals.refuse_settings(folder, MODEL, IDENTITY))
    assert len(unmet(rows)) == len(rows)
