"""Faults of store, workflow and target are found by what has to find them.

Here a representative of each scene; `python -m tests.faults` tries all.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults import GROUPS, PROMISES, every_fault, every_scene
from tests.faults.judging import FOLDER
from warehouse.contract import read_contract
from warehouse.records.drills import DrilledRequirement, PlantedFault
from warehouse.schema import record_from

# Slow ones (Prefect, real processes with deadlines), and those whose like is there.
LEFT_OUT = {
    *("source_while_running", "gangs", "gang_ends", "programs", "controller_joins"),
    "checkouts",
    *("compared_on_the_same_executions", "compared_without_a_baseline"),
    *("compared_with_a_better_one", "accepted_refuted", "accepted_damaged"),
}


def test_every_fault_is_described_and_its_claim_is_one_that_there_is() -> None:
    faults = every_fault()
    assert len(faults) >= 60
    assert max(Counter(fault.name for fault in faults).values()) == 1
    claims = {claim.id for claim in read_contract()} | set(PROMISES.values())
    for fault in faults:
        assert fault.group in GROUPS
        assert fault.claim in claims
        assert fault.scene in every_scene()
        assert (fault.component is None) != (fault.file is None)
        assert fault.summary.endswith(".")
        assert fault.source
    assert {promise.id for promise in read_contract(FOLDER)} == set(PROMISES)


def test_every_scene_has_a_fault_and_is_asked_for() -> None:
    assert {fault.scene for fault in every_fault()} == set(every_scene())


def tried(folder: Path, faults: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs the program on some faults; what it writes lies in `folder`."""
    folder.mkdir(exist_ok=True)
    request = folder / "request.json"
    request.write_text(json.dumps({"out": str(folder), "faults": faults}))
    return subprocess.run(
        [sys.executable, "-m", "tests.faults", str(request)],
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What every requirement read, by fault: the first of each scene, and benign."""
    faults = [fault for fault in every_fault() if fault.scene not in LEFT_OUT]
    first = {fault.scene: fault for fault in reversed(faults) if not fault.is_benign}
    chosen = [*first.values(), *(fault for fault in faults if fault.is_benign)]
    names = [fault.name for fault in chosen]
    folder = tmp_path_factory.mktemp("faults")
    done = tried(folder, names)
    assert done.returncode == 0, done.stderr
    planted, rows = (
        [record_from(record, row) for row in json.loads(file.read_text())]
        for record in (PlantedFault, DrilledRequirement)
        for file in [folder / "records" / f"{record.TABLE}.json"]
    )
    assert [row.fault for row in planted] == names
    by_fault: dict[str, list[Any]] = {name: [] for name in ("", *names)}
    for row in rows:
        by_fault[row.fault].append(row)
    return by_fault


def test_without_a_fault_every_scene_reads_as_it_should(found) -> None:
    for row in found[""]:
        assert (row.rows_unmet, row.rows_missing, row.failure) == (0, 0, ""), row
        assert row.rows_met > 0


def test_a_fault_is_found_by_its_claim_and_a_benign_one_by_none(found) -> None:
    faults = {fault.name: fault for fault in every_fault()}
    for name, rows in found.items():
        if not name:
            continue
        noticed = {row.claim for row in rows if row.rows_unmet or row.rows_missing}
        assert not any(row.failure for row in rows), name
        if faults[name].is_benign:
            assert noticed == set(), name
        else:
            assert faults[name].claim in noticed, name


def test_an_unknown_fault_is_refused(tmp_path: Path) -> None:
    done = tried(tmp_path, ["no-such"])
    assert done.returncode == 2
    assert "no-such" in done.stderr
