"""The bench measures what it says: time, memory, and the exit of a command."""

import os
import sys
from pathlib import Path

import pytest

from tests.bench.measure import BenchFailed, measure, peak_of_process
from tests.bench.plain_dag import PlainWork
from warehouse.store import Execution


def test_time_memory_and_output_are_those_of_the_command() -> None:
    """A child that holds 200 MiB and sleeps cannot be measured as less."""
    code = "import time; held = bytearray(200 * 2**20); time.sleep(0.2); print('done')"
    measured = measure([sys.executable, "-c", code], os.environ)
    assert measured.output == "done\n"
    assert measured.seconds >= 0.2
    assert measured.peak_memory_bytes >= 200 * 2**20


def test_a_command_that_fails_gives_no_measurement() -> None:
    code = "print('what went wrong'); raise SystemExit(2)"
    with pytest.raises(BenchFailed, match="ended with 2:\nwhat went wrong"):
        measure([sys.executable, "-c", code], os.environ)


def test_peak_memory_of_a_process_is_at_least_what_it_holds() -> None:
    held = bytearray(50 * 2**20)
    peak = peak_of_process(os.getpid())
    assert peak is None or peak >= len(held)
    assert peak_of_process(2**22 + 1) is None


def test_plain_work_hands_on_files_by_content_and_keeps_no_rows(tmp_path: Path) -> None:
    made = tmp_path / "made.npz"
    made.write_bytes(b"content")
    files: dict[str, Path] = {}
    work = PlainWork("train_model", tmp_path / "plain", files)
    work.record("a row")
    work.keep(made, "parameters.npz")
    execution = Execution(
        stage="train_model",
        key="k",
        nonce="n",
        artifacts=tuple(work.artifacts.values()),
    )
    made.write_bytes(b"changed later")
    fetched = work.fetch(execution, "parameters.npz")
    assert Path(fetched["parameters.npz"]).read_bytes() == b"content"


def test_a_figure_with_a_limit_says_whether_it_keeps_it() -> None:
    from tests.bench.__main__ import LIMITS, against_limit

    for name, limit in LIMITS.items():
        assert against_limit(name, limit) == f"   within {limit:g}"
        assert against_limit(name, limit * 1.01) == f"   ABOVE {limit:g}"
    assert against_limit("first_run_ratio", 9.0) == ""


def test_a_store_of_many_runs_is_one_that_the_loader_accepts(tmp_path: Path) -> None:
    """A made-up store with damage would be opened quickly, and measure nothing."""
    from tests.bench.many_runs import made_up, write_store
    from warehouse.load import open_warehouse

    stages = ("evaluate_heldout", "profile_runtime")
    write_store(tmp_path, [made_up(stage) for stage in stages], 20)
    names = ["damage", "runs", "claim_trends", "timing_trends", "failures_by_cause"]
    with open_warehouse(tmp_path, names=names) as connection:
        found = [len(connection.execute(f"from {name}").fetchall()) for name in names]
    assert found[:2] == [0, 20]
    assert min(found[2:]) > 0
