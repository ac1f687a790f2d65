"""The calibration table: what the drills measured about the checks themselves.

A row says of one requirement what the correct system shows and what the smallest fault
shows that its check kills. It holds for the source it was measured on, and a limit that
does not lie between the two is no limit.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from warehouse.contract import FOLDER, NUMERIC_RELATIONS, Claim, Requirement
from warehouse.contract_rows import Calibration
from warehouse.errors import ContractError
from warehouse.schema import check_records, record_from

FILE = FOLDER / "calibration.toml"
_ABOUT = """\
# What the drills measured: for each requirement whose check kills a planted fault, what
# the correct system shows and what the smallest of these faults shows. Written by
# `harness drill --accept`, never by hand. A judged claim without a row, or whose rows
# were measured on other source, reads "accept (undrilled)".
"""


def read_calibration(path: Path = FILE) -> list[Calibration]:
    """Returns the rows of the calibration table.

    Raises:
        ContractError: the file is malformed, or a row lacks a field.
    """
    try:
        return list(_rows(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ContractError(
            f"The calibration {path.name} is malformed: {error}"
        ) from error


@functools.lru_cache(maxsize=8)
def _rows(text: str) -> tuple[Calibration, ...]:
    document = tomllib.loads(text)
    if not document.keys() <= {"calibration"}:
        raise ContractError(f"it knows [[calibration]] only, not {list(document)}")
    rows = [record_from(Calibration, row) for row in document.get("calibration", [])]
    check_records(Calibration, rows)
    return tuple(rows)


def write_calibration(rows: Iterable[Calibration], path: Path = FILE) -> None:
    """Writes the calibration table, whole or not at all.

    Args:
        rows: The rows, in the order of the contract.
        path: The file.
    """
    parts = [_ABOUT]
    for row in rows:
        given = {k: v for k, v in dataclasses.asdict(row).items() if v is not None}
        lines = [f"{name} = {json.dumps(value)}" for name, value in given.items()]
        parts.append("\n".join(["[[calibration]]", *lines]) + "\n")
    whole = path.with_name(f".{path.name}.tmp")
    whole.write_text("\n".join(parts), encoding="utf-8")
    whole.replace(path)


def held(rows: Iterable[Calibration], claims: Iterable[Claim]) -> list[Calibration]:
    """Returns the rows that are about a requirement of the contract.

    A row about another one, as the contract was before a change, says nothing about it.

    Raises:
        ContractError: A limit does not lie between noise and smallest effect.
    """
    required: dict[tuple[str, ...], list[Requirement]] = {}
    for claim in claims:
        for item in claim.requirements:
            required.setdefault(_key(*_names(item)), []).append(item)
    kept = []
    for row in rows:
        asked = required.get(
            _key(row.claim, row.stage, row.measure, row.relation, row.cases), []
        )
        if asked:
            kept.append(row)
        for item in asked:
            is_asked = not item.presets or row.preset in item.presets
            if is_asked and not _lies_between(row, item):
                raise ContractError(
                    f"The limit {item.limit} of {item.claim} {item.measure} "
                    f"({item.relation}) does not lie between what the correct system "
                    f"shows ({row.noise}) and the smallest fault ({row.fault}: "
                    f"{row.smallest_effect}). Mend the limit, or drill again."
                )
    return kept


def calibrated(
    measured: Iterable[Mapping[str, object]],
    claims: Iterable[Claim],
    sources: Mapping[str, str],
    preset: str,
) -> list[Calibration]:
    """Returns the rows of the table that a drill measured.

    Args:
        measured: Rows of the view `limit_calibration`.
        claims: The contract that the drill was held against.
        sources: Digest of the source of each stage.
        preset: Preset of the system that was drilled.
    """
    requirements = [item for claim in claims for item in claim.requirements]
    rows = []
    for about in measured:
        if not about["faults_killed"]:
            continue
        item = requirements[int(str(about["requirement_id"])) - 1]
        claim, stage, measure, relation, cases = _names(item)
        is_number = item.relation in NUMERIC_RELATIONS
        values = {"noise": about["noise"], "smallest_effect": about["smallest_effect"]}
        fields = {
            "claim": claim,
            "stage": stage,
            "measure": measure,
            "relation": relation,
            "cases": cases,
            "preset": preset,
            "unit": item.unit,
            "fault": about["nearest_fault"],
            "source_sha256": sources[stage],
        }
        rows.append(record_from(Calibration, fields | (values if is_number else {})))
    return rows


def _names(item: Requirement) -> tuple[str, str, str, str, str]:
    return (
        item.claim, item.stage, item.measure, item.relation, " ".join(item.cases)
    )  # fmt: skip


def _key(*names: str) -> tuple[str, ...]:
    """Returns names that no other order of the cases, which stand last, changes."""
    return (*names[:-1], " ".join(sorted(names[-1].split())))


def _lies_between(row: Calibration, item: Requirement) -> bool:
    if item.limit is None:
        return True
    return all(
        value is None or _is_kept(value, item) is is_kept
        for value, is_kept in ((row.noise, True), (row.smallest_effect, False))
    )


def _is_kept(value: float, item: Requirement) -> bool:
    assert item.limit is not None
    return {
        "equal": value == item.limit,
        "at_most": value <= item.limit,
        "at_least": value >= item.limit,
        "above": value > item.limit,
    }[item.relation]
