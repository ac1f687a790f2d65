"""Rows of a drill: planted faults, and what a requirement read about them."""

from typing import Any

from warehouse.records.drills import DrilledRequirement, PlantedFault


def planted(fault: str, claim: str = "1.1", **changes: Any) -> PlantedFault:
    fields = {
        "fault_group": "attention",
        "summary": "Made up.",
        "source": "none, made up",
        "replaces": "model.transformer.attention_mask",
        "is_benign": False,
    }
    return PlantedFault(fault=fault, claim=claim, **{**fields, **changes})


def read(fault: str, claim: str = "1.1", **changes: Any) -> DrilledRequirement:
    """What a requirement read; by default its one row is met by a wide margin."""
    fields: dict[str, Any] = {
        "drilled_stage": "evaluate_heldout",
        "requirement_id": 1,
        "measure": "errors",
        "relation": "at_most",
        "unit": "errors",
        "limit_value": 10.0,
        "rows_met": 1,
        "rows_unmet": 0,
        "rows_missing": 0,
        "worst_case": "",
        "worst_value": 2.0,
        "worst_margin": 8.0,
        "expected": "",
        "measured": "",
        "failure": "",
    }
    return DrilledRequirement(fault=fault, claim=claim, **{**fields, **changes})


def broken(fault: str, claim: str = "1.1", value: float = 30.0, **changes: Any):
    margin = 10.0 - value
    return read(
        fault, claim,
        **{"rows_unmet": 1, "worst_value": value, "worst_margin": margin} | changes,
    )  # fmt: skip


def stopped(fault: str) -> DrilledRequirement:
    return read(
        fault, "", requirement_id=0, measure="", relation="", unit="", rows_met=0,
        limit_value=None, worst_value=None, worst_margin=None,
        failure="The loss is not finite.",
    )  # fmt: skip
