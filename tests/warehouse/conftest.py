"""Fixtures about made-up stores and contracts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.store_maker import StoreMaker
from tests.warehouse.on_demand import OnDemand
from tests.warehouse.two_runs import AFTER, BEFORE, NAMES, STAGE, rows_of
from warehouse.contract import Claim, Requirement
from warehouse.load import build_warehouse, needed_for
from warehouse.reading import read_store
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.store import Store


@pytest.fixture
def made(tmp_path: Path) -> StoreMaker:
    """An empty store with a maker of executions and runs."""
    return StoreMaker(Store(tmp_path / "evidence"))


@pytest.fixture
def requirement() -> Callable[..., Requirement]:
    """A maker of requirements; by default `errors` of `train_model` must equal 0."""

    def make(claim: str = "1.1", **changes: Any) -> Requirement:
        fields: dict[str, Any] = {
            "claim": claim,
            "stage": "train_model",
            "measure": "errors",
            "relation": "equal",
            "limit": 0,
            "unit": "errors",
            "cases": (),
            "required_count": 1,
            "presets": (),
            "scope": "any",
            "sampling": "",
            "reason": "made up",
        }
        return Requirement(**{**fields, **changes})

    return make


@pytest.fixture
def claim() -> Callable[..., Claim]:
    """A maker of claims out of requirements."""

    def make(*requirements: Requirement) -> Claim:
        name = requirements[0].claim
        return Claim(id=name, statement="Made up.", requirements=requirements)

    return make


@pytest.fixture
def whole(made, rows, tmp_path: Path):
    """A store of two stages, each with artifact, rows and commit, and one run."""
    for number, stage in enumerate(["train_model", "evaluate_heldout"], 1):
        artifact = tmp_path / f"artifact-{number}"
        artifact.write_bytes(bytes([number]) * 1000)
        row = Measurement(
            claim=f"1.{number}", measure="errors", value_count=0, unit="errors"
        )
        records = [row, rows["comparison"]]
        made.execute(stage, records, key=f"key-{number}", artifacts=[artifact])
    made.run("run-1")
    return made


@pytest.fixture
def rules(claim, requirement):
    return [
        claim(requirement("1.1")),
        claim(requirement("1.2", stage="evaluate_heldout")),
    ]


Opener = Callable[..., OnDemand]


@pytest.fixture
def opened(made: StoreMaker) -> Iterator[Opener]:
    """Opens the made store under a made-up contract; closes it after the test.

    Each view is made when it is first asked for.
    """
    connections: list[OnDemand] = []

    def open_with(
        *claims: Claim,
        run: str | None = None,
        calibration: Sequence[Any] = (),
        against: str | None = None,
        names: Sequence[str] | None = None,
    ) -> OnDemand:
        needed = needed_for(names)
        contents = read_store(
            made.store.root, run, against=against, tables=needed.tables
        )
        without = replace(needed, views=())
        connection = build_warehouse(contents, claims, calibration, without)
        connections.append(OnDemand(connection, needed.views))
        return connections[-1]

    yield open_with
    for connection in connections:
        connection.close()


@pytest.fixture
def compared(made, opened, claim, requirement):
    """Compares two runs of one stage with these rows, under one requirement."""

    def compare(before: Any, after: Any, *, components: Any = None, **asked: Any):
        for name, rows in ((BEFORE, before), (AFTER, after)):
            made.execute(STAGE, rows, components=components)
            made.run(name)
        asked.setdefault("relation", "equal")
        if asked["relation"] in ("identical", "refused", "different", "reported"):
            asked.setdefault("limit", None)
        connection = opened(
            claim(requirement(**asked)), run=AFTER, against=BEFORE, names=NAMES
        )
        (about,) = rows_of(connection, "comparison")
        return connection, about

    return compare


@pytest.fixture
def rows() -> dict[str, Any]:
    """One row of each table that claims are judged on."""
    return {
        "measurement": Measurement(
            claim="1.1", measure="errors", value_count=0, unit="errors"
        ),
        "comparison": Comparison(
            claim="1.1",
            measure="bytes",
            expected="abc",
            measured="abc",
            expected_from="the uninterrupted run",
        ),
        "refusal": Refusal(
            claim="1.1",
            measure="bad_input",
            expected_reason="document_empty",
            received_reason="document_empty",
            message="The document is empty.",
        ),
    }


@pytest.fixture
def ask(made: StoreMaker, claim, requirement):
    """Asks the made store, opened with what the question needs and nothing else."""

    def ask(columns: str, view: str, *requirements, order: str = "all"):
        rules = [claim(*(requirements or (requirement(),)))]
        needed = needed_for([view])
        contents = read_store(made.store.root, None, tables=needed.tables)
        with build_warehouse(contents, rules, [], needed) as connection:
            query = f"select {columns} from {view} order by {order}"
            return connection.execute(query).fetchall()

    return ask
