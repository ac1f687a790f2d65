"""Scenes about all hosts of a slice: who answered, what was restored, what is shown.

Hosts are made up and say so; nothing here is evidence of a target.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from model.config import to_dict
from model.presets import fixture
from model.target_result import (
    GANGS,
    KILLED_CODE,
    RESTORED_UPDATE,
    SLICE_TRAININGS,
    TRAINED_UPDATES,
    nonce_of,
    part,
)
from tests.faults import Scene, Stage
from tests.faults.made_stores import asked, new_store, number, rule
from tests.slice_results import HOSTS, SOLD, observed_host, places
from warehouse.records.targets import TargetTiming

CODE, NONCE = "c" * 64, "d" * 32
TRAINED, RESTARTED = GANGS
REGIONS = {
    "regions": dict.fromkeys(
        ("text-training-update", "text-prefill", "text-cached-decode"), 5
    )
}
WRITTEN = {"update-000002": True, "update-000004": True, "update-000006": False}


def target_slice(stage: Stage) -> None:
    """Two hosts of a slice: their answers, and the states that they held."""
    from model.checks.slice_result import SliceJudge
    from model.checks.target_rows import sold_row
    from model.programs.probe_target import answer_row, device_rows, sign_rows

    for place in places():
        _host(stage.folder / part(*place), *place)
    stage.spoil(stage.folder)
    config = fixture()
    manifest = {
        "model": to_dict(config.model),
        "train": to_dict(config.train),
        "nonce": NONCE,
        "code_sha256": CODE,
        "written": WRITTEN,
    }
    request = {
        "nonce": NONCE,
        "code_sha256": CODE,
        "accelerator": SOLD,
        "released_sha256": "",
        **{name: manifest[name] for name in ("model", "train")},
    }
    judge = SliceJudge(stage.folder, manifest, request, SimpleNamespace())  # type: ignore[arg-type]
    numbers = [*judge.signs(), *judge.silences(), *judge.choices()]
    stage.record("qualify_target", "measurements", *numbers)
    compared = [*judge.challenge(), *judge.restart()]
    stage.record("qualify_target", "comparisons", *compared)
    stage.record("qualify_target", "target_accelerators", sold_row(SOLD))
    for gang, observed, signs in judge.answers():
        stage.record("qualify_target", "target_answers", answer_row(gang, observed))
        rows = sign_rows(gang, observed, signs)
        stage.record("qualify_target", "target_signs", *rows)
        listed = device_rows(gang, observed)
        stage.record("qualify_target", "target_devices", *listed)


def _host(folder: Path, gang: str, number: int) -> None:
    """Writes what one controller of one gang left."""
    nonce = nonce_of(NONCE, gang, number)
    process = {
        "host": f"host-{number}",
        "process_id": 100 + number + 10 * GANGS.index(gang),
        "nonce": nonce,
        "code_sha256": CODE,
    }
    observed = {**observed_host(number), **process, "code_sha256_demanded": CODE}
    answer = {
        "process_index": number,
        "process_count": HOSTS,
        "platform": observed["default_backend"],
        "global_device_count": len(observed["devices"]),
        **process,
    }
    labels = [*SLICE_TRAININGS]
    if gang == RESTARTED:
        labels = [f"repeated {label}" for label in labels]
    made = [(label, 1) for label in labels]
    events: list[dict[str, Any]] = []
    if gang == RESTARTED:
        made.append(("resumed same", RESTORED_UPDATE + 1))
        events.append({"event": "restored", "update": RESTORED_UPDATE})
    rows = [
        {
            "label": label,
            "update": update,
            "nonce": nonce,
            "state_sha256": f"{label.rpartition(' ')[2]}-{update}".replace(
                "same", "split"
            ),
        }
        for label, first in made
        for update in range(first, TRAINED_UPDATES + 1)
    ]
    is_killed = (gang, number) == (TRAINED, HOSTS - 1)
    end = {"return_code": KILLED_CODE if is_killed else 0, "events": events}
    for name, value in (
        ("artifacts/observed.json", observed),
        ("artifacts/answer.json", answer),
        ("records/controller_updates.json", rows),
        ("end.json", end),
        ("artifacts/trace.json", {"planes": observed["trace_planes"], **REGIONS}),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))


def target_times(stage: Stage) -> None:
    """Times of a target, beside claims that are accepted, unmet, or without a row."""
    claims = [rule(f"5.{each}", stage="qualify_target") for each in range(1, 6)]
    time = TargetTiming(
        work="text-prefill",
        release_policy="fp32",
        sample=1,
        process_id=1,
        duration_ns=1000,
        timer="made up",
    )

    def shown(name: str, *values: int) -> str:
        made = new_store(stage.folder, name)
        rows = [number(value, f"5.{each}") for each, value in enumerate(values, 1)]
        made.execute("qualify_target", [*rows, time])
        made.run("run-1")
        query = ("target_timings", "work, samples")
        (found,) = asked(made.store.root, claims, query)
        return ", ".join(work for work, _ in found) or "nothing"

    stage.promise(
        "9.7",
        "target_times",
        accepted=("text-prefill", shown("accepted", 0, 0, 0, 0, 0)),
        unmet=("nothing", shown("unmet", 0, 0, 1, 0, 0)),
        absent=("nothing", shown("absent", 0, 0, 0, 0)),
    )


SCENES = tuple(
    Scene(name=play.__name__, play=play) for play in (target_slice, target_times)
)
