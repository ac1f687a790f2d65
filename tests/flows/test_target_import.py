"""The script for a target, rehearsed whole on this CPU, and what never gets in."""

import json
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from flows.target_import import rehearse_import
from model.programs import judge_target
from model.refusal import Refused
from model.target_result import LARGEST_FILE_BYTES, STEPS, write_manifest
from tasks.accelerators import known_accelerator
from tasks.source_closure import source_closure
from tasks.target_results import TargetResult, open_result
from tests.target_results import FIXED, NONCE, changing, dressed, manifest_of, reseal
from warehouse.nonces import remember_drawn

pytestmark = pytest.mark.timeout(900)
ACCEPTED = {"accept", "accept (undrilled)"}
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def result(rehearsed: Path, tmp_path: Path) -> Path:
    """A result that would be accepted if it were not synthetic."""
    return dressed(rehearsed, tmp_path / "dressed")


# --- the script ---


def test_a_rehearsal_runs_every_step_and_demonstrates_nothing(rehearsed: Path) -> None:
    manifest = manifest_of(rehearsed)
    assert set(manifest["steps"]) == set(STEPS)
    codes = {name: step["return_code"] for name, step in manifest["steps"].items()}
    # the probe refuses a CPU, and the killed training was killed
    assert codes == {**dict.fromkeys(STEPS, 0), "probe": 2, "killed": -9}
    assert manifest["is_rehearsal"] and manifest["platform"] == "cpu"
    precisions = {step["matmul_precision"] for step in manifest["steps"].values()}
    assert precisions == {"highest"}
    sizes = [file["bytes"] for file in manifest["files"].values()]
    assert max(sizes) < LARGEST_FILE_BYTES


def test_the_script_needs_neither_workflow_nor_warehouse(rehearsed: Path) -> None:
    """What it imports is this package, JAX, NumPy and the standard library."""
    programs = (
        *("qualify_target", "probe_target", "tokenize_corpus"),
        *("train_model", "run_endpoints", "run_target"),
    )
    closure = source_closure(*(f"model.programs.{name}" for name in programs))
    assert all(name.partition(".")[0] == "model" for name, _ in closure.modules)
    names = {name for name, _ in closure.distributions}
    assert names <= {"jax", "jaxlib", "numpy", "jaxtyping", "ml_dtypes"}


def test_a_target_that_is_not_there_stops_the_script_at_its_probe(tmp_path) -> None:
    out = tmp_path / "out"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "model.programs.qualify_target", str(out)),
            *("--expect-platform", "gpu"),
        ],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2
    assert "Stopped at probe" in done.stderr
    with pytest.raises(Refused, match="ended at 'probe'") as refused:
        open_result(out)
    assert refused.value.code == "artifact_metadata_mismatch"


# --- what never gets in ---


def test_a_result_of_a_cpu_is_refused(rehearsed: Path) -> None:
    with pytest.raises(Refused, match="no target") as refused:
        open_result(rehearsed).require_target()
    assert refused.value.code == "platform_mismatch"


def test_a_cpu_under_another_name_is_refused(rehearsed: Path, tmp_path: Path) -> None:
    """The manifest says gpu; the process that trained says where it was."""
    renamed = tmp_path / "renamed"
    shutil.copytree(rehearsed, renamed)
    reseal(renamed, platform="gpu", is_rehearsal=False)
    with pytest.raises(Refused) as refused:
        open_result(renamed).require_target()
    assert refused.value.code == "platform_mismatch"


@pytest.mark.parametrize("where", ["repeated", "resumed", "executed"])
def test_a_result_of_which_one_process_was_on_a_cpu_is_refused(
    result: Path, where: str
) -> None:
    with changing(result / where / "program.json") as program:
        program["runtime"]["platform"] = "cpu"
    reseal(result)
    with pytest.raises(Refused, match="made on 'cpu', 'gpu'") as refused:
        open_result(result).require_target()
    assert refused.value.code == "platform_mismatch"


def test_a_result_of_another_preset_than_asked_for_is_refused(
    rehearsed: Path, tmp_path: Path
) -> None:
    """What a run is about is what the target was asked for, whatever it says."""
    folder = tmp_path / "another"
    shutil.copytree(rehearsed, folder)
    reseal(folder, preset="fixture_tuned")
    result = open_result(folder)
    sold = known_accelerator("nvidia-h200")
    with pytest.raises(
        Refused, match="preset 'fixture_tuned'; asked for was"
    ) as refused:
        rehearse_import(tmp_path / "evidence", result, sold, "", "fixture")
    assert refused.value.code == "artifact_metadata_mismatch"


def test_a_synthetic_result_is_refused(result: Path) -> None:
    with pytest.raises(Refused, match="made up") as refused:
        open_result(result).require_target()
    assert refused.value.code == "platform_mismatch"


def test_a_synthetic_record_is_refused_where_the_manifest_hides_it(
    result: Path,
) -> None:
    reseal(result, is_synthetic=False)
    with pytest.raises(Refused, match="made up"):
        open_result(result).require_target()


def _flip(folder: Path) -> None:
    path = folder / "endpoints" / "logits.npz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _edit_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"cpu"', '"gpu"'))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_flip, "artifact_altered"),
        (_edit_manifest, "artifact_altered"),
        (lambda f: (f / "more.txt").write_text("x"), "artifact_altered"),
        (lambda f: (f / "manifest.json").write_text("{"), "artifact_altered"),
        (lambda f: (f / "manifest.json").write_text(DEEP), "artifact_altered"),
        (lambda f: (f / "parameters.npz").unlink(), "artifact_missing"),
        (lambda f: (f / "manifest.json").unlink(), "artifact_missing"),
        (lambda f: reseal(f, stopped_at="killed"), "artifact_metadata_mismatch"),
        (lambda f: reseal(f, steps={}), "artifact_metadata_mismatch"),
        (lambda f: reseal(f, code_sha256="0" * 64), "code_mismatch"),
    ],
)
def test_a_result_that_is_not_whole_or_of_other_code_is_refused(
    rehearsed: Path, tmp_path: Path, change: Callable[[Path], Any], code: str
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(rehearsed, folder)
    open_result(folder)
    change(folder)
    with pytest.raises(Refused) as refused:
        open_result(folder)
    assert refused.value.code == code


def _write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    reseal(folder)


def _lack(folder: Path, name: str) -> None:
    """Seals a manifest anew that lacks a field."""
    described = {k: v for k, v in manifest_of(folder).items() if k not in FIXED}
    write_manifest(folder, {k: v for k, v in described.items() if k != name})


MALFORMED: dict[str, Callable[[Path], Any]] = {
    **{
        f"no {name}": partial(_lack, name=name)
        for name in ("accelerator", "code_sha256", "steps", "model", "preset")
    },
    "controllers as text": lambda f: reseal(f, controllers="two"),
    "no controllers": lambda f: reseal(f, controllers=0),
    "more than there are": lambda f: reseal(f, controllers=10**9),
    "a flag as text": lambda f: reseal(f, is_rehearsal="no"),
    "no JSON": lambda f: _write(f, "probe/observed.json", "{"),
    "too deep": lambda f: _write(f, "probe/observed.json", DEEP),
    "no object": lambda f: _write(f, "probe/observed.json", "[]"),
    "no runtime": lambda f: _write(f, "trained/program.json", "{}"),
    "a list of files": lambda f: _write_list_of_files(f),
}


def _write_list_of_files(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**manifest_of(folder), "files": []}))


@pytest.mark.parametrize("case", MALFORMED)
def test_a_sealed_result_that_says_what_no_result_says_is_refused_in_a_sentence(
    case: str, rehearsed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(rehearsed, folder)
    MALFORMED[case](folder)
    with pytest.raises(Refused) as refused:
        open_result(folder)
    assert refused.value.code == "artifact_metadata_mismatch"
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    "error",
    [
        *(OverflowError, RecursionError, MemoryError, NotImplementedError),
        *(ZeroDivisionError, KeyError, UnicodeDecodeError, zlib.error),
    ],
)
def test_whatever_a_file_makes_of_the_judge_is_refused_in_a_sentence(
    error: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise error(
            *(("utf-8", b"", 0, 1, "no") if error is UnicodeDecodeError else ())
        )

    monkeypatch.setattr(judge_target, "read_result", lambda folder: {})
    monkeypatch.setattr(judge_target, "Judge", fail)
    with pytest.raises(Refused, match="does not hold what a target writes") as refused:
        judge_target.main({"folder": str(tmp_path)}, tmp_path)
    assert refused.value.code == "artifact_metadata_mismatch"
    assert "\n" not in refused.value.message


def test_a_count_that_no_record_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"measurements": [{"value_count": 10**30}]}
    monkeypatch.setattr(judge_target, "read_result", lambda folder: {})
    monkeypatch.setattr(judge_target, "Judge", lambda *_: None)
    monkeypatch.setattr(judge_target, "judged_rows", lambda _: rows)
    with pytest.raises(Refused, match=r"OverflowError: measurements\.value_count"):
        judge_target.main({"folder": str(tmp_path)}, tmp_path)


# --- the command ---


def test_the_command_refuses_a_cpu_and_rehearses_it(harness, rehearsed, tmp_path):
    root = tmp_path / "evidence"
    done = harness("target", "import", rehearsed, "--root", root)
    assert done.returncode == 2 and "no target" in done.stderr
    assert not root.exists()
    done = harness(
        *("target", "import", rehearsed, "--rehearsal", "--root", root),
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "loss_difference" in done.stdout
    assert done.stdout.rstrip().endswith("nothing is demonstrated.")
    assert not root.exists()


def test_a_file_that_holds_what_no_target_writes_is_refused(
    harness, rehearsed, tmp_path
):
    folder = tmp_path / "changed"
    shutil.copytree(rehearsed, folder)
    _write(folder, "executed/trace.json", "[1]")
    done = harness(
        *("target", "import", folder, "--rehearsal"),
        *("--root", tmp_path / "evidence"),
        timeout=600,
    )
    assert done.returncode == 2, done.stderr
    assert "does not hold what a target writes" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_records_a_target_as_a_run_of_its_own(
    result, tmp_path, monkeypatch, capsys
):
    """The guard against synthetic results is lifted here, and only here."""
    from flows import command_line

    monkeypatch.setattr(TargetResult, "require_target", lambda self: None)
    root = tmp_path / "evidence"

    def import_(folder: Path) -> tuple[Any, str, str]:
        with pytest.raises(SystemExit) as ended:
            command_line.main(
                [
                    *("target", "import", str(folder), "--json"),
                    *("--accelerator", "nvidia-h200", "--root", str(root)),
                ]
            )
        told = capsys.readouterr()
        return ended.value.code, told.out, told.err

    code, _, told = import_(result)
    assert code == 2 and "was not given out by the store" in told
    assert not root.exists()

    remember_drawn(root, NONCE, "2026-01-01T00:00:00.000000000Z")
    code, out, told = import_(result)
    assert code == 0, told
    shown = json.loads(out)
    claims = {row["claim"]: row["verdict"] for row in shown["claims"]}
    assert {claims["5.1"], claims["5.3"], claims["5.5"]} <= ACCEPTED
    # no run at home: neither the release nor what needs no target is known
    assert claims["5.4"] == claims["5.6"] == claims["5.7"] == "not demonstrated"
    rungs = {(row["rung"], row["platform"]): row["verdict"] for row in shown["ladder"]}
    assert rungs[4, "gpu"] == "not demonstrated"
    assert rungs[4, "tpu"] == "not demonstrated"

    # the same result again is the same evidence, and another one answers nothing
    code, out, _ = import_(result)
    assert (code, json.loads(out)["run_id"]) == (0, shown["run_id"])
    assert len(list((root / "runs").iterdir())) == 1
    reseal(result, stopped_because="sealed anew")
    code, out, told = import_(result)
    assert code == 2 and f"another one (run {shown['run_id']})" in told
    assert len(list((root / "runs").iterdir())) == 1
