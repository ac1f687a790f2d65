"""What a restore found and made is held against what was owed, and each can fail."""

import copy

import pytest

from model.checks import recovery, restored

KINDS = ("loss_bits", "step", "first_moment", "second_moment", "parameters")


def line(update: int, *, is_start: bool = False) -> dict:
    kinds = KINDS[1:] if is_start else KINDS
    digests = [
        {
            "kind": kind,
            "leaf": "" if kind in KINDS[:2] else "wte.weight",
            "dtype": "float32",
            "shape": "[2]",
            "sha256": f"{kind}-{update}",
        }
        for kind in kinds
    ]
    made = {"update": update, "values": {"step": update}, "digests": digests}
    return made | ({"is_start": True} if is_start else {})


WHOLE = {0: line(0, is_start=True)} | {update: line(update) for update in range(1, 9)}


def row_of(start: dict | None, update: int = 4, refused: str = "") -> dict:
    return restored.restored_checkpoint(WHOLE, start, update, "point", "2.1", refused)


def test_the_state_after_the_last_commit_is_the_one_of_the_uninterrupted_training():
    row = row_of(line(4, is_start=True))
    assert row["expected"] == row["measured"]
    assert row["expected"].startswith("update 4, arrays ")
    assert row["first_difference"] == ""


def test_a_restore_of_the_first_state_is_compared_with_the_start():
    row = row_of(line(0, is_start=True), 0)
    assert row["expected"] == row["measured"]


@pytest.mark.parametrize("kind", KINDS[1:])
def test_one_array_of_the_restored_state_that_differs_is_named(kind: str):
    start = copy.deepcopy(line(4, is_start=True))
    (digest,) = [d for d in start["digests"] if d["kind"] == kind]
    digest["sha256"] = "other"
    if kind == "step":
        start["values"]["step"] = 3
    row = row_of(start)
    assert row["expected"] != row["measured"]
    assert row["first_difference"].startswith(f"update 4, {kind}")


@pytest.mark.parametrize("update", [3, 5])
def test_an_earlier_or_later_checkpoint_is_another(update: int):
    row = row_of(line(update, is_start=True))
    assert row["measured"].startswith(f"update {update}, arrays ")
    assert row["expected"] != row["measured"]
    assert row["first_difference"]


def test_a_state_that_lost_a_kind_is_another():
    start = line(4, is_start=True)
    start["digests"] = start["digests"][:-1]
    row = row_of(start)
    assert row["expected"] != row["measured"]


def test_a_restore_that_was_refused_says_so():
    assert row_of(None, refused="checkpoint_damaged: torn")["measured"] == (
        "checkpoint_damaged: torn"
    )
    assert row_of(None)["measured"] == "nothing"


@pytest.mark.parametrize(
    ("updates", "text"),
    [
        (range(5, 9), "5 to 8"),
        (range(4, 9), "4 to 8"),
        ([5, 6, 8], "5, 6, 8"),
        ([], "none"),
    ],
)
def test_updates_that_were_made_stand_beside_those_that_were_owed(updates, text):
    trace = {update: WHOLE[update] for update in updates}
    row = restored.made_updates("m", "point", "2.1", [5, 8], trace)
    assert (row["expected"], row["measured"]) == ("5 to 8", text)
    assert bool(row["first_difference"]) == (text != "5 to 8")


def test_nothing_is_owed_where_nothing_was_lost():
    row = restored.made_updates("m", "point", "2.1", [1, 0], {})
    assert (row["expected"], row["measured"]) == ("none", "none")


def test_updates_are_counted_on_both_sides_of_the_kill():
    trace = recovery.updates_of({u: WHOLE[u] for u in (0, 5, 6, 7)})
    rows = restored.counted_updates("point", "2.1", 5, trace)
    assert {row["measure"]: row["value_count"] for row in rows} == {
        "updates_replayed": 1,
        "updates_beyond_the_kill": 2,
    }
