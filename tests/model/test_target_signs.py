"""Every sign of a target is needed, and none follows from a name."""

import pytest

from model.refusal import Refused
from model.target_signs import PLATFORMS, SIGNS, signs_of, target_platform
from tests.synthetic_targets import IMPLIED, observed_target
from warehouse.contract import read_contract


def missing(observed: dict, platform: str) -> set[str]:
    signs = signs_of(observed, PLATFORMS[platform])
    return {sign.name for sign in signs if not sign.is_there}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_host_that_shows_everything_lacks_no_sign(platform: str) -> None:
    assert missing(observed_target(platform), platform) == set()


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_each_sign_alone_can_be_missing(platform: str, sign: str) -> None:
    lacking = missing(observed_target(platform, without=sign), platform)
    assert lacking == IMPLIED.get(sign, {sign})


def test_the_signs_are_those_that_the_contract_asks_for() -> None:
    (asked,) = [
        item.cases
        for claim in read_contract()
        for item in claim.requirements
        if item.measure == "sign_missing"
    ]
    assert asked == tuple(SIGNS)


def test_the_devices_of_a_topology_alone_are_no_target() -> None:
    """They call themselves TPUs on a machine that has none."""
    observed = observed_target("tpu") | {
        "chips": [],
        "computed": [],
        "trace_planes": {},
        "trace_metadata": {},
    }
    assert missing(observed, "tpu") == {
        *("chips_on_bus", "driver_version"),
        *("computed_devices", "computed_values"),
        *("device_lane", "lane_events"),
    }


def test_a_relabelled_cpu_is_no_target() -> None:
    """Every name says TPU; what no name reaches says otherwise."""
    observed = observed_target("tpu") | {
        "chips": [],
        "trace_planes": {"/host:CPU": {"python": 3}},
        "trace_metadata": {},
    }
    lacking = missing(observed, "tpu")
    assert lacking == {"chips_on_bus", "driver_version", "device_lane", "lane_events"}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_one_target_is_not_another(platform: str) -> None:
    (other,) = set(PLATFORMS) - {platform}
    assert {"default_backend", "device_platforms"} <= missing(
        observed_target(other), platform
    )


def test_a_device_that_computed_nothing_is_noticed() -> None:
    observed = observed_target("gpu") | {"local_devices": [0, 1]}
    assert missing(observed, "gpu") == {"computed_devices"}


def test_where_the_bus_is_hidden_the_driver_may_list_a_gpu_and_no_tpu() -> None:
    hidden = {"chips": [], "driver_devices": ["NVIDIA H200"]}
    assert missing(observed_target("gpu") | hidden, "gpu") == set()
    assert missing(observed_target("tpu") | hidden, "tpu") == {"chips_on_bus"}


def test_a_cpu_that_is_expected_is_still_no_target() -> None:
    with pytest.raises(Refused, match="'cpu' is no target") as refused:
        target_platform("cpu")
    assert refused.value.code == "platform_mismatch"


def test_what_was_found_stands_beside_what_was_wanted() -> None:
    signs = signs_of(observed_target("gpu"), PLATFORMS["gpu"])
    found = {sign.name: sign.found for sign in signs}
    assert found["device_kinds"] == "NVIDIA H200"
    assert found["runtime_library"].startswith("jax-cuda13")
    assert all(sign.found and sign.wanted for sign in signs)
