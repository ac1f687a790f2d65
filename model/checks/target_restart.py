"""The rows about what one host repeated, lost and resumed, and whose files it left.

Two trainings of one target agree bit by bit, so a copy of one looks like the other:
what parts them is the process, and the time that it took for each update. And what is
held against the reference has to be what the training digested while it ran. A part
that is not there is a row that differs, never one that is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from model.checkpoint_manifest import MARK
from model.checks import rows
from model.digests import array_sha256
from model.target_result import (
    KILLED_AFTER_UPDATE,
    KILLED_CODE,
    RESTORED_UPDATE,
    TRAINED_UPDATES,
    UNCOMMITTED_UPDATE,
)

STATE = ("parameters", "first_moment", "second_moment")
"""Kinds of arrays that a checkpoint keeps and a trace digests."""
TRAININGS = ("trained", "repeated", "killed", "resumed")
OWN = "a process and times of its own"
WITH, WITHOUT, NONE = "arrays and a commit", "arrays without a commit", "none"
WHOLE = "the training that nothing interrupted"
DIGESTED = "what the training digested after its updates"


class HostTrainings:
    """The four trainings of a target of one host, as their files tell of them."""

    def __init__(self, folder: Path, steps: Mapping[str, Any]) -> None:
        """Reads what each training traced.

        Args:
            folder: The result.
            steps: What its manifest says of each step.
        """
        self.folder = folder
        self.steps = steps
        self.traces = {step: self._traced(step) for step in TRAININGS}
        self.updates = {step: digests_of(self.traces[step]) for step in TRAININGS}

    def restored_from(self) -> int:
        """Returns the update that was restored; -1 where nothing says which."""
        first = next(iter(self.traces["resumed"]), {})
        return int(first["update"]) if first.get("is_start") else -1

    def has_uncommitted(self) -> bool:
        """Returns whether a newer checkpoint lay there that nobody had committed."""
        return self._committed(UNCOMMITTED_UPDATE) == WITHOUT

    def repeated(self) -> Iterator[rows.Row]:
        """Claim 5.3: the same updates by another process, and the files of both."""
        whole, again = self.updates["trained"], self.updates["repeated"]
        found = {
            f"update-{update:02d}": (whole.get(update, ""), again.get(update, NONE))
            for update in range(1, TRAINED_UPDATES + 1)
        }
        source = "the first training on this target"
        yield from _compared("5.3", "repeated_updates", found, source)
        found = {"process": (OWN, self._process("repeated", "trained"))}
        yield from _compared("5.3", "repeated_updates", found, "another process")
        found = {}
        for step in ("trained", "repeated"):
            found[f"{step}/losses"] = self._losses(step)
            found[f"{step}/state"] = self._state(step, TRAINED_UPDATES)
        yield from _compared("5.3", "repeated_updates", found, DIGESTED)

    def resumed(self) -> Iterator[rows.Row]:
        """Claim 5.5: what was resumed, by whom, and from what that was killed."""
        whole, resumed = self.updates["trained"], self.updates["resumed"]
        found = {
            f"update-{update:02d}": (whole.get(update, ""), resumed.get(update, NONE))
            for update in range(RESTORED_UPDATE + 1, TRAINED_UPDATES + 1)
        }
        yield from _compared("5.5", "resumed_updates", found, WHOLE)
        measure = "restart_of_a_killed_process"
        yield from _compared("5.5", measure, self._ends(), "processes by their ends")
        killed = self.updates["killed"]
        found = {
            f"end_of_the_killed/update-{update:02d}": (
                whole.get(update, "") if update <= KILLED_AFTER_UPDATE else NONE,
                killed.get(update, NONE),
            )
            for update in range(1, TRAINED_UPDATES + 1)
        }
        yield from _compared("5.5", measure, found, WHOLE)
        yield from _compared("5.5", measure, self._kept(), DIGESTED)

    def _ends(self) -> dict[str, tuple[str, str]]:
        """What was killed and what came to its end, by whom, and from where."""
        codes = {step: str(self.steps[step]["return_code"]) for step in TRAININGS}
        ids = [self.steps[step]["process_id"] for step in TRAININGS]
        return {
            "end_of_the_killed": (str(KILLED_CODE), codes["killed"]),
            "end_of_the_restarted": ("0", codes["resumed"]),
            "restored_update": (str(RESTORED_UPDATE), str(self.restored_from())),
            "processes": (str(len(TRAININGS)), str(len(set(ids)))),
            "processes/resumed": (OWN, self._process("resumed", "trained")),
        }

    def _kept(self) -> dict[str, tuple[str, str]]:
        """What the killed one left, committed and not, and what came of it."""
        return {
            "restored_update/committed": (WITH, self._committed(RESTORED_UPDATE)),
            "restored_update/uncommitted": (
                WITHOUT,
                self._committed(UNCOMMITTED_UPDATE),
            ),
            "end_of_the_killed/state": self._state("killed", RESTORED_UPDATE),
            "end_of_the_restarted/losses": self._losses("resumed"),
            "end_of_the_restarted/state": self._state("resumed", TRAINED_UPDATES),
        }

    # --- parts ---

    def _traced(self, step: str) -> list[dict[str, Any]]:
        path = self.folder / step / "artifacts" / "trace.jsonl"
        if not path.is_file():
            return []
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    def _process(self, step: str, other: str) -> str:
        """Returns whether a training was one of its own, or what it shares."""
        path = self.folder / step / "program.json"
        told = json.loads(path.read_bytes())["process_id"] if path.is_file() else NONE
        if told != self.steps[step]["process_id"]:
            return f"process {told}, which its step did not start"
        if told == self.steps[other]["process_id"]:
            return f"the process of {other}"
        own, others = self._durations(step), self._durations(other)
        if not own or own == {each: others.get(each) for each in own}:
            return f"the times of {other}" if own else NONE
        return OWN

    def _records(self, step: str) -> list[dict[str, Any]]:
        path = self.folder / step / "records" / "updates.json"
        return list(json.loads(path.read_bytes())) if path.is_file() else []

    def _durations(self, step: str) -> dict[int, int]:
        return {row["update"]: row["duration_ns"] for row in self._records(step)}

    def _losses(self, step: str) -> tuple[str, str]:
        """Returns a digest of the losses that were traced, and of those on record."""
        traced = {
            str(line["update"]): digest["sha256"]
            for line in self.traces[step]
            for digest in line["digests"]
            if digest["kind"] == "loss_bits"
        }
        # a loss is a float32, and a record of it a float64 of the same value
        recorded = {
            str(row["update"]): array_sha256(np.float32(row["loss_nats"]))
            for row in self._records(step)
        }
        return digest_of_text(traced), digest_of_text(recorded) if recorded else NONE

    def _state(self, step: str, update: int) -> tuple[str, str]:
        """Returns a digest of the state that was traced, and of what lies there."""
        traced = {
            f"{digest['kind']}/{digest['leaf']}": digest["sha256"]
            for line in self.traces[step]
            if line["update"] == update
            for digest in line["digests"]
            if digest["kind"] in STATE
        }
        path = self._checkpoint(step, update) / "arrays.npz"
        if not path.is_file():
            return digest_of_text(traced), NONE
        with np.load(path, allow_pickle=False) as archive:
            kept = {
                name: array_sha256(archive[name])
                for name in archive.files
                if name.partition("/")[0] in STATE
            }
        return digest_of_text(traced), digest_of_text(kept)

    def _committed(self, update: int) -> str:
        folder = self._checkpoint("killed", update)
        if not (folder / "arrays.npz").is_file():
            return NONE
        return WITH if (folder / MARK).is_file() else WITHOUT

    def _checkpoint(self, step: str, update: int) -> Path:
        return self.folder / step / "checkpoints" / _name(update)


def _name(update: int) -> str:
    return f"update-{update:06d}"


def _compared(
    claim: str, measure: str, found: Mapping[str, tuple[str, str]], source: str
) -> Iterator[rows.Row]:
    for case, (expected, measured) in found.items():
        yield rows.comparison(claim, measure, case, expected, measured, source)


def digests_of(lines: list[dict[str, Any]]) -> dict[int, str]:
    """Returns one digest an update over all that went into it and came out of it.

    Args:
        lines: A trace; its start, before any update, is left out.
    """
    return {
        int(line["update"]): digest_of_text(line["digests"])
        for line in lines
        if not line.get("is_start") and line["digests"]
    }


def digest_of_text(value: Any) -> str:
    """Returns the digest of plain data, equal for equal data."""
    text = json.dumps(value, sort_keys=True)
    return array_sha256(np.frombuffer(text.encode(), np.uint8))
