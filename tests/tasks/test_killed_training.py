"""What a certificate of recovery finds when a training or a restore is at fault."""

import re

import pytest

from tasks.certify_recovery import certify_recovery
from tests.tasks.certificates import Certified, Plant, killed_and_restored
from tests.tasks.stage_maker import of
from warehouse.records.claims import Comparison, Measurement

# Some thirty processes, one after another, before the first test can begin.
pytestmark = pytest.mark.timeout(900)


def test_moments_saved_in_bfloat16_are_told_by_index_and_ulp_between_processes(
    certified: Certified, plant: Plant
) -> None:
    """The killed process wrote the fault, another one restored it, no trace has it."""
    right = 'arrays |= {f"{kind}/{name}": np.asarray(x) for name, x in tree.items()}'
    wrong = right.replace(
        "np.asarray(x)",
        "np.asarray(x if kind == KINDS[0] else"
        " x.astype(jnp.bfloat16).astype(jnp.float32))",
    )
    plant("checkpoint.py", right, wrong)
    work = certified.work(certify_recovery, "rounded-moments")
    rows = killed_and_restored(work, certified, 2, 3)
    (restored,) = of(rows, Comparison, measure="restored_checkpoint")
    place = "update 2, first_moment h.0.attn.c_attn.bias: index [0]: expected "
    assert restored.first_difference.startswith(place)
    told = re.search(r" ulp\); (\d+) of 72 entries differ$", restored.first_difference)
    # The 24 of the keys have no gradient but for rounding: what is left has few bits,
    # which bfloat16 may hold, and is another on another processor.
    assert told and int(told[1]) >= 48
    updates = of(rows, Comparison, measure="resumed_update")
    assert [row.case_name for row in updates if row.first_difference] == [
        "point/update-03",
        "point/update-04",
    ]
    # Which updates were made is right all the same.
    (made_again,) = of(rows, Comparison, measure="updates_after_the_restore")
    assert made_again.measured == "3 to 4"


def test_a_restore_of_an_earlier_checkpoint_than_the_last_is_found(
    certified: Certified, plant: Plant
) -> None:
    """It goes on bit by bit, so only what was owed tells."""
    plant(
        "checkpoint.py",
        "return committed[-1]",
        "return committed[0]",
    )
    work = certified.work(certify_recovery, "earlier-checkpoint")
    rows = killed_and_restored(work, certified, 1, 2)
    (restored,) = of(rows, Comparison, measure="restored_checkpoint")
    assert restored.expected.startswith("update 2, arrays ")
    assert restored.measured.startswith("update 0, arrays ")
    (made_again,) = of(rows, Comparison, measure="updates_after_the_restore")
    assert (made_again.expected, made_again.measured) == ("3 to 3", "1 to 3")
    updates = of(rows, Comparison, measure="resumed_update")
    assert [row.first_difference for row in updates] == ["", "", ""]


def test_a_training_that_nobody_killed_is_found(
    certified: Certified, plant: Plant
) -> None:
    """It passes the point of the kill and ends by itself, which proves nothing."""
    right = "if update == self.request.pause_after_update:"
    plant("programs/train_model.py", right, "if False:")
    work = certified.work(certify_recovery, "not-killed")
    rows = killed_and_restored(work, certified, 1, 2)
    (killed,) = of(rows, Measurement, measure="killed_by_signal")
    assert killed.value_count == 0
    (before,) = of(rows, Comparison, measure="updates_before_the_kill")
    assert (before.expected, before.measured) == ("1 to 2", "1 to 3")


def test_checkpoints_at_another_cadence_than_asked_are_found(
    certified: Certified, plant: Plant
) -> None:
    right = "progress.step % self.request.checkpoint_every_updates:"
    wrong = "progress.step % (2 * self.request.checkpoint_every_updates):"
    plant("programs/train_model.py", right, wrong)
    work = certified.work(certify_recovery, "other-cadence")
    rows = killed_and_restored(work, certified, 1, 3)
    (committed,) = of(rows, Comparison, measure="committed_checkpoints")
    assert (committed.expected, committed.measured) == ("0, 1, 2, 3", "0, 2")
    (restored,) = of(rows, Comparison, measure="restored_checkpoint")
    assert restored.measured.startswith("update 2, arrays ")
    (replayed,) = of(rows, Measurement, measure="updates_replayed")
    assert replayed.value_count == 1
