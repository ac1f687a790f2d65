"""Asks the machine whether the target is really there, and refuses anything else.

All signs are kept, whatever they say: with the launcher's nonce, the digest of the code
that ran here, devices, versions and environment they are the evidence of a target, or
of what is missing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from model.config import TargetConfig, from_dict
from model.folders import source_sha256
from model.programs import entry
from model.refusal import ReasonCode, Refused
from model.target_observation import observe
from model.target_result import OBSERVED
from model.target_signs import Sign, signs_of, target_platform

CODE = Path(__file__).resolve().parents[1]


def main(request: dict[str, Any], out: Path) -> None:
    """Writes what was found; refuses where a sign is missing.

    Args:
        request: ``target`` (settings), ``nonce`` and ``code_sha256`` (what the
            launcher demands), ``case``.
        out: Result folder.

    Raises:
        Refused: code_mismatch for other code than demanded, platform_mismatch for
            another platform, target_absent when the expected one cannot start or a
            sign of it is missing.
    """
    target = from_dict(TargetConfig, request["target"])
    demanded = request.get("code_sha256", "")
    found = source_sha256(CODE)
    require_code(demanded, found)
    platform = target_platform(target.platform)
    observed = observe(platform) | {
        "platform": target.platform,
        "accelerator": target.accelerator,
        "nonce": request.get("nonce", ""),
        "code_sha256_demanded": demanded,
        "code_sha256": found,
    }
    signs = signs_of(observed, platform)
    (out / OBSERVED).write_text(json.dumps(observed), "utf-8")
    case = request.get("case", "")
    entry.write_rows(out, "target_answers", [answer_row(case, observed)])
    entry.write_rows(out, "target_signs", sign_rows(case, observed, signs))
    entry.write_rows(out, "target_devices", device_rows(case, observed))
    require_signs(observed, signs)


def require_code(demanded: str, found: str) -> None:
    """Refuses to speak for a launcher that has other code.

    Raises:
        Refused: code_mismatch.
    """
    if demanded and demanded != found:
        raise Refused(
            ReasonCode.CODE_MISMATCH,
            f"the code of this host has the digest {found[:16]} and its launcher "
            f"demands {demanded[:16]}; copy the launcher's folder model here again",
        )


def require_signs(observed: dict[str, Any], signs: list[Sign]) -> None:
    """Refuses where a sign is missing, and says which.

    Raises:
        Refused: target_absent, or platform_mismatch where another platform started.
    """
    missing = [sign for sign in signs if not sign.is_there]
    if not missing:
        return
    told = "; ".join(f"{each.name} is {each.found!r}" for each in missing)
    asked = observed["environment"].get("JAX_PLATFORMS", "")
    if observed["start_error"]:
        raise Refused(
            ReasonCode.TARGET_ABSENT,
            f"platform {observed['platform']!r} cannot start (JAX_PLATFORMS={asked!r}: "
            f"{observed['start_error']}); run on a host with the chips and their "
            "runtime library",
        )
    others = {each["platform"] for each in observed["devices"]} - {observed["platform"]}
    if observed["default_backend"] != observed["platform"] or others:
        raise Refused(
            ReasonCode.PLATFORM_MISMATCH,
            f"expected platform {observed['platform']!r}, found backend "
            f"{observed['default_backend']!r} with devices "
            f"{[each['kind'] for each in observed['devices']]!r} (JAX_PLATFORMS="
            f"{asked!r}); this is no evidence of the target: set JAX_PLATFORMS to it "
            "on a host that has it",
        )
    raise Refused(
        ReasonCode.TARGET_ABSENT,
        f"target {observed['platform']!r} lacks a sign: {told}; every one of "
        f"{', '.join(sign.name for sign in signs)} is needed: run on a host with the "
        "chips",
    )


def answer_row(case: str, observed: dict[str, Any]) -> dict[str, Any]:
    """What a controller answered, as a row."""
    return {
        "case_name": case,
        "platform": observed["platform"],
        "accelerator": observed["accelerator"],
        "controller": observed["process_index"],
        "controllers": observed["process_count"],
        "hosts": observed.get("hosts", 0),
        "host": observed["host"],
        "process_id": observed["process_id"],
        "nonce": observed["nonce"],
        "code_sha256_demanded": observed["code_sha256_demanded"],
        "code_sha256": observed["code_sha256"],
        "runtime": observed["platform_version"],
        "matmul_precision": observed["matmul_precision"],
        "versions": json.dumps({"python": observed["python"], **observed["versions"]}),
        "environment": json.dumps(observed["environment"]),
        "start_error": observed["start_error"],
    }


def sign_rows(
    case: str, observed: dict[str, Any], signs: list[Sign]
) -> list[dict[str, Any]]:
    """Each sign with what was wanted and what was found, a row each."""
    return [
        {
            "case_name": case,
            "controller": observed["process_index"],
            "platform": observed["platform"],
            "sign": sign.name,
            "is_there": sign.is_there,
            "wanted": sign.wanted,
            "found": sign.found,
        }
        for sign in signs
    ]


def device_rows(case: str, observed: dict[str, Any]) -> list[dict[str, Any]]:
    """Each device that was listed, a row each; a list alone proves nothing."""
    return [
        {
            "case_name": case,
            "controller": observed["process_index"],
            "device": device["id"],
            "platform": device["platform"],
            "kind": device["kind"],
            "process": device["process_index"],
            "coordinates": device["coordinates"],
            "is_local": device["id"] in observed["local_devices"],
        }
        for device in observed["devices"]
    ]


if __name__ == "__main__":
    entry.run(main)
