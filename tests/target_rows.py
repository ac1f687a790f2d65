"""Rows about a target, made up, that keep what the contract asks: they never count."""

from collections.abc import Iterable
from typing import Any

from model.target_signs import SIGNS
from warehouse.contract import Requirement, read_contract
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.targets import (
    TargetAccelerator,
    TargetAnswer,
    TargetDevice,
    TargetSign,
)

CONTRACT = read_contract()
TARGET = range(1, 6)
WITHOUT = range(6, 100)
"""Claims of task 5 that need no target."""


def keeping(requirement: Requirement) -> Iterable[Any]:
    """Yields rows that keep a requirement, made up."""
    name = {"claim": requirement.claim, "measure": requirement.measure}
    for case in requirement.cases or ("",):
        for number in range(requirement.required_count):
            part = f"{case}/{number}" if requirement.required_count > 1 else case
            named = {**name, "case_name": part}
            if requirement.relation in ("identical", "different"):
                measured = "a" if requirement.relation == "identical" else "b"
                yield Comparison(
                    **named, expected="a", measured=measured, expected_from="made up"
                )
            elif requirement.relation == "refused":
                code = "target_absent"
                yield Refusal(
                    **named, expected_reason=code, received_reason=code, message="no"
                )
            else:
                value = requirement.limit or 0
                value += requirement.relation == "above"
                kind = "value_count" if isinstance(value, int) else "value_real"
                yield Measurement(**named, unit=requirement.unit, **{kind: value})


def one_host(platform: str) -> list[Any]:
    """Returns what a made-up machine with one device answers, with every sign."""
    return slice_of(platform, 1)


def slice_of(platform: str, hosts: int) -> list[Any]:
    """Returns what made-up machines with a device each answer, with every sign."""
    sold = TargetAccelerator(
        accelerator="made-up",
        platform=platform,
        hosts=hosts,
        devices=hosts,
        kinds="",
        chip="",
    )
    found: list[Any] = [sold]
    for host in range(hosts):
        found += [_answer(platform, host, hosts), *_shown_by(platform, host)]
    return found


def _answer(platform: str, host: int, hosts: int) -> TargetAnswer:
    return TargetAnswer(
        case_name="",
        platform=platform,
        accelerator="made-up",
        controller=host,
        controllers=hosts,
        hosts=hosts,
        host=f"made-up-{host}",
        process_id=1,
        nonce=f"n{host}",
        code_sha256_demanded="c",
        code_sha256="c",
        runtime="made up",
        matmul_precision="highest",
        versions="{}",
        environment="{}",
        start_error="",
    )


def _shown_by(platform: str, host: int) -> Iterable[Any]:
    """Yields the records of a controller with every sign and one device."""
    for sign in SIGNS:
        yield TargetSign(
            case_name="",
            controller=host,
            platform=platform,
            sign=sign,
            is_there=True,
            wanted="made up",
            found="made up",
        )
    yield TargetDevice(
        case_name="",
        controller=host,
        device=host,
        platform=platform,
        kind="made up",
        process=host,
        coordinates="[]",
        is_local=True,
    )
