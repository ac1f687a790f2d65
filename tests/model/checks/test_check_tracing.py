"""Regions are counted in a real trace, and broken annotations are told apart."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import profiler

from model import tracing
from model.checks import tracing as checks
from model.faults import find
from model.tracing import REGIONS, Region

PRODUCT = jax.jit(lambda x: x @ x)
SIDE = 700


@pytest.fixture(scope="module")
def matrix() -> jax.Array:
    """Large enough that the wait is far longer than the dispatch."""
    ones = jnp.ones((SIDE, SIDE), jnp.float32)
    return jax.block_until_ready(PRODUCT(ones))


def _traced(folder: Path, work: Callable[[], Any]) -> tuple[Path, Any]:
    tracing.start(folder)
    try:
        result = work()
    finally:
        file = tracing.stop(folder)
    return file, result


def _values(rows: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    return {
        (row["measure"], row["case_name"]): row["value_count"]
        if row["value_count"] is not None
        else row["value_real"]
        for row in rows
    }


def test_five_regions_of_each_kind_are_found_in_the_trace_itself(
    tmp_path: Path, matrix: jax.Array
) -> None:
    def work() -> list[Region]:
        ran = []
        for number in range(1, 6):
            for name in REGIONS:
                with Region(name, number) as region:
                    region.ready(PRODUCT, matrix)
                ran.append(region)
        return ran

    file, ran = _traced(tmp_path, work)
    traced = checks.read_regions(file)
    values = _values(checks.check_trace(traced, ran))
    for name in REGIONS:
        assert values["regions_in_trace", name] == 5
        assert values["distinct_regions", name] == 5
        assert values["smallest_trace_over_clock", name] > 0.5
        assert values["largest_trace_over_clock", name] < 2
        assert values["fewest_operations_inside", name] >= 1
        assert values["regions_named_elsewhere", name] == 0
        assert values["host_ns", name] <= values["ready_ns", name]
    (line,) = {row["code_line"] for row in checks.region_rows(traced)}
    assert (
        Path(__file__)
        .read_text()
        .splitlines()[line - 1]
        .strip()
        .startswith("with Region(name, number)")
    )
    assert {row["code_file"] for row in checks.region_rows(traced)} == {
        "tests/model/checks/test_check_tracing.py"
    }


def test_a_region_that_names_the_line_of_its_wrapper_is_seen(tmp_path: Path) -> None:
    wrapped = find("region-named-by-its-wrapper").replacement(Region)

    def work() -> list[Region]:
        with wrapped(REGIONS[1], 1) as region:
            region.ready(PRODUCT, jnp.ones((2, 2), jnp.float32))
        return [region]

    file, ran = _traced(tmp_path, work)
    values = _values(checks.check_trace(checks.read_regions(file), ran))
    assert values["regions_named_elsewhere", REGIONS[1]] == 1


def test_a_region_inside_compiled_code_is_missing(
    tmp_path: Path, matrix: jax.Array
) -> None:
    """It runs while tracing, once at most, and never when the program runs."""

    @jax.jit
    def annotated(x: jax.Array) -> jax.Array:
        with profiler.TraceAnnotation(REGIONS[0], occurrence=1):
            return x @ x

    jax.block_until_ready(annotated(matrix))

    def work() -> None:
        for _ in range(5):
            jax.block_until_ready(annotated(matrix))

    file, _ = _traced(tmp_path, work)
    assert len(checks.read_regions(file)) < 5


def test_a_machine_that_stops_at_the_edge_of_a_region_changes_no_verdict(
    tmp_path: Path, matrix: jax.Array
) -> None:
    """A sleep between edge and clock stands in for a busy machine."""

    def work() -> list[Region]:
        with Region(REGIONS[1], 1) as region:
            time.sleep(0.2)
            region.ready(PRODUCT, matrix)
        assert region.ready_ns < 100_000_000
        return [region]

    file, ran = _traced(tmp_path, work)
    values = _values(checks.check_trace(checks.read_regions(file), ran))
    assert values["smallest_trace_over_clock", REGIONS[1]] > 1
    assert values["largest_trace_over_clock", REGIONS[1]] < 2


def test_a_region_that_closes_before_the_result_is_too_short(tmp_path: Path) -> None:
    """A sleep stands in for a wait after the region; its length is known."""

    def work() -> list[Region]:
        region = Region(REGIONS[1], 1)
        started = time.perf_counter_ns()
        with region:
            pass
        time.sleep(0.2)
        region.ready_ns = time.perf_counter_ns() - started
        return [region]

    file, ran = _traced(tmp_path, work)
    values = _values(checks.check_trace(checks.read_regions(file), ran))
    assert values["smallest_trace_over_clock", REGIONS[1]] < 0.5
    assert values["regions_in_trace", REGIONS[0]] == 0
