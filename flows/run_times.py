"""Where the time of a run went, put together from what its stages tell.

All readings are of the monotonic clock of this process; what comes out are nanoseconds.
"""

import time
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from prefect.context import FlowRunContext

from tasks import progress
from tasks.clock import HASHING, KEY, PARTS, PROGRAMS, RECORDING
from warehouse.running import process_age_ns

Interval = tuple[int, int]

_runs_of_this_process = 0


class RunTimes:
    """The times of one run and of its stages."""

    def __init__(self) -> None:
        """Notes when the run began: with its process, where that ran none before."""
        global _runs_of_this_process
        now_ns = time.monotonic_ns()
        age_ns = None if _runs_of_this_process else process_age_ns()
        _runs_of_this_process += 1
        self._began_ns = now_ns - (_flow_age_ns() if age_ns is None else age_ns)
        self._entered_ns: dict[str, int] = {}
        self._ended_ns: dict[str, int] = {}
        self._after: dict[str, set[UUID]] = {}
        self._stages: dict[UUID, str] = {}
        self._spans: dict[tuple[str, str], list[Interval]] = {}
        self._ready_ns = now_ns

    def hear(self, stage: str, event: dict[str, Any]) -> None:
        """Notes when a stage begins, and each span of time that it spends."""
        kind = event.get("event")
        if kind == progress.ENTERED:
            self._entered_ns[stage] = time.monotonic_ns()
            self._after[stage] = event["after"]
            self._stages[event["task_run_id"]] = stage
        elif kind == progress.SPENT:
            span = (event["started_ns"], event["ended_ns"])
            self._spans.setdefault((stage, event["part"]), []).append(span)

    def end(self, stage: str) -> int:
        """Notes that a stage has ended, and returns how long it took."""
        now_ns = time.monotonic_ns()
        self._ended_ns[stage] = now_ns
        return now_ns - self._entered_ns.get(stage, now_ns)

    def parts(self, stage: str) -> dict[str, int | None]:
        """Returns the parts of the time of a stage that has ended, by column."""
        if stage not in self._entered_ns:
            return {}
        spent = exclusive(self._spans.get((stage, part), ()) for part in PARTS)
        of_part = dict(zip(PARTS, spent, strict=True))
        awaited = [self._stages.get(each) for each in self._after[stage]]
        ends = [self._ended_ns.get(name or "", 0) for name in awaited]
        ready_ns = max(self._ready_ns, *ends, 0)
        return {
            "waiting_ns": max(self._entered_ns[stage] - ready_ns, 0),
            "program_ns": of_part[PROGRAMS],
            "recording_ns": of_part[RECORDING],
            "hashing_ns": of_part[HASHING],
            "key_ns": of_part[KEY],
        }

    def of_run(self) -> dict[str, int | None]:
        """Returns the times of the run until now, by column."""
        now_ns = time.monotonic_ns()
        entered, ended = self._entered_ns.values(), self._ended_ns.values()
        return {
            "elapsed_ns": now_ns - self._began_ns,
            "starting_ns": min(entered) - self._began_ns if entered else None,
            "ending_ns": now_ns - max(ended) if ended else None,
        }


def exclusive(parts: Iterable[Iterable[Interval]]) -> list[int]:
    """Returns the length of each part, without what an earlier part covers already.

    Args:
        parts: The intervals of each part, start and end, in any order.
    """
    covered: list[Interval] = []
    lengths = []
    for intervals in parts:
        before = _length(covered)
        covered = _merged([*covered, *intervals])
        lengths.append(_length(covered) - before)
    return lengths


def _merged(intervals: list[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _length(merged: list[Interval]) -> int:
    return sum(end - start for start, end in merged)


def _flow_age_ns() -> int:
    """Returns how long ago Prefect began the flow; 0 outside of one."""
    context = FlowRunContext.get()
    if context is None:
        return 0
    return max(time.time_ns() - int(context.start_time.timestamp() * 1e9), 0)
