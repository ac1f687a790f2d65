"""A body cannot run, record or keep anything that its stage did not declare."""

import dataclasses
from pathlib import Path

import pytest

from model.folders import folder_sha256
from tasks import progress
from tasks.errors import ProgramRefused, ResultsMalformed, RuntimeChanged
from tasks.identity import StageDefinition
from tasks.work import Work
from warehouse.errors import RecordError, StoreError
from warehouse.records.claims import Measurement, Refusal
from warehouse.records.execution import ProgramExecution
from warehouse.store import Execution, Store

STAGE = StageDefinition(
    "scale_number",
    "tiny_tasks.scale_number",
    ("tiny.programs.scale_number",),
    (Measurement,),
)


@pytest.fixture
def work(tiny, tmp_path_factory):
    def make(stage=STAGE, runtime=None, **changes):
        store, folder = Store(tiny.root), tmp_path_factory.mktemp("work")
        return Work(stage, store, runtime or {}, folder, **changes)

    return make


def _run(work, **request):
    return work.run("tiny.programs.scale_number", {"number": 3, **request})


def test_rows_and_artifacts_of_a_program_are_gathered(work):
    mine = work()
    run = _run(mine)
    kinds = [type(record) for record in mine.records]
    assert kinds == [ProgramExecution, Measurement]
    assert mine.records[0].process_id == run.process_id
    assert mine.records[1].value_count == 6
    assert list(mine.kept) == ["number.txt"]


@pytest.mark.parametrize("is_heard", [True, False])
def test_only_work_that_is_heard_tells_what_it_does(work, is_heard: bool):
    mine = work(is_heard=is_heard)
    heard: list[str] = []
    with progress.listening(lambda stage, _: heard.append(stage)):
        _run(mine)
    assert bool(heard) is is_heard


def test_a_trial_leaves_out_the_programs_that_it_was_told(work):
    program = STAGE.programs[0]
    assert work().is_asked_for(program)
    assert not work(left_out=[program]).is_asked_for(program)


def test_a_run_that_is_not_gathered_leaves_only_its_process(work):
    mine = work()
    mine.run("tiny.programs.scale_number", {"number": 3}, gather=False)
    assert [type(record) for record in mine.records] == [ProgramExecution]
    assert not mine.kept


def test_a_program_outside_the_key_is_not_run(work):
    with pytest.raises(ResultsMalformed, match="not among its programs"):
        work().run("tiny.programs.add_one", {})


def test_rows_of_an_undeclared_table_are_refused(work):
    undeclared = dataclasses.replace(STAGE, writes=(Refusal,))
    with pytest.raises(ResultsMalformed, match="'measurements'"):
        _run(work(undeclared))


def test_a_record_of_another_class_is_refused(work):
    row = Measurement(claim="1.1", measure="m", value_count=1, unit="1")
    undeclared = dataclasses.replace(STAGE, writes=(Refusal,))
    with pytest.raises(ResultsMalformed, match="Measurement"):
        work(undeclared).record(row)


def test_a_row_that_does_not_fit_its_class_is_refused(tiny, work):
    tiny.replace("tiny/programs/entry.py", '"detail": ""', '"colour": ""')
    with pytest.raises(RecordError, match="colour"):
        _run(work())


def test_two_artifacts_of_one_name_are_refused(work, tmp_path):
    mine = work()
    (tmp_path / "a.txt").write_text("a")
    mine.keep(tmp_path / "a.txt", "number.txt")
    with pytest.raises(ResultsMalformed, match=r"two artifacts named 'number\.txt'"):
        _run(mine)


def test_nothing_reaches_the_store_before_the_execution_is_committed(tiny, work):
    """A stage that fails after its program would leave artifacts nobody names."""
    mine = work()
    before = folder_sha256(tiny.root)
    _run(mine)
    assert folder_sha256(tiny.root) == before
    (artifact,) = mine.store_artifacts()
    assert artifact.name == "number.txt"
    assert folder_sha256(tiny.root) != before


def test_a_program_on_another_runtime_than_the_key_says_is_refused(work):
    with pytest.raises(RuntimeChanged, match=r"jaxlib '1' -> '2'"):
        _run(work(runtime={"jaxlib": "1"}), runtime={"jaxlib": "2"})
    run = work(runtime={"jaxlib": "1"}).run(
        "tiny.programs.scale_number",
        {"number": 3, "runtime": {"jaxlib": "2"}},
        environment={"XLA_FLAGS": ""},
    )
    assert run.runtime == {"jaxlib": "2"}


def test_fetching_hands_out_verified_files_by_name(tiny, work, tmp_path):
    mine = work()
    _run(mine)
    made = Execution(
        stage="scale_number",
        key="k",
        nonce="n",
        artifacts=tuple(mine.store_artifacts()),
    )
    files = mine.fetch(made, "number.txt")
    assert list(files) == ["number.txt"] == list(mine.fetch(made))
    with pytest.raises(StoreError, match=r"absent\.txt"):
        mine.fetch(made, "absent.txt")
    Path(files["number.txt"]).write_text("7")
    with pytest.raises(StoreError, match="altered"):
        mine.fetch(made, "number.txt")


def test_scratch_folders_last_and_are_one_a_name(work):
    mine = work()
    (mine.scratch("checkpoints") / "file").write_text("1")
    assert (mine.scratch("checkpoints") / "file").read_text() == "1"
    assert mine.scratch("other") != mine.scratch("checkpoints")


def test_a_program_that_refuses_is_on_record_too(tiny, work):
    stage = dataclasses.replace(STAGE, programs=("tiny.programs.misbehave",))
    mine = work(stage)
    with pytest.raises(ProgramRefused) as refused:
        mine.run("tiny.programs.misbehave", {"how": "refuse"})
    assert (refused.value.code, refused.value.fields) == (
        "split_empty",
        ("splits.train",),
    )
    assert [(row.program, row.return_code) for row in mine.records] == [
        ("tiny.programs.misbehave", 2)
    ]
