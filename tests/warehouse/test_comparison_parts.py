"""What differs between two runs: artifacts, updates, timings, and what was changed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.warehouse.made_rows import number
from tests.warehouse.two_runs import (
    AFTER,
    BEFORE,
    NAMES,
    STAGE,
    TIMED,
    rows_of,
    update,
)
from warehouse.records.inference import Timing
from warehouse.records.training import UpdateDigest


@pytest.mark.parametrize(
    ("name", "before", "after", "components", "expected"),
    [
        ("state.npz", b"1", b"1", None, "equal"),
        ("state.npz", b"1", b"2", None, "differs"),
        ("state.npz", b"1", None, None, "missing after"),
        ("state.npz", None, b"1", None, "missing before"),
        ("killed-point-05.json", b"1", b"2", None, "shown"),
        ("trace.xplane.pb", b"1", b"2", TIMED, "shown"),
        ("trace.xplane.pb", b"1", None, TIMED, "missing after"),
    ],
)
def test_artifacts_are_the_same_bytes_unless_they_hold_times_or_processes(
    made,
    opened,
    claim,
    requirement,
    tmp_path,
    name,
    before,
    after,
    components,
    expected,
):
    for run, content in ((BEFORE, before), (AFTER, after)):
        path = tmp_path / run / name
        path.parent.mkdir()
        if content is not None:
            path.write_bytes(content)
        files = [path] if content is not None else []
        made.execute(STAGE, [number(0)], artifacts=files, components=components)
        made.run(run)
    connection = opened(claim(requirement()), run=AFTER, against=BEFORE, names=NAMES)
    (row,) = rows_of(connection, "comparison_artifacts")
    assert row["result"] == expected
    is_worse = expected in ("differs", "missing after")
    (about,) = rows_of(connection, "comparison")
    assert about["result"] == ("worse" if is_worse else "agrees")


def test_the_first_divergence_names_update_kind_and_leaf_causes_first(compared):
    before = [
        update(1, "loss_bits", "a"),
        *[update(2, kind, "b", "wte") for kind in ("parameters", "gradients")],
        update(2, "loss_bits", "b"),
        update(3, "document_ids", "c"),
    ]
    after = [
        update(1, "loss_bits", "a"),
        # alphabet would name the parameters of "abc" first
        update(2, "parameters", "x", "abc"),
        *[update(2, kind, "x", "wte") for kind in ("parameters", "gradients")],
        update(2, "loss_bits", "b"),
        update(3, "document_ids", "x"),
    ]
    connection, about = compared([number(0), *before], [number(0), *after])
    (found,) = rows_of(connection, "comparison_updates")
    place = (found["first_update"], found["first_kind"], found["first_leaf"])
    assert place == (2, "gradients", "wte")
    assert (found["result"], found["differing"]) == ("differs", 3)
    assert about["first_finding"] == "train_model: u update 2 gradients wte"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(2, 2, "equal"), (2, 1, "missing after"), (1, 2, "missing before")],
)
def test_updates_that_one_side_lacks_are_told(compared, before, after, expected):
    def made_up(count: int) -> list[Any]:
        return [update(place, "loss_bits", "a") for place in range(count)]

    connection, _ = compared(
        [number(0), *made_up(before)], [number(0), *made_up(after)]
    )
    (found,) = rows_of(connection, "comparison_updates")
    assert found["result"] == expected


def test_another_dtype_or_shape_of_the_same_digest_is_a_difference(compared):
    wide = update(1, "loss_bits", "a")
    narrow = UpdateDigest(**{**vars(wide), "dtype": "bfloat16"})
    connection, _ = compared([number(0), wide], [number(0), narrow])
    assert rows_of(connection, "comparison_updates")[0]["result"] == "differs"


def test_timings_come_with_the_spread_of_both_runs(compared):
    def sample(place: int, duration_ns: int) -> Timing:
        return Timing(
            endpoint="decode",
            release_policy="fp32",
            phase="warm",
            process=1,
            process_id=7,
            sample=place,
            duration_ns=duration_ns,
            timer="perf_counter_ns",
        )

    before = [sample(place, value) for place, value in enumerate([30, 10, 20])]
    after = [sample(place, value) for place, value in enumerate([60, 20, 40, 80, 90])]
    connection, about = compared([number(0), *before], [number(0), *after])
    timings = {row["what"]: row for row in rows_of(connection, "comparison_timings")}
    warm = timings["warm decode"]
    assert [warm[f"before_{name}_ns"] for name in ("least", "median", "largest")] == [
        *(10, 20, 30)
    ]
    assert [warm[f"after_{name}_ns"] for name in ("least", "median", "largest")] == [
        *(20, 60, 90)
    ]
    assert (warm["before_samples"], warm["after_samples"]) == (3, 5)
    assert warm["median_ratio"] == 3.0
    assert timings["stage"]["before_median_ns"] == 1_000_000_000
    assert about["result"] == "agrees"


def test_what_was_changed_is_named_settings_first(made, opened, claim, requirement):
    for name, rate, digest in ((BEFORE, "0.003", "a"), (AFTER, "0.004", "b")):
        made.execute(
            STAGE,
            [number(0)],
            components={
                "stage:name": STAGE,
                "artifact:tokens/tokens.npz": digest,
                "source:model.cache": digest,
                "config:train.learning_rate": rate,
                "config:train.updates": "300",
                **({"runtime:jax": "1"} if name == AFTER else {}),
            },
        )
        made.run(name)
    connection = opened(claim(requirement()), run=AFTER, against=BEFORE, names=NAMES)
    found = [
        (row["kind"], row["name"], row["before_value"], row["after_value"])
        for row in rows_of(connection, "comparison_changes")
    ]
    assert found == [
        ("config", "train.learning_rate", "0.003", "0.004"),
        ("source", "model.cache", "a", "b"),
        ("runtime", "jax", None, "1"),
    ]


def test_the_worse_sentence_says_what_came_first_and_what_was_changed(
    made, opened, claim, requirement
):
    for name, rate, value in ((BEFORE, "0.003", 0), (AFTER, "0.004", 1)):
        made.execute(
            STAGE, [number(value)], components={"config:train.learning_rate": rate}
        )
        made.run(name)
    (about,) = rows_of(
        opened(claim(requirement()), run=AFTER, against=BEFORE, names=NAMES),
        "comparison",
    )
    assert about["sentence"] == (
        "Run run-2 is worse than run run-1: 1 verdict got worse, 1 row got worse; "
        "the first is train_model: claim 1.1 errors; changed: config "
        "train.learning_rate 0.003 -> 0.004."
    )
