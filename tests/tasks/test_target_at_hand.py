"""A machine that has the target still has a platform that it has not."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from model.config import TargetConfig
from tasks import qualify_tpu
from tasks.errors import ProgramRefused
from tasks.target_platforms import STARTS_AS
from warehouse.records.claims import Refusal
from warehouse.records.targets import TargetDevice

CODES = {
    "platform_unset": "platform_mismatch",
    "platform_expected": "target_absent",
    "other_code": "code_mismatch",
}


class Machine:
    """What stands for the working side of a stage, on a machine with a platform."""

    def __init__(self, platform: str, *, is_fooled: bool = False) -> None:
        self.platform = platform
        self.is_fooled = is_fooled
        self.records: list[Any] = []

    def run(self, program: str, request: Any, environment: Any, **options: Any) -> None:
        """Probes as the program does; one that is fooled finds whatever is asked."""
        asked, case = request["target"]["platform"], request["case"]
        started = environment["JAX_PLATFORMS"]
        is_own = started in ("", STARTS_AS.get(self.platform))
        device = self.platform if is_own else "cpu"
        is_there = asked == device and asked in STARTS_AS
        if not (self.is_fooled or is_there) or case == "other_code":
            code = CODES.get(case.partition("/")[0], "platform_mismatch")
            raise ProgramRefused(code, f"no {asked}", SimpleNamespace())
        found = TargetDevice(
            case_name=case,
            controller=0,
            device=0,
            platform=device,
            kind="made up",
            process=0,
            coordinates="[]",
            is_local=True,
        )
        self.records.append(found)

    def gather(self, run: Any) -> None:
        """Keeps nothing."""

    def record(self, *rows: Any) -> None:
        """Keeps rows."""
        self.records += rows


@pytest.fixture
def refusals() -> Callable[..., dict[str, Refusal]]:
    def ask(machine: Machine, platform: str) -> dict[str, Refusal]:
        accelerator = {"tpu": "v5litepod-4", "gpu": "nvidia-h200"}[platform]
        target = TargetConfig(platform=platform, accelerator=accelerator)
        work: Any = machine
        qualify_tpu._ask_for_the_target(work, target, None)
        rows = [row for row in machine.records if isinstance(row, Refusal)]
        return {row.case_name: row for row in rows}

    return ask


@pytest.mark.parametrize(("platform", "other"), [("tpu", "gpu"), ("gpu", "tpu")])
def test_where_the_target_is_another_platform_is_refused_in_its_place(
    platform: str, other: str, refusals: Callable[..., dict[str, Refusal]]
) -> None:
    found = refusals(Machine(platform), platform)
    assert {f"platform_unset/{other}", f"platform_expected/{other}"} < set(found)
    assert all(row.received_reason == row.expected_reason for row in found.values())
    assert len(found) == 7


def test_where_no_target_is_it_is_refused_itself(
    refusals: Callable[..., dict[str, Refusal]],
) -> None:
    found = refusals(Machine("cpu"), "tpu")
    assert {"platform_unset", "platform_expected"} < set(found)
    assert all(row.received_reason == row.expected_reason for row in found.values())


def test_a_probe_that_takes_a_cpu_for_the_target_is_not_asked_for_another(
    refusals: Callable[..., dict[str, Refusal]],
) -> None:
    found = refusals(Machine("cpu", is_fooled=True), "tpu")
    assert found["platform_unset"].received_reason is None
    assert found["platform_expected"].received_reason is None
