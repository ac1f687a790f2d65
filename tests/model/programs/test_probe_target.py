"""A CPU is refused as a target under every name, and what it answered is kept."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from model.folders import source_sha256
from model.programs import probe_target
from model.refusal import Refused
from model.target_signs import PLATFORMS, SIGNS, signs_of
from tests.synthetic_targets import observed_target

NONCE = "ab" * 16


def _run(
    folder: Path, platform: str, environment: dict[str, str], **request: Any
) -> dict[str, str]:
    asked = {
        "out": str(folder),
        "target": {"platform": platform, "accelerator": "v5litepod-16"},
        "nonce": NONCE,
        **request,
    }
    path = folder / "request.json"
    path.write_text(json.dumps(asked))
    ended = subprocess.run(
        [sys.executable, "-m", "model.programs.probe_target", str(path)],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    assert ended.returncode == 2, ended.stderr.decode()
    return json.loads((folder / "refused.json").read_text())


def _rows(folder: Path, table: str) -> list[dict[str, Any]]:
    return json.loads((folder / "records" / f"{table}.json").read_text())


def test_a_silent_fallback_to_the_cpu_is_refused_and_kept(tmp_path: Path) -> None:
    environment = {"JAX_PLATFORMS": "", "TPU_WORKER_ID": "0"}
    refused = _run(tmp_path, "tpu", environment, case="unset")
    assert refused["code"] == "platform_mismatch"
    assert "found backend 'cpu'" in refused["message"]
    (answer,) = _rows(tmp_path, "target_answers")
    assert answer["nonce"] == NONCE
    assert answer["code_sha256"] == source_sha256(probe_target.CODE)
    assert json.loads(answer["environment"])["TPU_WORKER_ID"] == "0"
    signs = _rows(tmp_path, "target_signs")
    assert [row["sign"] for row in signs] == list(SIGNS)
    assert not any(row["is_there"] for row in signs)
    assert {row["case_name"] for row in signs} == {"unset"}
    assert {row["kind"] for row in _rows(tmp_path, "target_devices")} == {"cpu"}


@pytest.mark.parametrize(("platform", "asked"), [("tpu", "tpu"), ("gpu", "cuda")])
def test_a_target_that_cannot_start_is_absent(
    tmp_path: Path, platform: str, asked: str
) -> None:
    refused = _run(tmp_path, platform, {"JAX_PLATFORMS": asked})
    assert refused["code"] == "target_absent"
    (answer,) = _rows(tmp_path, "target_answers")
    assert answer["start_error"] and not answer["runtime"]


def test_other_code_than_demanded_is_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    refused = _run(tmp_path, "tpu", {"JAX_PLATFORMS": ""}, code_sha256="0" * 64)
    assert refused["code"] == "code_mismatch"
    assert not (tmp_path / "records").exists()


def test_the_digest_of_code_is_of_the_files_that_run(tmp_path: Path) -> None:
    package = tmp_path / "model"
    package.mkdir()
    (package / "a.py").write_text("x = 1\n")
    before = source_sha256(package)
    (package / "note.txt").write_text("no code")
    assert source_sha256(package) == before
    (package / "a.py").write_text("x = 2\n")
    changed = source_sha256(package)
    (package / "b.py").write_text("")
    assert len({before, changed, source_sha256(package)}) == 3


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_host_with_every_sign_is_not_refused(platform: str) -> None:
    observed = observed_target(platform)
    signs = signs_of(observed, PLATFORMS[platform])
    assert len(signs) == len(SIGNS)
    assert probe_target.require_signs(observed, signs) is None


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_one_missing_sign_is_enough(platform: str, sign: str) -> None:
    observed = observed_target(platform, without=sign)
    with pytest.raises(Refused) as refused:
        probe_target.require_signs(observed, signs_of(observed, PLATFORMS[platform]))
    is_other = sign in ("default_backend", "device_platforms")
    expected = "platform_mismatch" if is_other else "target_absent"
    assert refused.value.code == expected
    if not is_other:
        assert f"{sign} is " in refused.value.message
