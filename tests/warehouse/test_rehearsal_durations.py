"""How long a rehearsal took, part by part: SQL reads it off the processes."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.store_maker import StoreMaker
from warehouse.records.execution import ProgramExecution

CONTROLLER = "model.programs.train_controller"


def ran(
    label: str, started: float, seconds: float, program: str = CONTROLLER
) -> ProgramExecution:
    return ProgramExecution(
        program=program,
        label=label,
        process_id=1,
        host="made-up",
        started_at=f"2026-01-01T00:00:{started:012.9f}Z",
        duration_ns=int(seconds * 1e9),
        peak_memory_bytes=None,
        return_code=0,
    )


def test_a_rehearsal_lasts_from_its_first_process_to_its_last(
    made: StoreMaker, opened: Callable[[], Any]
) -> None:
    """Processes of a gang overlap; neither the probes nor another stage count."""
    made.execute(
        "qualify_tpu",
        [
            ran("platform_cpu", 0, 50, "model.programs.probe_target"),
            ran("alone split, controller 0", 1, 2),
            ran("trained, controller 0", 3.5, 4),
            ran("trained, controller 1", 3.25, 4),
            ran("compared", 8, 0.5, "model.programs.compare_controllers"),
        ],
    )
    made.execute("train_model", [ran("trained, controller 0", 0, 50)])
    made.run("20260102-030405-aaaaaa")
    asked = "select part, processes, seconds, process_seconds from rehearsal_durations"
    found = opened().execute(asked).fetchall()
    assert {part: numbers for part, *numbers in found} == {
        "alone split": [1, pytest.approx(2), pytest.approx(2)],
        "trained": [2, pytest.approx(4.25), pytest.approx(8)],
        "compared": [1, pytest.approx(0.5), pytest.approx(0.5)],
        "all": [4, pytest.approx(7.5), pytest.approx(10.5)],
    }
