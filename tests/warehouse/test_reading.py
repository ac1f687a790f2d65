"""Damage is found before a number is shown, and told; the rest stays readable."""

from pathlib import Path

import pytest

from tests.warehouse.damaged import files_of, flip
from tests.warehouse.made_rows import OPEN, UNDRILLED
from warehouse.errors import StoreError, UnknownRun
from warehouse.load import build_warehouse, open_warehouse
from warehouse.reading import read_store
from warehouse.records.claims import Measurement
from warehouse.sealed import seal, unseal


@pytest.mark.parametrize("place", [0.0, 0.3, 0.5, 0.999])
@pytest.mark.parametrize(
    "kind", ["evidence", "other evidence", "artifact", "commit record"]
)
def test_a_flipped_byte_takes_its_stage_out_and_leaves_the_other(
    whole, opened, rules, kind: str, place: float
):
    stages = {1: "train_model", 2: "evaluate_heldout"}
    for path in files_of(whole, kind):
        good = path.read_bytes()
        flip(path, place)
        connection = opened(*rules)
        found = connection.execute("select kind, path, stage from damage").fetchall()
        assert found == [
            (
                kind.removeprefix("other "),
                str(path.relative_to(whole.store.root)),
                found[0][2],
            )
        ]
        damaged = next(n for n, stage in stages.items() if stage == found[0][2])
        verdicts = dict(
            connection.execute("select claim, verdict from verdicts").fetchall()
        )
        assert verdicts[f"1.{damaged}"] == OPEN
        assert verdicts[f"1.{3 - damaged}"] == UNDRILLED
        counted = connection.execute(
            "select count(*) from stg_measurements where stage = ?", [found[0][2]]
        )
        assert counted.fetchone() == (0,)
        step = connection.execute(
            "select next_step from verdicts where verdict = ?", [OPEN]
        ).fetchone()
        assert step[0].startswith("harness run")
        assert "damaged" in step[0] or "missing" in step[0]
        path.write_bytes(good)


@pytest.mark.parametrize("kind", ["evidence", "artifact", "commit record"])
def test_a_missing_file_is_damage_and_not_an_empty_table(
    whole, opened, rules, kind: str
):
    files_of(whole, kind)[0].unlink()
    connection = opened(*rules)
    verdicts = connection.execute(
        "select verdict from verdicts order by all"
    ).fetchall()
    assert verdicts == [(UNDRILLED,), (OPEN,)]


@pytest.mark.parametrize("name", ["started.json", "finished.json"])
def test_an_altered_run_record_is_told_and_its_run_not_believed(
    whole, opened, rules, name: str
):
    flip(whole.store.root / "runs/run-1" / name, 0.5)
    connection = opened(*rules)
    found = connection.execute("select kind, run_id from damage").fetchall()
    assert found == [("run record", "run-1")]
    assert connection.execute("select distinct verdict from verdicts").fetchall() == [
        (OPEN,)
    ]


def test_damage_of_an_artifact_that_the_subject_does_not_use_costs_no_hashing(
    whole, opened, rules
):
    whole.executions.clear()
    whole.run("run-2", system="system-2")
    for path in files_of(whole, "artifact"):
        flip(path, 0.5)
    assert opened(*rules).execute("from damage").fetchall() == []
    assert len(opened(*rules, run="run-1").execute("from damage").fetchall()) == 2


def test_rests_of_unfinished_writes_are_never_read(whole, opened, rules):
    (whole.store.root / "temporary/1.x.part").write_bytes(b"rest")
    (whole.store.root / "records/half").mkdir()
    (whole.store.root / "records/half/measurements.parquet").write_bytes(b"PAR1")
    connection = opened(*rules)
    assert connection.execute("from damage").fetchall() == []
    assert connection.execute("select count(*) from stg_measurements").fetchone() == (
        2,
    )


def test_rows_keep_the_order_in_which_they_were_written(
    made, opened, claim, requirement
):
    values = [5, 3, 9, 1]
    records = [
        Measurement(claim="1.1", measure="errors", value_count=value, unit="errors")
        for value in values
    ]
    made.execute("train_model", records)
    found = opened(claim(requirement())).execute(
        "select value_count from stg_measurements order by row_number"
    )
    assert [value for (value,) in found.fetchall()] == values


def test_a_run_is_named_by_id_beginning_or_latest(made):
    for name in ("alpha-1", "alpha-2", "beta-1", "beta-10"):
        made.run(name, system=name)

    def chosen(name: str | None) -> str:
        (row,) = (
            open_warehouse(made.store.root, name)
            .execute("select run_id from selection")
            .fetchall()
        )
        return row[0]

    assert chosen(None) == chosen("latest") == "beta-10"
    assert chosen("alpha-2") == "alpha-2"
    assert chosen("beta-1") == "beta-1"
    assert chosen("beta-10") == "beta-10"
    with pytest.raises(UnknownRun, match=r"'alpha' begins several .*alpha-2, alpha-1"):
        chosen("alpha")
    with pytest.raises(UnknownRun, match=r"'gamma' is unknown: .*beta-10, beta-1,"):
        chosen("gamma")
    with pytest.raises(UnknownRun, match="names no run"):
        chosen("")


def test_the_latest_of_no_runs_is_unknown_but_a_review_of_nothing_is_possible(made):
    with pytest.raises(UnknownRun, match="names no run of this store"):
        read_store(made.store.root, "latest")
    connection = open_warehouse(made.store.root)
    assert connection.execute("from selection").fetchall() == [("", "", True)]


def test_a_folder_that_is_no_store_yet_is_told(tmp_path: Path):
    with pytest.raises(StoreError, match="harness run"):
        open_warehouse(tmp_path / "nothing")


def test_a_killed_run_reads_interrupted_and_a_finished_one_counts_its_stages(
    whole, opened, rules
):
    whole.run("run-2", state="reused")
    whole.run("run-3", is_finished=False)
    found = opened(*rules).execute(
        "select run_id, status, executed_stages, reused_stages, duration_ns from runs"
    )
    assert found.fetchall() == [
        ("run-3", "interrupted", None, None, None),
        ("run-2", "completed", 0, 2, 1_000_000_000),
        ("run-1", "completed", 2, 0, 1_000_000_000),
    ]


def test_a_run_record_of_before_the_times_stays_readable(whole, opened):
    """The columns of later versions are null; they would be wrong as 0."""
    path = whole.store.root / "runs" / "run-1" / "finished.json"
    document = unseal(path.read_bytes())
    later = {"elapsed_ns", "starting_ns", "ending_ns"}
    assert later <= document.keys()
    parts = {"waiting_ns", "program_ns", "recording_ns", "hashing_ns", "key_ns"}
    for link in document["links"]:
        for name in parts:
            del link[name]
    old = {name: value for name, value in document.items() if name not in later}
    path.write_bytes(seal(old))
    connection = opened()
    assert connection.execute("from damage").fetchall() == []
    found = connection.execute("select elapsed_ns, starting_ns, ending_ns from runs")
    assert found.fetchall() == [(None, None, None)]
    found = connection.execute(
        "select duration_ns, waiting_ns, program_ns, recording_ns, hashing_ns, key_ns "
        "from run_stages"
    )
    assert found.fetchall() == [(1_000_000_000, *[None] * 5)] * 2
    reasons = connection.execute(
        "select null_when from table_columns where table_name = 'raw.run_links' and "
        "column_name = 'key_ns'"
    ).fetchone()
    assert "version that did not take it" in reasons[0]


def test_why_a_stage_ran_again_names_the_components_that_differ(made, rows, opened):
    old = {"source:model.cache": "aa", "config:train.updates": "300", "gone": "1"}
    new = {"source:model.cache": "bb", "config:train.updates": "300", "came": "2"}
    made.execute("train_model", [], key="old", components=old)
    made.run("run-1")
    made.execute("train_model", [], key="new", components=new)
    made.run("run-2")
    made.run("run-3", state="reused")
    connection = opened()
    question = (
        "select component, previous_value, value from why_executed where run_id = ?"
    )
    assert connection.execute(question, ["run-1"]).fetchall() == [("", None, None)]
    assert connection.execute(question, ["run-2"]).fetchall() == [
        ("came", None, "2"),
        ("gone", "1", None),
        ("source:model.cache", "aa", "bb"),
    ]
    assert connection.execute(question, ["run-3"]).fetchall() == [("", None, None)]


def test_without_history_only_the_subject_is_read_and_only_it_has_verdicts(
    whole, claim, requirement
):
    rules = [claim(requirement("1.1"))]
    made = build_warehouse(read_store(whole.store.root, None), rules, [])
    expected = made.execute("select * from verdicts").fetchall()
    whole.executions.clear()
    whole.execute("train_model", [], key="other")
    whole.run("run-2", system="system-2")
    contents = read_store(whole.store.root, "run-1", has_history=False)
    quick = build_warehouse(contents, rules, [])
    assert quick.execute("select * from verdicts").fetchall() == expected
    subjects = quick.execute("select count(*) from subject_verdicts").fetchone()
    assert subjects == (1,)
    assert quick.execute("select count(*) from runs").fetchone() == (2,)
    other = build_warehouse(read_store(whole.store.root, None), rules, [])
    assert other.execute("select count(*) from subject_verdicts").fetchone() == (2,)
