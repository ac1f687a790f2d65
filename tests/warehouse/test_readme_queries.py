"""Every question of the README has an answer in a store of a few nights."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store_maker import SECOND_NS, StoreMaker
from tests.warehouse.test_certificates import point, update
from tests.warehouse.test_views import made_up
from warehouse import baselines, ledger
from warehouse.load import known_names, open_warehouse
from warehouse.query import ask, names_read
from warehouse.reading import read_store, record_classes
from warehouse.records.claims import Measurement
from warehouse.sealed import seal
from warehouse.store import Store
from warehouse.view_files import ViewFile, read_views

README = Path(__file__).parents[2] / "README.md"
WHAT_IS_SHOWN = {
    "token_losses": {"split": "heldout", "release_policy": "fp32"},
    "timings": {"phase": "warm", "endpoint": "decode", "release_policy": "fp32"},
}
"""What a query of the README picks out, by the table that it is in."""


def examples() -> list[str]:
    """Returns the questions, each beginning with the comment that asks it."""
    section = README.read_text().split("### Questions in SQL")[1]
    section = section.partition("### Exit codes")[0]
    blocks = re.findall(r"```sql\n(.*?)```", section, re.DOTALL)
    parts = [part.strip() for block in blocks for part in block.split(";")]
    return [part for part in parts if part]


def plain_rows() -> list[Any]:
    """Returns one row of every table that no claim is judged on."""
    judged = ("measurements", "comparisons", "refusals")
    return [
        dataclasses.replace(made_up(kind, 1), **WHAT_IS_SHOWN.get(table, {}))
        for table, kind in record_classes().items()
        if table not in judged
    ]


def measured(claim: str, measure: str, case: str, value: float, unit: str) -> Any:
    return Measurement(
        claim=claim, measure=measure, case_name=case, value_real=value, unit=unit
    )


def execute(made: StoreMaker, night: int, rows: list[Any]) -> None:
    """Executes the stages that the questions are about."""
    loss = measured("1.12", "heldout_nats_per_token", "", 1.2 + night, "nats")
    steps = measured("3.5", "largest_error_steps", "int8/crafted", 0.5, "steps")
    stages = {
        "evaluate_heldout": [*rows, loss],
        "quantize_cache": [steps],
        "certify_recovery": [*point("point-03", 31), update("point-03", 4)],
    }
    for stage, records in stages.items():
        made.execute(stage, records, key=f"key-{night}", reason="source changed: model")


def accept(made: StoreMaker, run_id: str) -> None:
    """Writes that a run is the baseline; whether it may be one is tested elsewhere."""
    name = "20261130-1"
    baseline = ledger.AcceptedBaseline(
        baseline_id=name,
        run_id=run_id,
        flow="qualify",
        preset="fixture",
        data_sha256="d",
        implementation="",
        accepted_at=made.now(),
        host="host",
        note="as it were",
    )
    contents = read_store(made.store.root, run_id, tables=["runs"])
    links = contents.rows[ledger.RunStage]
    rests_on = {x.stage: x.execution_id for x in links if x.run_id == run_id}
    path = made.store.root / baselines.FOLDER / f"{name}.json"
    path.parent.mkdir()
    path.write_bytes(seal(baselines.document_of(baseline, rests_on)))


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which three nights computed, one reused, and one failed.

    The last two nights that computed were about one system.
    """
    made = StoreMaker(Store(tmp_path_factory.mktemp("nights") / "evidence"))
    artifact = tmp_path_factory.mktemp("files") / "parameters.npz"
    artifact.write_bytes(b"parameters")
    parts = {"waiting_ns": 1, "program_ns": SECOND_NS // 2, "recording_ns": 2}
    parts |= {"hashing_ns": 3, "key_ns": 4}
    times = {"elapsed_ns": 2 * SECOND_NS, "starting_ns": SECOND_NS, "ending_ns": 5}
    for night, system in enumerate(("system-0", "system-1", "system-1")):
        execute(made, night, plain_rows())
        made.run(f"run-{night}", parts=parts, times=times, system=system)
    accept(made, "run-1")
    made.run("run-3", status="failed", message="train_model failed: The disk is full.")
    made.run("run-4", state="reused", parts=parts, times=times, system="system-1")
    return made.store.root


@pytest.fixture(scope="module")
def wholes(nights: Path) -> Iterator[dict[str, Any]]:
    """The store opened with everything, by the run that is selected."""
    opened = {run: open_warehouse(nights, run) for run in ("run-0", "run-1")}
    yield opened
    for connection in opened.values():
        connection.close()


@pytest.mark.parametrize("example", examples(), ids=lambda text: text.splitlines()[0])
def test_a_question_of_the_readme_has_an_answer(nights: Path, example: str) -> None:
    """A condition that never holds would be an empty answer, which reads as good news.

    The store is opened as `harness sql` does, with what the question reads alone.
    """
    names = names_read(example, known_names())
    assert names is not None, "it would open everything"
    with open_warehouse(nights, names=names) as connection:
        answer = ask(connection, example)
    assert len(set(answer.names)) == len(answer.names)
    asked = example.splitlines()[0]
    assert asked.startswith("-- ")
    may_be_empty = re.search(r"no row|: none", asked)
    assert answer.rows or may_be_empty, example


def test_there_are_more_questions_than_ten_and_few_may_be_empty() -> None:
    asked = [example.splitlines()[0] for example in examples()]
    assert len(asked) == len(set(asked)) >= 20
    assert len([text for text in asked if re.search(r"no row|: none", text)]) <= 3


@pytest.mark.parametrize(
    "view", [v for v in read_views() if v.is_selected], ids=lambda view: view.name
)
@pytest.mark.parametrize("run", ["run-0", "run-1"])
def test_a_view_about_the_selected_subject_needs_no_history(
    nights: Path, wholes: dict[str, Any], view: ViewFile, run: str
) -> None:
    """It is opened without the rows of other subjects, which may change nothing."""
    told = f"select * from {view.name}"
    with open_warehouse(nights, run, names=[view.name]) as narrow:
        assert narrow.execute("from raw.selection").fetchall()[0][-1] is False
        assert narrow.execute(told).fetchall() == wholes[run].execute(told).fetchall()


def test_what_was_opened_for_a_question_answers_as_a_whole_store_does(nights):
    """Leaving tables out saves time and may change no answer.

    Rows that a question does not order may come in any order.
    """
    with open_warehouse(nights) as whole:
        for example in examples():
            with open_warehouse(
                nights, names=names_read(example, known_names())
            ) as part:
                rows, all_rows = ask(part, example).rows, ask(whole, example).rows
                assert sorted(rows, key=repr) == sorted(all_rows, key=repr), example
