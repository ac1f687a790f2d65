"""Faults of the profiler: regions that close too early, are missing or are misread."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
from jax import profiler

from model.faults import TIMES, Fault

GROUP = "profiler"
fault = partial(Fault, group=GROUP, stages=("profile_runtime",), left_out=(TIMES,))


def _closes_early(original: Any) -> Any:
    class Region(original):
        """A region that is closed when its call returns."""

        def ready(self, function: Any, *arguments: Any) -> Any:
            started = time.perf_counter_ns()
            outputs = function(*arguments)
            self.dispatched_ns = time.perf_counter_ns() - started
            self._annotation.__exit__(None, None, None)
            jax.block_until_ready(outputs)
            self.ready_ns = time.perf_counter_ns() - started
            return outputs

        def __exit__(self, *error: Any) -> None:
            self.around_ns = time.perf_counter_ns() - self._opened_ns

    return Region


def _opened_once(original: Any) -> Any:
    class Region(original):
        """A region that runs while a program is traced, and never again."""

        def __enter__(self) -> Any:
            if self.occurrence == 1:
                return super().__enter__()
            self._opened_ns = time.perf_counter_ns()
            return self

        def __exit__(self, *error: Any) -> None:
            if self.occurrence == 1:
                super().__exit__(*error)
            self.around_ns = time.perf_counter_ns() - self._opened_ns

    return Region


def _named_by_its_wrapper(original: Any) -> Any:
    class Region(original):
        """A region that is opened by what wraps it."""

        def __init__(self, name: str, occurrence: int) -> None:
            super().__init__(name, occurrence)

    return Region


def _host_not_traced(original: Callable[[Path], None]) -> Any:
    def start(folder: Path) -> None:
        options = profiler.ProfileOptions()
        options.host_tracer_level = 0
        options.python_tracer_level = 0
        profiler.start_trace(str(folder), profiler_options=options)

    return start


def _unit_misread(original: Callable[..., list[Any]]) -> Any:
    def read_regions(*arguments: Any) -> list[Any]:
        return [
            replace(region, ready_ns=region.ready_ns // 1000)
            for region in original(*arguments)
        ]

    return read_regions


FAULTS = (
    fault(
        name="annotation-closes-before-completion",
        summary="A region is closed when its call returns, before its result is ready.",
        source="jax-ml/jax#1219",
        claim="4.7",
        replaces="model.tracing.Region",
        replacement=_closes_early,
    ),
    fault(
        name="annotation-inside-jit",
        summary="A region runs while its program is traced, and never again.",
        source="jax-ml/jax#12381",
        claim="4.7",
        replaces="model.tracing.Region",
        replacement=_opened_once,
    ),
    fault(
        name="host-tracer-off",
        summary="The trace is recorded without the events of the host.",
        source="jax-ml/jax#11930",
        claim="4.7",
        replaces="model.tracing.start",
        replacement=_host_not_traced,
    ),
    fault(
        name="trace-unit-misread",
        summary="Durations of the trace are read in a unit a thousand times too large.",
        source="triton-lang/triton#7663",
        claim="4.7",
        replaces="model.checks.tracing.read_regions",
        replacement=_unit_misread,
    ),
    fault(
        name="region-named-by-its-wrapper",
        summary="A region names the line of what wraps it, not of what opened it.",
        source="flairNLP/flair#3170",
        claim="4.7",
        replaces="model.tracing.Region",
        replacement=_named_by_its_wrapper,
    ),
)
