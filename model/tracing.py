"""Named regions in a profiler trace, each around one call and the wait for its result.

A region is closed only when its result is ready, and says in the trace itself which
code line opened it. It must stand outside of compiled code: inside, it would run while
tracing and never again.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import jax
from jax import profiler

TRAINING_UPDATE = "text-training-update"
PREFILL = "text-prefill"
CACHED_DECODE = "text-cached-decode"
REGIONS = (TRAINING_UPDATE, PREFILL, CACHED_DECODE)
# A call whose result takes a known time: the others may be ready when they return.
SLOW_RESULT = "text-slow-result"
DISPATCH_SUFFIX = "/dispatch"

_PROJECT = Path(__file__).resolve().parents[1]


class Region:
    """One occurrence of a region: ``with Region(name, 1) as r: out = r.ready(f, x)``.

    Attributes:
        name: One of ``REGIONS``.
        occurrence: Number of the occurrence, from 1.
        code_file: File of the line that opened the region, relative to the project.
        code_line: Its number.
        dispatched_ns: Time until the call returned, by ``time.perf_counter_ns``.
        ready_ns: Time until every output was ready.
        around_ns: Time from before the region was opened until after it was closed.
            What the machine does between a clock and an edge of the region lies
            within it, and is no part of ``ready_ns``.
    """

    def __init__(self, name: str, occurrence: int) -> None:
        caller = sys._getframe(1)
        self.name = name
        self.occurrence = occurrence
        file = Path(caller.f_code.co_filename).resolve()
        self.code_file = file.relative_to(_PROJECT).as_posix()
        self.code_line = caller.f_lineno
        self.dispatched_ns = 0
        self.ready_ns = 0
        self.around_ns = 0
        self._opened_ns = 0
        self._annotation = profiler.TraceAnnotation(
            name,
            occurrence=occurrence,
            code_file=self.code_file,
            code_line=self.code_line,
        )

    def __enter__(self) -> Self:
        """Opens the region."""
        self._opened_ns = time.perf_counter_ns()
        self._annotation.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the region."""
        self._annotation.__exit__(kind, error, traceback)
        self.around_ns = time.perf_counter_ns() - self._opened_ns

    def ready(self, function: Any, *arguments: Any) -> Any:
        """The outputs of a call, once they are ready; dispatch and wait are timed."""
        started = time.perf_counter_ns()
        dispatch = f"{self.name}{DISPATCH_SUFFIX}"
        with profiler.TraceAnnotation(dispatch, occurrence=self.occurrence):
            outputs = function(*arguments)
        self.dispatched_ns = time.perf_counter_ns() - started
        jax.block_until_ready(outputs)
        self.ready_ns = time.perf_counter_ns() - started
        return outputs


def start(folder: Path) -> None:
    """Starts a trace into a folder, small enough to keep whole.

    The Python tracer writes thousands of events a second, and the lowered programs are
    ten times the size of the events; the artifacts of the release hold them already.
    """
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 2
    options.enable_hlo_proto = False
    profiler.start_trace(str(folder), profiler_options=options)


def stop(folder: Path) -> Path:
    """Ends the trace and returns its one ``*.xplane.pb`` file."""
    profiler.stop_trace()
    (file,) = folder.rglob("*.xplane.pb")
    return file
