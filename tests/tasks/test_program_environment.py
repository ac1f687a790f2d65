"""What a controller of a gang finds in its environment."""

import pytest

from tasks.program_environment import controller_environment
from tasks.target_platforms import GPU_FLAGS

MADE_UP = "--xla_force_host_platform_device_count=4"


def test_a_controller_has_no_made_up_devices(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", f"{MADE_UP} --xla_dump_to=dump")
    assert controller_environment("tpu")["XLA_FLAGS"] == "--xla_dump_to=dump"


@pytest.mark.parametrize(("platform", "flags"), [("cuda", GPU_FLAGS), ("cpu", "")])
def test_a_gpu_adds_in_the_same_order_each_time(monkeypatch, platform, flags):
    """Claim 5.3 compares repeated updates of a gang bit by bit."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert controller_environment(platform)["XLA_FLAGS"] == flags


def test_one_host_and_a_gang_of_them_get_the_same_flags():
    from model.programs import qualify_target

    assert qualify_target.GPU_FLAGS == GPU_FLAGS
