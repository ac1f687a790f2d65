"""What a profiler trace holds, read from the trace itself.

The ``.xplane.pb`` file is read and not the JSON beside it, which stops at a million
events without a word. Counts and durations come from the file; the program's own clock
only says whether the unit was read right.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jax.profiler import ProfileData

from model.checks import rows
from model.checks.timing import STUB_WAIT_NS
from model.tracing import DISPATCH_SUFFIX, REGIONS, Region

_PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class TracedRegion:
    """One occurrence of a region as the trace has it."""

    name: str
    occurrence: int
    started_ns: int
    """Start in the trace's own clock."""
    ready_ns: int
    """Time until the result was ready, in nanoseconds."""
    dispatched_ns: int
    """Time until the call returned; 0 when the trace has no such event."""
    operations: int
    """Events of compiled operations that began inside the region."""
    code_file: str
    code_line: int


def read_regions(file: Path, names: Sequence[str] = REGIONS) -> list[TracedRegion]:
    """Every occurrence of the named regions in a trace, in order of time.

    Args:
        file: A ``*.xplane.pb`` file.
        names: Names of regions.
    """
    wanted = {*names, *(f"{name}{DISPATCH_SUFFIX}" for name in names)}
    opened: list[tuple[str, int, int, dict[str, Any]]] = []
    dispatched: dict[tuple[str, int], int] = {}
    operations: list[int] = []
    for event in _events(file):
        name = event.name.partition("#")[0]
        if name in wanted:
            stats = dict(event.stats)
            duration, start = int(event.duration_ns), int(event.start_ns)
            if name in names:
                opened.append((name, start, duration, stats))
            else:
                key = name.removesuffix(DISPATCH_SUFFIX), int(stats["occurrence"])
                dispatched[key] = duration
        elif any(key == "hlo_op" for key, _ in event.stats):
            operations.append(int(event.start_ns))
    return [
        TracedRegion(
            name=name,
            occurrence=int(stats["occurrence"]),
            started_ns=start,
            ready_ns=duration,
            dispatched_ns=dispatched.get((name, int(stats["occurrence"])), 0),
            operations=sum(start <= each < start + duration for each in operations),
            code_file=str(stats["code_file"]),
            code_line=int(stats["code_line"]),
        )
        for name, start, duration, stats in sorted(opened, key=lambda each: each[1])
    ]


def _events(file: Path) -> Iterable[Any]:
    for plane in ProfileData.from_file(str(file)).planes:
        for line in plane.lines:
            yield from line.events


def check_slow_region(traced: Sequence[TracedRegion]) -> rows.Row:
    """Claim 4.7: a region holds the wait for a result that is not ready at once.

    Args:
        traced: The occurrences of `SLOW_RESULT` in the trace.
    """
    longest = max((each.ready_ns for each in traced), default=0)
    detail = f"a result that is ready {STUB_WAIT_NS} ns after the call"
    measure = "region_includes_wait_ns"
    return rows.count("4.7", measure, "", longest, "nanoseconds", detail)


def region_rows(traced: Sequence[TracedRegion]) -> list[rows.Row]:
    """Rows of ``trace_regions``, one an occurrence in the trace."""
    return [
        {
            "region": each.name,
            "occurrence": each.occurrence,
            "host_ns": each.dispatched_ns,
            "ready_ns": each.ready_ns,
            "operations": each.operations,
            "code_file": each.code_file,
            "code_line": each.code_line,
        }
        for each in traced
    ]


def check_trace(
    traced: Sequence[TracedRegion], ran: Sequence[Region]
) -> list[rows.Row]:
    """Claim 4.7: regions counted in the trace, and its times against the clock's.

    Args:
        traced: What the trace holds.
        ran: The regions as the program ran them.

    Returns:
        Rows of ``measurements``.
    """
    found = []
    clocked = {(each.name, each.occurrence): each for each in ran}
    for name in REGIONS:
        own = [each for each in traced if each.name == name]
        numbers = {each.occurrence for each in own}
        found += [
            rows.count("4.7", "regions_in_trace", name, len(own), "regions"),
            rows.count("4.7", "distinct_regions", name, len(numbers), "regions"),
        ]
        if not own:
            continue
        # A machine that is busy may stop between a clock and an edge of the region, so
        # the trace lies between two clocks: one inside of the region, one around it.
        pairs = [
            (each.ready_ns, clocked[name, each.occurrence])
            for each in own
            if (name, each.occurrence) in clocked
        ]
        inside = [traced_ns / region.ready_ns for traced_ns, region in pairs]
        around = [traced_ns / region.around_ns for traced_ns, region in pairs]
        fewest = min(each.operations for each in own)
        last = own[-1]
        line = f"{last.code_file}:{last.code_line}"
        wrong = sum(not _opens_a_region(each) for each in own)
        found += [
            rows.real("4.7", "smallest_trace_over_clock", name, min(inside), "1"),
            rows.real("4.7", "largest_trace_over_clock", name, max(around), "1"),
            rows.count("4.7", "fewest_operations_inside", name, fewest, "operations"),
            rows.count("4.7", "regions_named_elsewhere", name, wrong, "regions", line),
            rows.count("4.7", "host_ns", name, last.dispatched_ns, "nanoseconds", line),
            rows.count("4.7", "ready_ns", name, last.ready_ns, "nanoseconds", line),
        ]
    return found


def _opens_a_region(traced: TracedRegion) -> bool:
    """Whether the line that the trace names is one where a region is opened."""
    line = linecache.getline(str(_PROJECT / traced.code_file), traced.code_line)
    return re.search(r"\bwith Region\(", line) is not None
