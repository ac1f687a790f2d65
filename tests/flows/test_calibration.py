"""The committed calibration table is about the checks as they are now."""

import pytest

from flows.calibration import stage_sources
from warehouse.calibration import read_calibration


@pytest.mark.parametrize("stage", sorted({row.stage for row in read_calibration()}))
def test_the_committed_table_was_measured_on_this_source(stage: str) -> None:
    """Where this fails, `harness drill --accept` measures the table again."""
    measured_on = {r.source_sha256 for r in read_calibration() if r.stage == stage}
    assert measured_on == {stage_sources()[stage]}
