"""Scenes about runs that are compared, and about runs that become a baseline.

Each stands beside the same two runs with nothing wrong, so that a comparison which
always fails would not pass for one that finds something.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.faults import Scene, Stage
from tests.faults.made_stores import STAGE, asked, new_store, number, rule, told
from tests.warehouse.made_rows import rewrite
from warehouse import load
from warehouse.acceptance import accept_run
from warehouse.baselines import ACCEPTED

OPEN, AGREES, REFUSED = "not demonstrated", "agrees", "refused"
COMPARED: dict[str, tuple[str, dict[str, Any]]] = {
    "compared_with_itself": (REFUSED, {"run": "run-1"}),
    "compared_on_the_same_executions": (OPEN, {"values": (0, None)}),
    "compared_without_a_baseline": (OPEN, {"against": ACCEPTED}),
    "compared_without_a_row": (OPEN, {"is_emptied": True}),
    "compared_with_a_better_one": ("worse", {"values": (0, 1)}),
}
"""Result that two runs must have, and in what they are other ones than those that
agree."""
ACCEPTANCES: dict[str, dict[str, Any]] = {
    "accepted_unfinished": {"is_finished": False},
    "accepted_refuted": {"value": 1},
    "accepted_damaged": {"is_damaged": True},
}
"""In what a run is another one than one that may be a baseline."""


def _compare(stage: Stage, name: str) -> None:
    expected, changes = COMPARED[name]
    stage.promise(
        "9.4",
        name,
        alike=(AGREES, _result(stage, "alike")),
        other=(expected, _result(stage, "other", **changes)),
    )


def _result(
    stage: Stage,
    name: str,
    *,
    values: tuple[int | None, ...] = (0, 0),
    run: str = "run-2",
    against: str = "run-1",
    is_emptied: bool = False,
) -> str:
    made = new_store(stage.folder, name)
    for number_of_run, value in enumerate(values, 1):
        if value is not None:
            execution = made.execute(STAGE, [number(value)])
            if is_emptied:
                rewrite(made, execution, "measurements", lambda rows: rows.slice(0, 0))
        made.run(f"run-{number_of_run}")
    (found,) = asked(
        made.store.root,
        [rule("1.1")],
        ("comparison", "result"),
        run=run,
        against=against,
    )
    return str(found[0][0]) if found else "nothing"


def _accept(stage: Stage, name: str) -> None:
    claims = [rule("1.1")]
    load.read_contract = lambda: claims  # type: ignore[assignment]
    stage.promise(
        "9.4",
        name,
        good=("run-1", _accepted(stage, "good")),
        other=("BaselineRefused", _accepted(stage, "other", **ACCEPTANCES[name])),
    )


def _accepted(
    stage: Stage,
    name: str,
    *,
    value: int = 0,
    is_finished: bool = True,
    is_damaged: bool = False,
) -> str:
    made = new_store(stage.folder, name)
    execution = made.execute(STAGE, [number(value)])
    made.run("run-1", is_finished=is_finished)
    if is_damaged:
        path = made.store.evidence_file(execution.nonce, "measurements")
        path.write_bytes(path.read_bytes()[:-20])
    return told(lambda: accept_run(made.store.root, "run-1", "").run_id)


SCENES = (
    *(Scene(name=name, play=partial(_compare, name=name)) for name in COMPARED),
    *(Scene(name=name, play=partial(_accept, name=name)) for name in ACCEPTANCES),
)
