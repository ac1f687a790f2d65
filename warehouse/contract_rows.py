"""Tables of the contract: what is claimed, what is required, and what drills found.

The loader fills them from the contract's files, so that what a verdict rests on can be
asked in SQL. They lie in the schema `raw`, beside those of `warehouse.ledger`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from warehouse.schema import null_when


@dataclass(frozen=True, kw_only=True)
class RequiredClaim:
    """One claim of the contract."""

    TABLE: ClassVar[str] = "claims"

    claim: str
    """Id of the claim, such as "1.3"."""
    review_task: int
    """Review task it belongs to."""
    claim_number: int
    """Its number within the task."""
    statement: str
    """What is claimed."""


@dataclass(frozen=True, kw_only=True)
class ContractRow:
    """One requirement of the contract."""

    TABLE: ClassVar[str] = "contract"

    requirement_id: int
    """Number of the requirement in the order of the contract, from 1."""
    claim: str
    """Claim it belongs to."""
    stage: str
    """Stage whose evidence it is judged on."""
    measure: str
    """Name of the measure in the rows."""
    relation: str
    """How value and limit must stand to each other."""
    limit_count: Annotated[int | None, null_when("the limit is no whole number")]
    """The limit, when it is a whole number."""
    limit_value: Annotated[float | None, null_when("the relation has no limit")]
    """The limit as a real number."""
    unit: str
    """Unit of value and limit; empty for comparisons and refusals."""
    required_count: int
    """Rows that each case needs."""
    scope: str
    """"declared" when it holds only for exactly what the preset declares."""
    sampling: str
    """Rule by which cases were sampled; empty when none was."""
    reason: str
    """Why this limit."""


@dataclass(frozen=True, kw_only=True)
class ContractCase:
    """One case that a requirement needs."""

    TABLE: ClassVar[str] = "contract_cases"

    requirement_id: int
    """Number of the requirement."""
    case_name: str
    """The case, or what its name begins with before a "/"; empty for any case."""


@dataclass(frozen=True, kw_only=True)
class ContractPreset:
    """One preset in which a requirement is required."""

    TABLE: ClassVar[str] = "contract_presets"

    requirement_id: int
    """Number of the requirement."""
    preset: str
    """Name of the preset; empty for every preset."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What the drills found out about a requirement whose check kills a fault."""

    TABLE: ClassVar[str] = "calibration"

    claim: str
    """Claim that was drilled."""
    stage: str
    """Stage whose evidence the requirement is judged on."""
    measure: str
    """Measure whose limit is calibrated."""
    relation: str
    """How value and limit must stand to each other."""
    cases: str
    """Cases that the requirement lists, joined by spaces; empty for any."""
    preset: str
    """Preset of the system that was drilled."""
    unit: str
    """Unit of the two numbers; empty for comparisons and refusals."""
    noise: Annotated[float | None, null_when("the relation compares texts")] = None
    """Value of the correct system that is nearest to the limit."""
    smallest_effect: Annotated[
        float | None, null_when("the relation compares texts, or no number was left")
    ] = None
    """Value nearest to the limit of a fault that the check kills."""
    fault: str
    """Fault with that smallest effect."""
    source_sha256: str
    """Digest of the source of the stage: of its check and of what it measures."""
