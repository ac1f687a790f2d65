"""The parameter table is the one list that everything else follows."""

from pathlib import Path

import numpy as np
import pytest

from model.config import ModelConfig
from model.parameters import (
    check_parameters,
    initial_parameters,
    load_parameters,
    parameter_table,
    save_parameters,
)
from model.refusal import Refused

MODEL = ModelConfig(blocks=2)


def test_the_fixture_has_the_tensors_of_gpt_2_and_no_output_bias() -> None:
    names = [spec.name for spec in parameter_table(ModelConfig())]
    assert names[:2] == ["wte.weight", "wpe.weight"]
    assert names[-3:] == ["ln_f.weight", "ln_f.bias", "lm_head.weight"]
    assert len(names) == len(set(names)) == 17
    shapes = {spec.name: spec.shape for spec in parameter_table(ModelConfig())}
    assert shapes["h.0.attn.c_attn.weight"] == (24, 72)
    assert shapes["lm_head.weight"] == (259, 24)


def test_fresh_parameters_follow_the_table_and_their_seed() -> None:
    first, again = initial_parameters(MODEL, 5), initial_parameters(MODEL, 5)
    other = initial_parameters(MODEL, 6)
    check_parameters({name: np.asarray(x) for name, x in first.items()}, MODEL)
    for spec in parameter_table(MODEL):
        values = np.asarray(first[spec.name])
        assert values.tobytes() == np.asarray(again[spec.name]).tobytes()
        if spec.initializer == "normal":
            assert values.tobytes() != np.asarray(other[spec.name]).tobytes()
            spread = values.std() / spec.standard_deviation
            assert 0.8 < spread < 1.2, (spec.name, spread)
        else:
            assert set(values.ravel()) == {1.0 if spec.initializer == "ones" else 0.0}


def test_no_two_tensors_share_their_random_numbers() -> None:
    drawn = [
        np.asarray(x).ravel()[:16] / np.asarray(x).ravel()[0]
        for name, x in initial_parameters(MODEL, 1).items()
        if name.endswith("weight") and ".ln_" not in name and "ln_f" not in name
    ]
    assert len({row.tobytes() for row in drawn}) == len(drawn)


def test_a_saved_file_gives_the_same_bits_and_has_the_same_bytes(
    tmp_path: Path,
) -> None:
    parameters = initial_parameters(MODEL, 2)
    save_parameters(tmp_path / "a.npz", parameters)
    save_parameters(tmp_path / "b.npz", dict(reversed(parameters.items())))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    loaded = load_parameters(tmp_path / "a.npz", MODEL)
    assert list(loaded) == [spec.name for spec in parameter_table(MODEL)]
    for name, values in parameters.items():
        assert np.asarray(loaded[name]).tobytes() == np.asarray(values).tobytes()


@pytest.mark.parametrize("change", ["missing", "extra", "shape", "dtype"])
def test_a_tensor_that_does_not_fit_is_named(change: str) -> None:
    arrays = {name: np.asarray(x) for name, x in initial_parameters(MODEL, 0).items()}
    name = "h.1.mlp.c_fc.bias"
    if change == "missing":
        del arrays[name]
    elif change == "extra":
        name = "h.2.mlp.c_fc.bias"
        arrays[name] = np.zeros(3, dtype=np.float32)
    elif change == "shape":
        arrays[name] = arrays[name][None]
    else:
        arrays[name] = arrays[name].astype(np.float64)
    with pytest.raises(Refused, match=name) as refused:
        check_parameters(arrays, MODEL)
    assert refused.value.code == "parameters_mismatch"


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04broken"])
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "parameters.npz").write_bytes(content)
    with pytest.raises(Refused, match=r"parameters\.npz") as refused:
        load_parameters(tmp_path / "parameters.npz", MODEL)
    assert refused.value.code == "parameters_mismatch"


def test_pickled_objects_are_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "p.npz").open("wb") as file:
        np.savez(file, **{"wte.weight": np.array([{}], dtype=object)})
    with pytest.raises(Refused, match=r"p\.npz"):
        load_parameters(tmp_path / "p.npz", MODEL)
