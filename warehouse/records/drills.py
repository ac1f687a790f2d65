"""What was planted into a system, and which requirements of the contract noticed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from warehouse.schema import null_when


@dataclass(frozen=True, kw_only=True)
class PlantedFault:
    """One fault that a drill plants, and who has to find it."""

    TABLE: ClassVar[str] = "planted_faults"

    fault: str
    """The field's name of it, words joined by dashes."""
    fault_group: str
    """What it is a defect of, such as "attention", "checkpoint" or "store"."""
    summary: str
    """One sentence: what happens instead of what."""
    source: str
    """Public report of it, `owner/repository#number` or an address; or why none."""
    claim: str
    """Id of the claim that has to catch it, or what promises it where no claim does."""
    replaces: str
    """The function, file or component in whose place it stands."""
    is_benign: bool
    """Whether it is no defect, so that every check has to stay silent."""


@dataclass(frozen=True, kw_only=True)
class DrilledRequirement:
    """What one requirement read about a system with one fault, or about none."""

    TABLE: ClassVar[str] = "drilled_requirements"

    fault: str
    """The planted fault; empty for the system without one."""
    drilled_stage: str
    """Stage whose evidence the requirement is judged on."""
    requirement_id: int
    """Number in the contract; 0 for a check outside of it and for a stage that ended
    without evidence."""
    claim: str
    """Claim, or promise, that the requirement belongs to; empty when a stage ended."""
    measure: str
    """Name of what was measured; empty when a stage ended."""
    relation: str
    """How value and limit must stand to each other; empty when a stage ended."""
    unit: str
    """Unit of value and limit; empty for comparisons and refusals."""
    limit_value: Annotated[
        float | None, null_when("the relation compares with no number")
    ]
    """The limit, as the contract states it."""
    rows_met: int
    """Rows of evidence that keep it."""
    rows_unmet: int
    """Rows that break it, or hold a value that may not be there."""
    rows_missing: int
    """Rows that it needs and that are not there, or hold no value."""
    worst_case: str
    """Case of the row furthest over the limit, or nearest to it; may be empty."""
    worst_value: Annotated[float | None, null_when("no row of it holds a number")]
    """Number of that row."""
    worst_margin: Annotated[float | None, null_when("no row of it has a margin")]
    """How far that number may still go; negative when it went too far."""
    expected: str
    """What that row expected, shortened; empty for numbers."""
    measured: str
    """What that row measured, shortened; empty for numbers."""
    failure: str
    """Why the stage ended without evidence, one sentence; empty when it did not."""
