"""A row that counts errors, as nearly every made-up store has one."""

from warehouse.records.claims import Measurement


def errors(value: int | None, case: str = "", reason: str | None = None) -> Measurement:
    return Measurement(
        claim="1.1",
        measure="errors",
        case_name=case,
        value_count=value,
        unit="errors",
        reason=reason,
    )
