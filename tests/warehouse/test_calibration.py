"""The calibration table: what it changes in a verdict, and what it refuses."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.warehouse.made_rows import ACCEPT, UNDRILLED, number, verdict_of
from warehouse.calibration import calibrated, read_calibration, write_calibration
from warehouse.contract_rows import Calibration
from warehouse.errors import ContractError

SOURCES = {"source:model.a": "0a", "source:model.b": "0b"}
SOURCE_SHA256 = hashlib.sha256(b"model.a 0a\nmodel.b 0b").hexdigest()


def calibration(**changes: Any) -> Calibration:
    fields: dict[str, Any] = {
        "claim": "1.1",
        "stage": "train_model",
        "measure": "errors",
        "relation": "equal",
        "cases": "",
        "preset": "fixture",
        "unit": "errors",
        "noise": 0.0,
        "smallest_effect": 1.0,
        "fault": "adam-from-zero",
        "source_sha256": SOURCE_SHA256,
    }
    return Calibration(**{**fields, **changes})


@pytest.fixture
def drilled(made, opened, claim, requirement):
    """Opens a store in which two claims are met, with a row of calibration."""

    def open_with(row: Calibration, **changes: Any):
        rows = [number(0), number(0, claim="1.2")]
        made.execute("train_model", rows, components=SOURCES)
        made.run("run-1")
        rules = (claim(requirement(**changes)), claim(requirement("1.2")))
        return opened(*rules, calibration=[row])

    return open_with


def test_a_drilled_claim_reads_accept(drilled):
    connection = drilled(calibration())
    assert verdict_of(connection, "1.1") == ACCEPT
    assert verdict_of(connection, "1.2") == UNDRILLED


@pytest.mark.parametrize("change", [{"source_sha256": "00"}, {"stage": "evaluate"}])
def test_a_claim_drilled_on_other_source_reads_undrilled(drilled, change):
    assert verdict_of(drilled(calibration(**change)), "1.1") == UNDRILLED


OUTSIDE = [
    ("equal", 0, 1.0, 2.0),
    ("equal", 0, 0.0, 0.0),
    ("at_most", 5, 6.0, 9.0),
    ("at_most", 5, 1.0, 5.0),
    ("at_least", 5, 4.0, 1.0),
    ("at_least", 5, 6.0, 5.0),
    ("above", 5, 5.0, 1.0),
]


@pytest.mark.parametrize(("relation", "limit", "noise", "effect"), OUTSIDE)
def test_a_limit_outside_noise_and_smallest_effect_is_an_error(
    drilled, relation, limit, noise, effect
):
    row = calibration(relation=relation, noise=noise, smallest_effect=effect)
    with pytest.raises(ContractError, match="does not lie between"):
        drilled(row, relation=relation, limit=limit)


def test_a_row_about_a_requirement_that_is_gone_drills_nothing(drilled):
    row = calibration(measure="errors_of_before")
    assert verdict_of(drilled(row), "1.1") == UNDRILLED


def test_a_limit_is_held_against_its_row_in_whichever_order_its_cases_stand(drilled):
    row = calibration(relation="at_most", cases="a b", noise=0, smallest_effect=4)
    with pytest.raises(ContractError, match="does not lie between"):
        drilled(row, relation="at_most", limit=5, cases=("b", "a"))


def test_a_limit_of_another_preset_is_not_held_against_it(drilled):
    row = calibration(noise=1.0, smallest_effect=2.0)
    assert verdict_of(drilled(row, presets=("prose",)), "1.2") == UNDRILLED


def test_what_is_written_is_what_is_read(tmp_path: Path):
    rows = [
        calibration(noise=1.25e-7, smallest_effect=3.0),
        calibration(relation="identical", noise=None, smallest_effect=None, unit=""),
        calibration(fault='with "quotes" and é'),
    ]
    path = tmp_path / "calibration.toml"
    write_calibration(rows, path)
    assert read_calibration(path) == rows


def test_a_requirement_that_kills_no_fault_is_not_written(claim, requirement):
    rules = [claim(requirement(), requirement(measure="others", cases=("a", "b")))]
    about = {"noise": 0.0, "smallest_effect": 2.0, "nearest_fault": "adam-from-zero"}
    measured = [
        {**about, "requirement_id": 1, "faults_killed": 0},
        {**about, "requirement_id": 2, "faults_killed": 3},
    ]
    sources = {"train_model": SOURCE_SHA256}
    (row,) = calibrated(measured, rules, sources, "fixture")
    expected = calibration(measure="others", cases="a b", smallest_effect=2.0)
    assert row == dataclasses.replace(expected, noise=0.0)
