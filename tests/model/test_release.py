"""A release is opened by digest, and each wrong part has its own refusal.

One small release is exported once; the faults are planted in copies of its files.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from model import endpoints, release, runtime
from model.checks.altered_releases import REGIONS, check_altered
from model.config import POLICIES, ModelConfig
from model.endpoints import (
    endpoint_function,
    export_endpoint,
    guaranteed_until,
    release_manifest,
)
from model.lowered import describe_endpoint, float32_operations, matrix_products
from model.parameters import initial_parameters, save_parameters
from model.reference import endpoints as reference
from model.refusal import Refused
from model.tokenizer import prompt_tokens

MODEL = ModelConfig()
PLATFORMS = ("cpu", "tpu")
Files = dict[str, str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with prefill and decode of fp32, parameters and manifest."""
    folder = tmp_path_factory.mktemp("release")
    parameters = initial_parameters(MODEL, 5)
    save_parameters(folder / "parameters.npz", parameters)
    endpoints = {}
    for kind in ("prefill", "decode"):
        exported, data = export_endpoint(kind, MODEL, POLICIES["fp32"], PLATFORMS)
        name = f"{kind}-fp32"
        (folder / f"{name}.jaxexport").write_bytes(data)
        described = describe_endpoint(exported, data)
        endpoints[name] = {"file": f"{name}.jaxexport", **described}
    manifest = release_manifest(
        MODEL,
        parameters=release.describe_parameters(folder / "parameters.npz", parameters),
        endpoints=endpoints,
        maximum_new_tokens=12,
        runtime=runtime.describe(),
    )
    (folder / "release.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Files:
    for file in made.iterdir():
        shutil.copy(file, tmp_path)
    return {file.name: str(file) for file in tmp_path.iterdir()}


def _edit(files: Files, change: Callable[[dict[str, Any]], None]) -> None:
    path = Path(files["release.json"])
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_the_reloaded_endpoint_has_the_bits_of_the_jitted_source(made: Path) -> None:
    opened = release.load_verified({f.name: f for f in made.iterdir()})
    tokens, length = prompt_tokens(b"ab|", MODEL.context_tokens)
    arguments = (tokens[None], np.array([length], np.int32))
    prefill = opened.endpoints["prefill-fp32"]
    source = jax.jit(endpoint_function("prefill", MODEL, POLICIES["fp32"]))
    expected = source(dict(prefill.parameters), *arguments)
    for left, right in zip(prefill(*arguments), expected, strict=True):
        assert np.asarray(left).tobytes() == np.asarray(right).tobytes()


def test_parameters_are_arguments_and_not_constants(made: Path) -> None:
    """Other parameters give other logits, and the artifact is too small for them."""
    opened = release.load_verified({f.name: f for f in made.iterdir()})
    prefill = opened.endpoints["prefill-fp32"]
    arguments = (np.ones((1, 12), np.int32), np.array([3], np.int32))
    other = {name: value * 2 for name, value in prefill.parameters.items()}
    one = prefill.compiled(prefill.parameters, *arguments)[0]
    two = prefill.compiled(other, *arguments)[0]
    assert np.max(np.abs(np.asarray(one) - np.asarray(two))) > 0.01
    assert (made / "prefill-fp32.jaxexport").stat().st_size < 20_000


def test_any_altered_byte_of_an_endpoint_is_refused_before_it_is_parsed(
    copied: Files,
) -> None:
    path = Path(copied["decode-fp32.jaxexport"])
    data = path.read_bytes()
    parsed: list[object] = []
    for place in range(0, len(data), len(data) // 8):
        damaged = bytearray(data)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(Refused) as refused:
            release.load_verified(copied, ("decode-fp32",), parse=parsed.append)
        assert refused.value.code == "artifact_altered"
    assert parsed == []


def told(files: Files, folder: Path) -> dict[str, bool]:
    """Whether each spoiled release was refused with its own reason, by case."""
    folder.mkdir()
    return {
        f"{row['measure']}/{row['case_name']}": row["expected_reason"]
        == row["received_reason"]
        for row in check_altered(files, folder)
    }


def test_a_check_spoils_every_part_and_sees_what_is_not_verified(
    copied: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that nobody verified are seen without parsing them, which may crash."""
    right = told(copied, tmp_path / "right")
    assert len(right) == 2 * (REGIONS + 1) + 5
    assert all(right.values()), right
    monkeypatch.setattr(release, "_require_sha256", lambda *given: None)
    unhashed = told(copied, tmp_path / "unhashed")
    monkeypatch.undo()
    wrong = {case for case, is_refused in unhashed.items() if not is_refused}
    assert {case.split("/")[0] for case in wrong} == {
        "corrupted_release",
        "truncated_release",
    }
    monkeypatch.setattr(release, "_require_equal", lambda *given: None)
    unequal = told(copied, tmp_path / "unequal")
    wrong = {case for case, is_refused in unequal.items() if not is_refused}
    assert wrong == {"foreign_part/tokenizer", "foreign_part/preprocessing"}


def _truncate(files: Files) -> None:
    path = Path(files["decode-fp32.jaxexport"])
    path.write_bytes(path.read_bytes()[:-1])


def _remove(files: Files) -> None:
    del files["decode-fp32.jaxexport"]


def _swap_files(files: Files) -> None:
    shutil.copy(files["prefill-fp32.jaxexport"], files["decode-fp32.jaxexport"])


def _swap_entries(files: Files) -> None:
    def change(manifest: dict[str, Any]) -> None:
        endpoints = manifest["endpoints"]
        endpoints["decode-fp32"] = endpoints["prefill-fp32"]

    _edit(files, change)


def _other_parameters(files: Files) -> None:
    other = initial_parameters(MODEL, 6)
    save_parameters(Path(files["parameters.npz"]), other)


def _damaged_parameters(files: Files) -> None:
    path = Path(files["parameters.npz"])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _other_tokenizer(files: Files) -> None:
    _edit(files, lambda manifest: manifest["tokenizer"].update(byte_offset=2))


def _other_preprocessing(files: Files) -> None:
    _edit(files, lambda manifest: manifest["preprocessing"].update(version=0))


def _old_convention(files: Files) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["endpoints"]["decode-fp32"]["calling_convention_version"] = 1

    _edit(files, change)


def _other_signature(files: Files) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["endpoints"]["decode-fp32"]["outputs"][0] = "float32[1,260]"

    _edit(files, change)


def _other_platform(files: Files) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["endpoints"]["decode-fp32"]["platforms"] = ["tpu"]

    _edit(files, change)


def _other_format(files: Files) -> None:
    _edit(files, lambda manifest: manifest.update(format_version=2))


def _no_json(files: Files) -> None:
    Path(files["release.json"]).write_text("{")


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (_truncate, "artifact_altered"),
        (_remove, "artifact_missing"),
        (_swap_files, "artifact_altered"),
        (_swap_entries, "endpoint_mismatch"),
        (_other_parameters, "parameters_mismatch"),
        (_damaged_parameters, "artifact_altered"),
        (_other_tokenizer, "tokenizer_changed"),
        (_other_preprocessing, "preprocessing_changed"),
        (_old_convention, "artifact_metadata_mismatch"),
        (_other_signature, "artifact_metadata_mismatch"),
        (_other_platform, "platform_mismatch"),
        (_other_format, "artifact_metadata_mismatch"),
        (_no_json, "artifact_altered"),
    ],
)
def test_each_wrong_part_is_refused_with_its_own_reason(
    copied: Files, fault: Callable[[Files], None], code: str
) -> None:
    fault(copied)
    with pytest.raises(Refused) as refused:
        release.load_verified(copied, ("decode-fp32",))
    assert refused.value.code == code, refused.value.message
    assert refused.value.message


def test_an_unknown_endpoint_is_named_with_the_known_ones(made: Path) -> None:
    files = {file.name: file for file in made.iterdir()}
    with pytest.raises(Refused, match="no endpoint 'decode-int4'"):
        release.load_verified(files, ("decode-int4",))


def test_tokens_that_jax_would_narrow_are_refused(made: Path) -> None:
    opened = release.load_verified({f.name: f for f in made.iterdir()})
    prefill = opened.endpoints["prefill-fp32"]
    with pytest.raises(Refused, match="int64"):
        prefill(np.ones((1, 12), np.int64), np.array([3], np.int32))


def test_exporting_twice_gives_the_same_bytes_without_any_path(made: Path) -> None:
    _, data = export_endpoint("prefill", MODEL, POLICIES["fp32"], PLATFORMS)
    kept = (made / "prefill-fp32.jaxexport").read_bytes()
    assert hashlib.sha256(data).hexdigest() == hashlib.sha256(kept).hexdigest()
    assert b".py" not in data


@pytest.mark.parametrize(
    ("policy", "products"),
    [
        ("fp32", {"f32,f32->f32 HIGHEST": 7}),
        ("bf16", {"bf16,bf16->f32 DEFAULT": 4, "f32,f32->f32 HIGHEST": 3}),
        ("w8a8", {"i8,i8->i32 DEFAULT": 4, "f32,f32->f32 HIGHEST": 3}),
    ],
)
def test_the_products_of_a_policy_are_read_off_the_program(
    policy: str, products: dict[str, int]
) -> None:
    """Four dense products follow it; two of attention and the head stay float32."""
    exported, _ = export_endpoint("decode", MODEL, POLICIES[policy], ("cpu",))
    program = exported.mlir_module()
    assert matrix_products(program) == products
    assert {"exponential", "rsqrt", "tanh"} <= set(float32_operations(program))


def test_a_product_that_cannot_be_read_is_no_silence() -> None:
    with pytest.raises(ValueError, match="cannot read"):
        matrix_products("%0 = stablehlo.dot_general something new")


def test_the_guarantee_counts_from_the_build_of_jax_and_not_from_today() -> None:
    assert guaranteed_until("0.10.2") == "2026-12-17"
    assert guaranteed_until("0.9.2") == "2026-09-18"
    assert guaranteed_until("99.0") is None


def test_the_guarantee_is_the_one_that_the_reference_counts() -> None:
    for version in (*endpoints._BUILT_ON, *reference.WHEEL_OF, "99.0"):
        assert guaranteed_until(version) == reference.guaranteed_until(version)
