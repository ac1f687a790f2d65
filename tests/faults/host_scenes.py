"""Scenes about hosts of a target, and about results that come home.

Hosts are made up and say so; nothing here is evidence of a target.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from model import target_result
from model.refusal import ReasonCode, Refused
from tasks import target_results
from tasks.accelerators import known_accelerator
from tests.faults import Scene, Stage
from tests.synthetic_targets import observed_target

CODE = "c" * 64


def target_host(stage: Stage) -> None:
    """What a host of a GPU answered: its signs, and the launcher's challenge."""
    from model.checks.target_result import Judge
    from model.checks.target_rows import sold_row
    from model.programs.probe_target import answer_row, device_rows, sign_rows

    observed = observed_target("gpu")
    observed |= {"code_sha256": CODE, "code_sha256_demanded": CODE}
    trace = {"planes": observed["trace_planes"], "regions": dict.fromkeys(REGIONS, 5)}
    home = SimpleNamespace(
        observed=observed,
        trace=trace,
        manifest={"nonce": observed["nonce"], "code_sha256": CODE},
        devices=observed["devices"],
    )
    asked = {"nonce": observed["nonce"], "code_sha256": CODE}
    stage.spoil(home)
    judge = Judge.__new__(Judge)
    judge.observed, judge.trace, judge.manifest = observed, home.trace, home.manifest
    judge.request = asked
    judge.found = _signs(observed)
    stage.record("qualify_target", "measurements", *judge.signs())
    stage.record("qualify_target", "comparisons", *judge.challenge())
    sold = known_accelerator("nvidia-h200").sold()
    stage.record("qualify_target", "target_accelerators", sold_row(sold))
    stage.record("qualify_target", "target_answers", answer_row("", observed))
    stage.record(
        "qualify_target", "target_signs", *sign_rows("", observed, judge.found)
    )
    listed = {**observed, "devices": home.devices}
    stage.record("qualify_target", "target_devices", *device_rows("", listed))


REGIONS = ("text-training-update", "text-prefill", "text-cached-decode")


def _signs(observed: dict[str, Any]) -> list[Any]:
    from model import target_signs

    return target_signs.signs_of(observed, target_signs.PLATFORMS["gpu"])


def probe(stage: Stage) -> None:
    """A host that has no target, asked for one."""
    from model.checks.rows import refusal
    from model.programs import probe_target

    observed = observed_target("gpu")
    observed |= {
        "default_backend": "cpu",
        "devices": [
            {**observed["devices"][0], "platform": "cpu", "kind": "cpu"},
        ],
        "computed": [{"on": ["cpu"], "value": 256.0}],
        "environment": {},
    }
    signs = _signs(observed)
    stage.record(
        "qualify_tpu",
        "refusals",
        refusal(
            "5.6",
            "target_refused",
            "platform_unset",
            ReasonCode.PLATFORM_MISMATCH,
            lambda: probe_target.require_signs(observed, signs),
        ),
        refusal(
            "5.6",
            "target_refused",
            "other_code",
            ReasonCode.CODE_MISMATCH,
            lambda: probe_target.require_code("0" * 64, CODE),
        ),
    )


def results(stage: Stage) -> None:
    """Folders as they might come home from a target."""

    def opened(name: str, change: Any, **described: Any) -> str:
        folder = stage.folder / name
        for step in target_result.STEPS:
            (folder / step).mkdir(parents=True)
        observed = {**observed_target("gpu"), "is_synthetic": False}
        (folder / "probe" / "observed.json").write_text(json.dumps(observed))
        program = {"runtime": {"platform": "gpu"}}
        (folder / "trained" / "program.json").write_text(json.dumps(program))
        manifest = {
            "code_sha256": target_results.code_sha256(),
            "platform": "gpu",
            "accelerator": "nvidia-h200",
            "nonce": observed["nonce"],
            "preset": "fixture",
            "model": {},
            "train": {},
            "is_release_given": False,
            "is_rehearsal": False,
            "is_synthetic": False,
            "stopped_at": "",
            "stopped_because": "",
            "steps": {step: {} for step in target_result.STEPS},
        }
        target_result.write_manifest(folder, {**manifest, **described})
        if change is not None:
            change(folder)
        try:
            target_results.open_result(folder).require_target()
        except Refused as refused:
            return str(refused.code)
        return "taken in"

    cases = dict(_results(opened))
    stage.promise("9.7", "results", **cases)


def _results(opened: Any) -> Iterator[tuple[str, tuple[str, str]]]:
    def alter(folder: Path) -> None:
        path = folder / "trained" / "program.json"
        path.write_text(path.read_text() + " ")

    def add(folder: Path) -> None:
        (folder / "endpoints" / "logits.npz").write_bytes(b"x")

    mismatch = "platform_mismatch"
    yield "whole", ("taken in", opened("whole", None))
    yield "altered", ("artifact_altered", opened("altered", alter))
    yield "added", ("artifact_altered", opened("added", add))
    yield (
        "stopped",
        ("artifact_metadata_mismatch", opened("stopped", None, stopped_at="killed")),
    )
    yield "of_a_cpu", (mismatch, opened("of_a_cpu", None, platform="cpu"))
    yield "synthetic", (mismatch, opened("synthetic", None, is_synthetic=True))
    yield (
        "other_code",
        ("code_mismatch", opened("other_code", None, code_sha256="0" * 64)),
    )


SCENES = tuple(
    Scene(name=play.__name__, play=play) for play in (target_host, probe, results)
)
