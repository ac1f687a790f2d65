"""Faults planted into a result that would be accepted, each found by its claim.

The limits are those of the contract alone. Synthetic: this shows the rule at work, and
is no evidence of any target.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.checks.target_reference import Reference, parameter_differences
from model.checks.target_result import Judge
from model.config import ModelConfig, TrainConfig, from_dict, to_dict
from model.presets import fixture, preset
from model.programs.judge_target import judged_rows
from model.target_result import read_result
from tasks.accelerators import known_accelerator
from tasks.target_challenge import code_sha256
from tests.store_maker import StoreMaker
from tests.synthetic_targets import WITHOUT, observed_target
from tests.target_results import (
    NONCE,
    change_arrays,
    changing,
    dressed,
    lines,
    manifest_of,
    reseal,
    write,
)
from warehouse.contract import read_contract
from warehouse.load import build_warehouse
from warehouse.reading import read_store
from warehouse.records.claims import Comparison, Measurement
from warehouse.records.targets import (
    TargetAccelerator,
    TargetAnswer,
    TargetDevice,
    TargetSign,
    TargetTiming,
)
from warehouse.schema import record_from
from warehouse.store import Store

pytestmark = pytest.mark.timeout(900)
UNDRILLED = "accept (undrilled)"
SOLD = known_accelerator("nvidia-h200").sold()
CLASSES = (
    *(Measurement, Comparison, TargetAnswer, TargetSign),
    *(TargetDevice, TargetTiming, TargetAccelerator),
)


@pytest.fixture(scope="module")
def reference() -> Reference:
    config = fixture()
    return Reference(config.model, config.train)


@pytest.fixture
def result(rehearsed: Path, tmp_path: Path) -> Path:
    """A result that would be accepted if it were not synthetic."""
    return dressed(rehearsed, tmp_path / "dressed")


@pytest.fixture
def verdicts(tmp_path: Path, reference: Reference) -> Callable[..., dict[str, str]]:
    """Judges a result as the import does; answers the verdict of each target claim."""

    def judge(folder: Path, **asked: Any) -> dict[str, str]:
        connection = judged(folder, tmp_path, reference, **asked)
        rows = connection.execute(
            "select claim, verdict from verdicts where review_task = 5 "
            "and claim_number <= 5"
        ).fetchall()
        return dict(rows)

    return judge


def judged(folder: Path, place: Path, reference: Reference, **asked: Any) -> Any:
    manifest = read_result(folder)
    parameters = manifest["files"]["parameters.npz"]["sha256"]
    request = {
        "folder": str(folder),
        "nonce": NONCE,
        "code_sha256": code_sha256(),
        "accelerator": SOLD,
        "released_sha256": parameters,
        "model": to_dict(fixture().model),
        "train": to_dict(fixture().train),
        **asked,
    }
    found = judged_rows(Judge(folder, manifest, request, reference))
    made = StoreMaker(Store(place / "store"))
    made.execute(
        "qualify_target",
        [record_from(kind, row) for kind in CLASSES for row in found[kind.TABLE]],
    )
    made.run("run-1")
    return build_warehouse(read_store(made.store.root, None), read_contract())


def test_a_result_with_everything_would_be_accepted(
    result: Path, tmp_path: Path, reference: Reference
) -> None:
    """Synthetic: this is the rule at work, and no evidence of any target."""
    connection = judged(result, tmp_path, reference)
    found = connection.execute(
        "select claim, verdict from verdicts where review_task = 5 "
        "and claim_number <= 5"
    ).fetchall()
    assert dict(found) == dict.fromkeys([f"5.{n}" for n in range(1, 6)], UNDRILLED)
    ladder = connection.execute(
        "select rung, verdict from target_ladder where platform = 'gpu' and rung > 3"
    ).fetchall()
    assert dict(ladder) == {4: "accept", 5: "accept"}
    shown = connection.execute("select work, samples from target_timings").fetchall()
    assert len(shown) == 3 and {samples for _, samples in shown} == {30}


def _observe(folder: Path, changes: dict[str, Any]) -> None:
    write(
        folder / "probe" / "observed.json",
        {**json.loads((folder / "probe" / "observed.json").read_text()), **changes},
    )


def _device(**changes: Any) -> dict[str, Any]:
    return {**observed_target("gpu")["devices"][0], **changes}


def _shift_logits(folder: Path, policy: str, by: float) -> None:
    change_arrays(
        folder / "endpoints" / "logits.npz",
        lambda name, array: array + by * name.startswith(policy),
    )


def _shift_losses(folder: Path, by: float) -> None:
    with changing(folder / "trained" / "records" / "updates.json") as updates:
        updates[3]["loss_nats"] += by


def _shift_parameters(folder: Path, by: float) -> None:
    path = folder / "trained" / "checkpoints" / "update-000008" / "arrays.npz"
    change_arrays(
        path, lambda name, array: array + by * (name == "parameters/lm_head.weight")
    )


def _part(folder: Path, training: str) -> None:
    path = folder / training / "artifacts" / "trace.jsonl"
    traced = list(lines(path))
    traced[-1]["digests"][-1]["sha256"] = "0" * 64
    path.write_text("".join(json.dumps(line) + "\n" for line in traced))


def _reseed(folder: Path) -> None:
    last = folder / "trained" / "checkpoints" / "update-000008" / "manifest.json"
    with changing(last) as manifest:
        manifest["identity"]["order_seed"] += 1


def _choose_uncommitted(folder: Path) -> None:
    path = folder / "resumed" / "artifacts" / "trace.jsonl"
    first, *rest = lines(path)
    kept = [{**first, "update": 6}, *(each for each in rest if each["update"] > 6)]
    path.write_text("".join(json.dumps(line) + "\n" for line in kept))


def _steps(folder: Path, step: str, **changes: Any) -> None:
    steps = manifest_of(folder)["steps"]
    steps[step] |= changes
    reseal(folder, steps=steps)


def _configure(folder: Path, file: str, **changes: Any) -> None:
    with changing(folder / file) as value:
        value |= changes


def _copy_the_first(folder: Path) -> None:
    """Has the repetition be a copy of the first training, under an id of its own."""
    own = (folder / "repeated" / "program.json").read_text()
    shutil.rmtree(folder / "repeated")
    shutil.copytree(folder / "trained", folder / "repeated")
    (folder / "repeated" / "program.json").write_text(own)


def _trade_numbers(folder: Path) -> None:
    """Puts other numbers within every limit in the place of those of the target."""
    _shift_losses(folder, 1e-6)
    _shift_parameters(folder, 1e-6)


# all but what ties an answer to its launcher
_TOPOLOGY = {
    name: value
    for name, value in observed_target("tpu").items()
    if name not in ("platform", "nonce", "code_sha256", "code_sha256_demanded")
}
FAULTS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "relabelled device": (
        "5.1",
        lambda f: _observe(
            f, {**WITHOUT["gpu"]["chips_on_bus"], "driver_versions": {}}
        ),
    ),
    "a list of devices alone": (
        "5.1",
        lambda f: _observe(f, {"computed": [], "trace_planes": {}, "chips": []}),
    ),
    "another card": (
        "5.1",
        lambda f: _observe(f, {"devices": [_device(kind="Tesla T4")]}),
    ),
    "a part of the card": (
        "5.1",
        lambda f: _observe(f, {"devices": [_device(kind="NVIDIA H200 MIG 1g.18gb")]}),
    ),
    "two cards": (
        "5.1",
        lambda f: _observe(
            f,
            {
                "devices": [_device(), _device(id=1)],
                "local_devices": [0, 1],
                "computed": observed_target("gpu")["computed"] * 2,
            },
        ),
    ),
    "answers of a TPU topology": ("5.1", lambda f: _observe(f, _TOPOLOGY)),
    "workload on the CPU": (
        "5.1",
        lambda f: _configure(f, "executed/trace.json", planes={"/host:CPU": {"x": 3}}),
    ),
    "answer of an earlier day": ("5.2", lambda f: _observe(f, {"nonce": "ef" * 16})),
    "other code on the host": ("5.2", lambda f: _observe(f, {"code_sha256": "0" * 64})),
    "logits of TF32": ("5.3", lambda f: _shift_logits(f, "fp32", 6.9e-3)),
    "another cache under bf16": ("5.3", lambda f: _shift_logits(f, "bf16", 0.0385)),
    "another cache under w8a8": ("5.3", lambda f: _shift_logits(f, "w8a8", 0.195)),
    "training in TF32": ("5.3", lambda f: _shift_losses(f, 1.7e-4)),
    "parameters of TF32": ("5.3", lambda f: _shift_parameters(f, 8.8e-5)),
    "another order every time": ("5.3", lambda f: _part(f, "repeated")),
    "a copy for a repetition": ("5.3", _copy_the_first),
    "numbers of another machine": ("5.3", _trade_numbers),
    "judged by a recipe of its own": (
        "5.4",
        lambda f: reseal(f, train=to_dict(preset("fixture_tuned").train)),
    ),
    "default precision": (
        "5.4",
        lambda f: _steps(f, "executed", matmul_precision="None"),
    ),
    "state on the CPU": (
        "5.4",
        lambda f: _configure(
            f, "executed/placement.json", devices_of_state=["cpu:0", "gpu:0"]
        ),
    ),
    "mean over padding": (
        "5.4",
        lambda f: _configure(f, "executed/placement.json", valid_targets=192),
    ),
    "other tokens": (
        "5.4",
        lambda f: change_arrays(
            f / "tokens" / "artifacts" / "tokens.npz", lambda _, array: array[::-1]
        ),
    ),
    # The numbers are those of the manifest; the training itself says another seed.
    "trained by another recipe": ("5.4", lambda f: _reseed(f)),
    "resumed elsewhere": ("5.5", lambda f: _part(f, "resumed")),
    "uncommitted checkpoint chosen": ("5.5", _choose_uncommitted),
    "crashed when it resumed": ("5.5", lambda f: _steps(f, "resumed", return_code=1)),
    "nothing of the killed": ("5.5", lambda f: shutil.rmtree(f / "killed")),
    "ended by itself": ("5.5", lambda f: _steps(f, "killed", return_code=0)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_by_its_claim(
    fault: str, result: Path, verdicts: Callable[..., dict[str, str]]
) -> None:
    claim, plant = FAULTS[fault]
    plant(result)
    reseal(result)
    found = verdicts(result)
    assert found.pop(claim) == "revise"
    assert set(found.values()) == {UNDRILLED}


def test_logits_that_are_no_numbers_demonstrate_nothing(result, verdicts) -> None:
    _shift_logits(result, "bf16", float("nan"))
    reseal(result)
    assert verdicts(result)["5.3"] == "not demonstrated"


def test_another_release_than_that_of_the_store_is_found(result, verdicts) -> None:
    assert verdicts(result, released_sha256="0" * 64)["5.4"] == "revise"


@pytest.mark.parametrize("said", ["a nonce", ""])
def test_without_a_nonce_that_was_given_out_no_answer_is_one(
    said: str, result, verdicts
) -> None:
    _observe(result, {"nonce": said})
    reseal(result, nonce=said)
    assert verdicts(result, nonce="")["5.2"] == "not demonstrated"


def test_without_a_release_the_configuration_is_not_demonstrated(
    result, verdicts
) -> None:
    reseal(result, is_release_given=False)
    assert verdicts(result)["5.4"] == "not demonstrated"


def test_one_host_of_a_slice_is_not_the_slice(result, verdicts) -> None:
    assert verdicts(result, accelerator={**SOLD, "hosts": 4})["5.2"] == "revise"


def test_one_device_of_several_does_not_demonstrate_them(result, verdicts) -> None:
    """Nothing is against the others, and nothing is for them."""
    found = verdicts(result, accelerator={**SOLD, "devices": 4})
    assert found["5.2"] == "not demonstrated"


def test_times_of_a_target_are_hidden_until_it_is_accepted(
    result: Path, tmp_path: Path, reference: Reference
) -> None:
    _shift_losses(result, 1.7e-4)
    reseal(result)
    connection = judged(result, tmp_path, reference)
    assert connection.execute("select * from stg_target_timings").fetchall()
    assert connection.execute("select * from target_timings").fetchall() == []


def test_a_limit_comes_from_the_contract_and_from_no_result(result: Path) -> None:
    """A target that brings a limit of its own finds nobody who reads it."""
    reseal(result, limits={"endpoint_logit_difference": 1.0}, tolerance=0.1)
    manifest = read_result(result)
    assert manifest["tolerance"] == 0.1
    source = Path(__file__).parents[3] / "model"
    for path in (*source.glob("**/*target_*.py"), *source.glob("programs/*_target.py")):
        text = path.read_text()
        assert "tolerance" not in text and "rtol" not in text and "atol" not in text


def test_the_biases_of_keys_are_apart_because_no_output_depends_on_them(
    reference: Reference,
) -> None:
    expected = dict(reference.updates[-1].state.parameters)
    name = "h.0.attn.c_attn.bias"
    width = reference.model.width
    measured = dict(expected)
    measured[name] = expected[name].at[width : 2 * width].add(0.5)
    found, key_bias = parameter_differences(measured, expected, reference.model)
    assert max(found.values()) == 0.0 and abs(key_bias - 0.5) < 1e-3
    measured[name] = expected[name].at[0].add(0.5)
    found, key_bias = parameter_differences(measured, expected, reference.model)
    assert found[name] > 0.4 and key_bias == 0.0


def test_the_request_of_the_judge_is_about_the_recipe_of_the_preset(rehearsed) -> None:
    manifest = manifest_of(rehearsed)
    assert from_dict(ModelConfig, manifest["model"]) == fixture().model
    assert from_dict(TrainConfig, manifest["train"]) == fixture().train
