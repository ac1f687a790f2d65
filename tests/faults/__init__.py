"""Planted defects of evidence store, workflow and target, and who has to find them.

Such a fault stands in the place of a file (evidence, a commit record, an answer of a
controller, an observation of a host) or of a component (a view, a function of
`warehouse`, `tasks` or the rehearsed gang). It is tried in a process of its own on a
scene, small and mostly of made rows; what the project says of the scene becomes rows,
and the contract and the views judge these. Where no claim of the contract is meant to
catch a fault, one of the promises of `tests/faults/promises` is.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GROUPS = ("store", "workflow", "target")

NO_REPORT = "no public report is known to us"
"""Source of a fault that we thought of ourselves."""

PROMISES = {
    "9.1": "verdict",
    "9.2": "store",
    "9.3": "reuse",
    "9.4": "baseline",
    "9.5": "run",
    "9.6": "gang",
    "9.7": "import",
}
"""What holds without being a claim about a training system, by the number it has among
the promises. A planted fault that no claim has to catch names one of them."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One defect of store, workflow or target that somebody had."""

    name: str
    """The field's name of it, words joined by dashes."""
    group: str
    """One of `GROUPS`; the module that declares it is named the same."""
    summary: str
    """One sentence: what happens instead of what."""
    source: str
    """Public report, `owner/repository#number` or an address; or why there is none."""
    claim: str
    """Id of the claim that has to catch it, or one of the names in `PROMISES`."""
    replaces: str
    """The function, view or file in whose place it stands."""
    scene: str
    """Name of the scene in which it is tried."""
    component: Callable[[], None] | None = None
    """Puts the faulty component in place, before the scene begins."""
    file: Callable[[Any], None] | None = None
    """Changes what the scene has made; takes what the scene hands out."""
    is_benign: bool = False
    """Whether it is no defect: every check has to stay silent."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A situation in which one kind of fault shows, or would."""

    name: str
    """Its name; where it is about a promise, also the measure of its rows."""
    play: Callable[[Stage], None]
    """Builds the situation and records what the project says of it."""


class Stage:
    """Where a scene is played: a folder, and the rows that come of it."""

    def __init__(self, folder: Path, fault: Fault | None) -> None:
        """Starts without rows.

        Args:
            folder: Private to this play.
            fault: What is planted; None for nothing.
        """
        self.folder = folder
        self.fault = fault
        self.rows: list[tuple[str, str, dict[str, Any]]] = []

    def spoil(self, made: Any) -> None:
        """Has a fault that stands in the place of a file change what was made."""
        if self.fault is not None and self.fault.file is not None:
            self.fault.file(made)

    def record(self, stage: str, table: str, *rows: dict[str, Any]) -> None:
        """Adds rows of a table, as the stage of that name would have written them."""
        self.rows += [(stage, table, row) for row in rows]

    def promise(self, claim: str, measure: str, **told: tuple[str, object]) -> None:
        """Adds comparisons of what is promised and what was said, one a case.

        Args:
            claim: Number of the promise.
            measure: Name of the scene.
            told: Expected text and what the project said, by case.
        """
        for case, (expected, said) in told.items():
            measured = str(said)
            self.record(
                "promises",
                "comparisons",
                {
                    "claim": claim,
                    "measure": measure,
                    "case_name": case,
                    "expected": expected,
                    "measured": measured,
                    "expected_from": "tests/faults/promises",
                    "first_difference": ""
                    if expected == measured
                    else f"expected {expected}, said {measured}",
                },
            )


def every_fault() -> tuple[Fault, ...]:
    """Returns the faults of all groups, in the order of groups and declarations."""
    return tuple(fault for group in GROUPS for fault in _module(group).FAULTS)


def every_scene() -> dict[str, Scene]:
    """Returns the scenes of all groups by name."""
    return {each.name: each for group in GROUPS for each in _module(group).SCENES}


def _module(group: str) -> Any:
    return importlib.import_module(f"{__name__}.{group}")
