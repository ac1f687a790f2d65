"""What a proof shows, and that one planted fault which nobody found fails it."""

import json
from pathlib import Path

import pytest

from flows.proof_results import show_proof
from model.checks.negative_controls import CONTROLS
from tests.store_maker import StoreMaker
from warehouse.records.claims import Measurement
from warehouse.records.training import NegativeControl
from warehouse.store import Store

STAGE = "drill_recovery"


def rows_of(control: str, found: int) -> list[Measurement | NegativeControl]:
    fault = NegativeControl(
        control=control,
        update=6,
        first_kind="first_moment" if found else "",
        first_leaf="wpe.weight" if found else "",
        first_difference="index [0]: 3 ulp" if found else "",
        differing_leaves=found,
        loss_nats=4.25,
        uninterrupted_loss_nats=4.0,
    )
    measure = (
        "unplanted_detected_updates"
        if control == "none"
        else "planted_fault_detected_updates"
    )
    rows: list[Measurement | NegativeControl] = [
        fault,
        measured(measure, control, "updates", value_count=found),
    ]
    for place in ("first", "second"):
        case = f"{control}/{place}"
        name = "planted_fault_loss_change"
        rows.append(measured(name, case, "nats", value_real=0.25))
    return rows


def measured(measure: str, case: str, unit: str, **value: object) -> Measurement:
    return Measurement(claim="2.5", measure=measure, case_name=case, unit=unit, **value)


def made_store(folder: Path, found: dict[str, int]) -> Path:
    """A store with one drill, in which each control was found in so many updates."""
    made = StoreMaker(Store(folder / "evidence"))
    rows = [row for control in found for row in rows_of(control, found[control])]
    made.execute(STAGE, rows)
    made.run("20260102-030405-abcdef", flow="drill", configuration={"drill": {}})
    return folder / "evidence"


FOUND = dict.fromkeys(CONTROLS, 1) | {"none": 0}


def test_a_drill_that_found_every_fault_shows_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = made_store(tmp_path, FOUND)
    assert show_proof(root, "latest", [STAGE], is_json=False) == 0
    shown = capsys.readouterr().out
    assert "update 6, first_moment wpe.weight" in shown
    assert "nowhere" in shown
    assert "The proof holds." in shown


@pytest.mark.parametrize(
    ("control", "found"), [("moments_rounded", 0), ("none", 1)], ids=["missed", "false"]
)
def test_a_fault_that_was_missed_or_made_up_is_named_and_gives_exit_code_1(
    control: str, found: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = made_store(tmp_path, FOUND | {control: found})
    assert show_proof(root, "latest", [STAGE], is_json=False) == 1
    last = capsys.readouterr().out.splitlines()[-2]
    assert last.startswith("The proof failed: 2.5 (")
    assert control in last


def test_the_same_is_one_json_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = made_store(tmp_path, FOUND | {"step_reset": 0})
    assert show_proof(root, "latest", [STAGE], is_json=True) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == 1
    assert {row["control"] for row in document["faults"]} == set(FOUND)
    assert [row["verdict"] for row in document["claims"]] == ["revise"]
