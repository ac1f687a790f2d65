"""The drill of recovery for real: every planted fault is found, and nothing else."""

import pytest

from flows.proofs import DRILL_OF_RECOVERY
from tasks.drill_recovery import drill_recovery
from tests.tasks.certificates import Certified, Plant
from tests.tasks.stage_maker import asked_and_found, of
from warehouse.records.claims import Measurement
from warehouse.records.training import NegativeControl

# Some thirty processes, one after another, before the first test can begin.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def drilled(certified: Certified) -> list:
    return certified.prove(DRILL_OF_RECOVERY)


def test_every_measure_that_the_contract_asks_of_a_drill_is_there(
    drilled: list,
) -> None:
    asked, found = asked_and_found("drill_recovery", drilled)
    assert asked == found
    assert len(asked) == 3


def test_a_drill_finds_every_fault_and_nothing_where_none_was_planted(
    drilled: list,
) -> None:
    rows = of(drilled, NegativeControl)
    assert {row.update for row in rows} == {6, 7, 8, 9, 10}
    found = {row.control for row in rows if row.differing_leaves}
    assert {row.control for row in rows} - found == {"none"}
    assert len(found) == 6


def test_a_drill_whose_restore_is_faulty_itself_says_so(
    certified: Certified, plant: Plant
) -> None:
    """The drill can fail: here every restore has lost its first moments."""
    right = 'first_moment=trees["first_moment"]'
    wrong = 'first_moment={n: 0 * x for n, x in trees["first_moment"].items()}'
    plant("checkpoint.py", right, wrong)
    work, config = certified.work(drill_recovery, "faulty-restore"), certified.config
    drill_recovery.body(
        work,
        certified.tokens,
        certified.trained,
        config.model,
        config.train,
        config.drill,
    )
    (row,) = of(work.records, Measurement, measure="unplanted_detected_updates")
    assert row.value_count == 5
    assert row.detail.startswith("update 6, first_moment h.0")
