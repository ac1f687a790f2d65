"""The three tables that claims are judged on: measured, compared, refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from warehouse.errors import RecordError
from warehouse.schema import null_when


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One number that a claim is held against, or the reason why there is none."""

    TABLE: ClassVar[str] = "measurements"

    claim: str
    """Id of the claim in the contract, such as "3.1"."""
    measure: str
    """Name of what was measured, the same as in the contract, with its unit last."""
    case_name: str = ""
    """Instance of the measure, general part first, as in "int8/07"; may be empty."""
    value_count: Annotated[
        int | None, null_when("the measure is a real number, or reason says why not")
    ] = None
    """The value of an integer measure (counts, bytes, nanoseconds); never rounded."""
    value_real: Annotated[
        float | None, null_when("the measure is an integer, or reason says why not")
    ] = None
    """The value of a real measure; finite."""
    unit: str
    """Unit of the value, such as "nats", "tokens" or "ulp"; "1" for a ratio."""
    reason: Annotated[str | None, null_when("there is a value")] = None
    """Reason code why there is no value; null when there is one."""
    detail: str = ""
    """What helps to understand the value, such as where the largest error lies."""

    def __post_init__(self) -> None:
        """Raises RecordError unless exactly one of the two values and reason is set."""
        given = [self.value_count, self.value_real, self.reason]
        if sum(value is not None for value in given) != 1:
            raise RecordError(
                f"Measurement {self.claim} {self.measure} {self.case_name!r} has "
                f"value_count={self.value_count!r}, value_real={self.value_real!r} and "
                f"reason={self.reason!r}; exactly one of them must be set."
            )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two values that a claim wants identical (or different), compared as text."""

    TABLE: ClassVar[str] = "comparisons"

    claim: str
    """Id of the claim in the contract, such as "2.1"."""
    measure: str
    """Name of what was compared, the same as in the contract."""
    case_name: str = ""
    """Instance of the comparison, from general to special, such as "update-07"."""
    expected: str
    """The digest or literal that was expected; never empty."""
    measured: str
    """The digest or literal that was measured; never empty."""
    expected_from: str
    """Where the expected value comes from, such as "uninterrupted run"."""
    first_difference: str = ""
    """First place where the two part (update, leaf, index, ulp); empty when equal."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A bad input that had to be refused, and what became of it."""

    TABLE: ClassVar[str] = "refusals"

    claim: str
    """Id of the claim in the contract, such as "1.4"."""
    measure: str
    """Name of what had to be refused, the same as in the contract."""
    case_name: str = ""
    """Instance of the bad input, such as "overlong"."""
    expected_reason: str
    """Reason code that the refusal must carry."""
    received_reason: Annotated[str | None, null_when("nothing was refused")]
    """Reason code that the refusal carried; null when the input was accepted."""
    message: str
    """Sentence that the refusal showed; empty when the input was accepted."""
