"""The arrays of the update in which two trainings first part, for index and ulp.

A trace holds digests, because every array of every update would be 14 MB an update for
four blocks of width 128. So a training that is given the trace of another keeps what
differs in the first update in which they part, and nothing where they never do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from model.checks.recovery import Line, digests_of, read_lines
from model.digests import array_sha256, first_difference

Arrays = Mapping[tuple[str, str], ArrayLike]
"""What was digested, by kind and leaf."""
UPDATE = "update"


class Watch:
    """Sets a training beside the trace of another while it runs."""

    def __init__(self, trace: Path, kept: Path) -> None:
        """Starts with nothing kept.

        Args:
            trace: Trace of the other training.
            kept: File for the arrays of the first update in which the two part.
        """
        self._lines = read_lines(trace)
        self._kept = kept
        self._has_parted = False

    def see(self, line: Line, arrays: Callable[[], Arrays]) -> None:
        """Keeps the arrays that differ if this is the first line with a difference.

        Args:
            line: The line of this training's trace.
            arrays: Gives what was digested for it.
        """
        other = self._lines.get(line["update"])
        if self._has_parted or other is None:
            return
        ours, theirs = digests_of(line), digests_of(other)
        # The state that a training starts from has fewer kinds than an update.
        parted = [k for k in ours.keys() & theirs.keys() if ours[k] != theirs[k]]
        if parted:
            self._has_parted = True
            found = arrays()
            kept = {_name(*key): np.asarray(found[key]) for key in sorted(parted)}
            np.savez(self._kept, update=line["update"], **kept)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class PartedArrays:
    """What differed in the first update in which two trainings parted, of both."""

    update: int
    expected: Mapping[str, np.ndarray]
    measured: Mapping[str, np.ndarray]

    def place(self, line: Line, kind: str, leaf: str) -> str:
        """Returns index and ulp where a leaf first parts; empty when not kept.

        Args:
            line: Line of the expected trace.
            kind: What is digested.
            leaf: Name of the parameter.
        """
        name = _name(kind, leaf)
        if line["update"] != self.update or name not in self.measured:
            return ""
        expected = self.expected.get(name)
        # The expected training was made once more, and only counts if it came out so.
        if expected is None or array_sha256(expected) != _sha256(line, kind, leaf):
            return ""
        return first_difference(expected, self.measured[name])


def read_parted(expected: str | None, measured: str | None) -> PartedArrays | None:
    """Returns the arrays that two trainings kept; None unless both did in one update.

    Args:
        expected: File of the expected training.
        measured: File of the other one.
    """
    if expected is None or measured is None:
        return None
    files = [dict(np.load(path, allow_pickle=False)) for path in (expected, measured)]
    updates = [int(arrays.pop(UPDATE)) for arrays in files]
    if updates[0] != updates[1]:
        return None
    return PartedArrays(update=updates[0], expected=files[0], measured=files[1])


def _name(kind: str, leaf: str) -> str:
    return f"{kind}/{leaf}" if leaf else kind


def _sha256(line: Line, kind: str, leaf: str) -> str:
    own = (d for d in line["digests"] if (d["kind"], d["leaf"]) == (kind, leaf))
    return str(next(own)["sha256"])
