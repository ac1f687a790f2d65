"""Two trainings keep the arrays in which they first part, and only there."""

import json
from pathlib import Path

import numpy as np
import pytest

from model.checks import recovery
from model.checks.parted_arrays import Watch, read_parted
from model.digests import array_sha256

BIAS = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def moved(array: np.ndarray) -> np.ndarray:
    """Returns an array with one entry one ulp larger."""
    changed = array.copy()
    changed[1, 0] = np.nextafter(changed[1, 0], np.float32(9))
    return changed


def line(update: int, bias: np.ndarray, *, is_start: bool = False) -> dict:
    arrays = {("first_moment", "bias"): bias}
    if not is_start:
        arrays[("cursor", "")] = np.asarray(update)
    digests = [
        {
            "kind": kind,
            "leaf": leaf,
            "dtype": array.dtype.name,
            "shape": json.dumps(list(array.shape)),
            "sha256": array_sha256(array),
        }
        for (kind, leaf), array in arrays.items()
    ]
    made = {"update": update, "values": {}, "digests": digests}
    return made | ({"is_start": True} if is_start else {})


def train(folder: Path, name: str, lines: list[tuple], beside: Path | None) -> Path:
    """Writes a trace line by line, watched where there is another one."""
    trace = folder / f"trace-{name}.jsonl"
    kept = folder / f"parted-{name}.npz"
    watch = Watch(beside, kept) if beside else None
    with trace.open("w") as file:
        for update, bias, is_start in lines:
            made = line(update, bias, is_start=is_start)
            file.write(json.dumps(made) + "\n")
            if watch:
                watch.see(made, lambda bias=bias: {("first_moment", "bias"): bias})
    return trace


WHOLE = [(0, BIAS, True), (1, BIAS, False), (2, BIAS + 1, False), (3, BIAS, False)]


def parted(folder: Path, measured: list[tuple], again: list[tuple] = WHOLE) -> str:
    """Returns the place where two trainings part, after both have kept arrays."""
    whole = train(folder, "whole", WHOLE, None)
    other = train(folder, "other", measured, whole)
    train(folder, "again", again, other)
    files = [folder / f"parted-{name}.npz" for name in ("again", "other")]
    paths = [str(path) if path.exists() else None for path in files]
    expected, lines = recovery.read_lines(whole), recovery.read_lines(other)
    places = read_parted(*paths)
    for update, made in lines.items():
        text = recovery.first_difference(expected[update], made, "first_moment", places)
        if text:
            return text
    return ""


def test_equal_trainings_keep_nothing(tmp_path: Path) -> None:
    assert parted(tmp_path, WHOLE[1:]) == ""
    assert list(tmp_path.glob("*.npz")) == []


def test_the_first_update_that_parts_is_told_by_index_and_ulp(tmp_path: Path) -> None:
    measured = [WHOLE[1], (2, moved(BIAS + 1), False), (3, moved(BIAS), False)]
    text = parted(tmp_path, measured)
    assert text.startswith("update 2, first_moment bias: index [1, 0]: expected ")
    assert text.endswith(" (1 ulp); 1 of 6 entries differ")


def test_a_restored_state_that_parts_is_told_before_any_update(tmp_path: Path) -> None:
    measured = [(1, moved(BIAS), True), (2, moved(BIAS + 1), False)]
    text = parted(tmp_path, measured)
    assert text.startswith("update 1, first_moment bias: index [1, 0]: expected ")
    assert "(1 ulp)" in text


def test_only_the_first_difference_is_kept(tmp_path: Path) -> None:
    parted(tmp_path, [(2, moved(BIAS + 1), False), (3, moved(BIAS), False)])
    with np.load(tmp_path / "parted-other.npz") as kept:
        assert int(kept["update"]) == 2
        assert kept.files == ["update", "first_moment/bias"]


@pytest.mark.parametrize(
    "again", [WHOLE[:2], [*WHOLE[:2], (2, BIAS + 3, False)]], ids=["absent", "other"]
)
def test_an_uninterrupted_training_that_does_not_come_out_again_tells_no_bits(
    tmp_path: Path, again: list[tuple]
) -> None:
    text = parted(tmp_path, [WHOLE[1], (2, moved(BIAS + 1), False)], again)
    assert text.startswith("update 2, first_moment bias: expected float32 [2, 3] ")
    assert "index" not in text
