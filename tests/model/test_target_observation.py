"""What a machine is asked, on a made-up bus and on this one."""

from pathlib import Path

import jax
import pytest

from model import target_observation as observation
from model.target_signs import PLATFORMS, signs_of


def test_chips_are_counted_on_the_bus_and_not_taken_from_a_name(tmp_path: Path) -> None:
    assert observation.chips(tmp_path) == []
    for slot, (vendor, device, kind) in enumerate(
        [
            ("0x1ae0", "0x0063", "0x120000"),
            ("0x10de", "0x2335", "0x030200"),
            ("0x8086", "0x0063", "0x030000"),
        ]
    ):
        folder = tmp_path / f"{slot}"
        folder.mkdir()
        for name, text in (("vendor", vendor), ("device", device), ("class", kind)):
            (folder / name).write_text(text + "\n")
    assert [chip["name"] for chip in observation.chips(tmp_path)] == [
        "v5e",
        "0x10de:0x2335",
    ]


def test_the_driver_says_its_version_and_its_devices(tmp_path: Path) -> None:
    assert observation.driver_versions(tmp_path) == {}
    (tmp_path / "version").write_text("NVRM version: 580.1\nGCC version: 13\n")
    folder = tmp_path / "gpus" / "0000:01:00.0"
    folder.mkdir(parents=True)
    (folder / "information").write_text("Model: \t NVIDIA H200\nIRQ: 7\n")
    found = observation.driver_versions(tmp_path)
    assert found == {"nvidia": "NVRM version: 580.1"}
    assert observation.driver_devices(tmp_path) == ["NVIDIA H200"]


def test_addresses_are_kept_as_digests_and_nothing_else_is_kept() -> None:
    found = observation.environment(
        {
            "TPU_WORKER_HOSTNAMES": "10.0.0.1,10.0.0.2",
            "JAX_COORDINATOR_ADDRESS": "10.0.0.1:1",
            "TPU_WORKER_ID": "1",
            "CUDA_VISIBLE_DEVICES": "0",
            "AWS_SECRET_ACCESS_KEY": "x",
            "NPROC": "2",
        }
    )
    assert set(found) == {
        *("TPU_WORKER_HOSTNAMES", "JAX_COORDINATOR_ADDRESS", "TPU_WORKER_ID"),
        *("CUDA_VISIBLE_DEVICES", "NPROC"),
    }
    assert found["TPU_WORKER_ID"] == "1"
    assert "10.0.0" not in str(found)


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda each: each.name)
def test_this_machine_answers_all_and_lacks_every_sign(platform) -> None:
    """A CPU: nothing is computed for it, and every sign says so."""
    observed = observation.observe(platform)
    assert observed["default_backend"] == "cpu"
    assert len(observed["devices"]) == jax.device_count()
    signs = signs_of(observed, platform)
    assert not any(sign.is_there for sign in signs)
    assert "runs on cpu" in str([sign.found for sign in signs])


def test_a_value_is_computed_on_every_local_device_and_traced() -> None:
    devices = jax.local_devices()
    planes, metadata = observation.traced(lambda: observation.computed(devices))
    found = observation.computed(devices)
    assert [each["on"] for each in found] == [["cpu"]] * len(devices)
    assert {each["value"] for each in found} == {256.0}
    assert sum(planes["/host:CPU"].values()) > 0
    assert not any(name.startswith("/device:") for name in planes)
    assert "tpu_version" not in metadata
