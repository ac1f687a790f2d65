"""What contract, promises and views say of the rows that the scenes gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from tests.faults import PROMISES, Fault
from tests.faults.apart import Played
from tests.store_maker import StoreMaker
from warehouse.contract import read_contract
from warehouse.load import build_warehouse, needed_for
from warehouse.reading import read_store, record_classes
from warehouse.records.drills import DrilledRequirement, PlantedFault
from warehouse.schema import record_from
from warehouse.store import Store

FOLDER = Path(__file__).parent / "promises"
NAMES = ("subject_claim_rows", "raw.runs")
SHOWN_SIGNS = 80
READ = """
with

-- a scene does not answer every case of a requirement, with a fault or without
found as (
    select
        split_part(runs.flow, '/', 1) as scene,
        split_part(runs.flow, '/', 2) as fault,
        rows.*
    from subject_claim_rows as rows
    inner join raw.runs as runs
        on rows.subject = runs.subject
),

unanswered as (
    select
        scene,
        requirement_id,
        case_name
    from found
    where fault = '' and status = 'absent'
),

-- of each requirement the row that is worst: unmet first, then the least margin
ranked as (
    select
        found.*,
        row_number() over (
            partition by scene, fault, requirement_id
            order by
                list_position(
                    ['unmet', 'invalid', 'missing', 'absent', 'met'], status
                ),
                margin nulls last,
                case_name
        ) as place
    from found
    anti join unanswered
        on
            found.status = 'absent'
            and found.scene = unanswered.scene
            and found.requirement_id = unanswered.requirement_id
            and found.case_name = unanswered.case_name
)

select
    scene,
    fault,
    requirement_id,
    any_value(stage) as drilled_stage,
    any_value(claim) as claim,
    any_value(measure) as measure,
    any_value(relation) as relation,
    any_value(unit) as unit,
    any_value(limit_value) as limit_value,
    count(*) filter (where status = 'met') as rows_met,
    count(*) filter (where status in ('unmet', 'invalid')) as rows_unmet,
    count(*) filter (where status in ('missing', 'absent')) as rows_missing,
    count(*) filter (where status <> 'absent') as rows_present,
    any_value(case_name) filter (where place = 1) as worst_case,
    any_value(coalesce(value_real, value_count)) filter (where place = 1)
        as worst_value,
    any_value(margin) filter (where place = 1) as worst_margin,
    any_value(coalesce(expected, '')) filter (where place = 1) as expected,
    any_value(if(value_count is null and value_real is null, value, ''))
        filter (where place = 1) as measured
from ranked
group by scene, fault, requirement_id
order by scene, fault, requirement_id
"""
_ROW = tuple(field.name for field in fields(DrilledRequirement))


def judged(played: Sequence[Played], folder: Path) -> list[DrilledRequirement]:
    """Returns what each requirement read under each fault, and under none.

    A fault is held against the requirements that its scene answers without one.

    Args:
        played: Every play, those without a fault among them.
        folder: Where the store of the judgement goes.
    """
    read = _read(played, folder)
    owed = {
        play.scene.name: [
            row for row in read.get(_name(play), []) if row["rows_present"]
        ]
        for play in played
        if play.fault is None
    }
    found = []
    for play in played:
        fault = play.fault.name if play.fault else ""
        by_id = {row["requirement_id"]: row for row in read.get(_name(play), [])}
        for row in owed[play.scene.name]:
            now = by_id.get(row["requirement_id"]) or _absent(row)
            found.append(_record(fault, now, play.failure))
        if play.failure:
            found.append(_stopped(fault, play))
    return found


def planted(fault: Fault) -> PlantedFault:
    """Returns the record of a fault."""
    return PlantedFault(
        fault=fault.name,
        fault_group=fault.group,
        summary=fault.summary,
        source=fault.source,
        claim=fault.claim,
        replaces=fault.replaces,
        is_benign=fault.is_benign,
    )


def as_row(record: Any) -> dict[str, Any]:
    """Returns a record as plain values."""
    return asdict(record)


def _read(played: Sequence[Played], folder: Path) -> dict[str, list[dict[str, Any]]]:
    made = StoreMaker(Store(folder / "judged"))
    classes = record_classes()
    for play in played:
        made.executions = {}
        by_stage: dict[str, list[Any]] = {}
        for stage, table, row in play.rows:
            by_stage.setdefault(stage, []).append(record_from(classes[table], row))
        for stage, records in by_stage.items():
            made.execute(stage, records, key=str(len(made.executions)))
        name = _name(play)
        made.run(name.replace("/", "."), flow=name, system=name, is_declared=False)
    claims = (*read_contract(), *read_contract(FOLDER))
    needed = needed_for(NAMES)
    contents = read_store(made.store.root, None, tables=needed.tables)
    connection = build_warehouse(contents, claims, (), needed)
    try:
        result = connection.execute(READ)
        names = [column[0] for column in result.description or ()]
        rows = [dict(zip(names, each, strict=True)) for each in result.fetchall()]
    finally:
        connection.close()
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(f"{row['scene']}/{row['fault']}", []).append(row)
    return found


def _name(play: Played) -> str:
    return f"{play.scene.name}/{play.fault.name if play.fault else ''}"


def _absent(row: dict[str, Any]) -> dict[str, Any]:
    return row | {
        "rows_met": 0,
        "rows_unmet": 0,
        "rows_missing": row["rows_present"],
        "worst_value": None,
        "worst_margin": None,
        "measured": "",
    }


def _record(fault: str, row: dict[str, Any], failure: str) -> DrilledRequirement:
    promise = PROMISES.get(row["claim"])
    values = {name: row[name] for name in _ROW if name in row}
    values |= {name: str(row[name])[:SHOWN_SIGNS] for name in ("expected", "measured")}
    if promise is not None:
        values |= {"claim": promise, "requirement_id": 0}
    return DrilledRequirement(**{**values, "fault": fault, "failure": failure})


def _stopped(fault: str, play: Played) -> DrilledRequirement:
    return DrilledRequirement(
        fault=fault,
        drilled_stage=play.scene.name,
        requirement_id=0,
        claim="",
        measure="",
        relation="",
        unit="",
        limit_value=None,
        rows_met=0,
        rows_unmet=0,
        rows_missing=0,
        worst_case="",
        worst_value=None,
        worst_margin=None,
        expected="",
        measured="",
        failure=play.failure,
    )
