"""The committed calibration table is about the checks as they are now."""

import pytest

from flows.calibration import stage_sources
from warehouse.calibration import held, read_calibration
from warehouse.contract import read_contract


@pytest.mark.parametrize("stage", sorted({row.stage for row in read_calibration()}))
def test_the_committed_table_was_measured_on_this_source(stage: str) -> None:
    """Where this fails, `harness drill --accept` measures the table again."""
    measured_on = {r.source_sha256 for r in read_calibration() if r.stage == stage}
    assert measured_on == {stage_sources()[stage]}


def test_each_row_is_about_a_requirement_of_the_contract() -> None:
    """A row that nobody asks for would hold no limit and drill no claim."""
    rows = read_calibration()
    assert held(rows, read_contract()) == rows
