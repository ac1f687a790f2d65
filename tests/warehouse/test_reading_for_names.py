"""A store that is opened for one question is read and hashed as it has to be."""

from pathlib import Path

from warehouse import reading, shapes
from warehouse.evidence import from_parquet
from warehouse.load import open_warehouse

WRITTEN_BY = {
    "source:warehouse.records.claims": "1" * 64,
    "source:warehouse.schema": "2" * 64,
}


def intact(root: Path, *names: str):
    """Returns which executions are intact, in a store opened for some names."""
    with open_warehouse(root, names=["raw.executions", *names]) as connection:
        return connection.execute(
            "select execution_id, is_intact from raw.executions order by committed_at"
        ).fetchall()


def test_a_name_that_there_is_not_opens_everything(whole):
    with open_warehouse(whole.store.root, names=["runs", "verdict"]) as connection:
        assert len(connection.execute("from verdicts").fetchall()) > 20
    with open_warehouse(whole.store.root, names=["runs"]) as connection:
        assert len(connection.execute("from runs").fetchall()) == 1
        found = connection.execute("select table_name from information_schema.tables")
        assert {name for (name,) in found.fetchall()} == {"runs", "run_links"}


def test_an_altered_file_that_nobody_asked_for_discredits_its_execution(made, rows):
    """Whoever alters one file may have altered the rest of them."""
    good = made.execute("train_model", [rows["measurement"], rows["comparison"]])
    made.run("run-1")
    bad = made.execute("evaluate_heldout", [rows["measurement"], rows["comparison"]])
    made.run("run-2")
    path = made.store.evidence_file(bad.nonce, "comparisons")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    root = made.store.root
    assert intact(root) == [(good.nonce, True), (bad.nonce, False)]
    with open_warehouse(root, names=["stg_measurements"]) as connection:
        found = connection.execute("select execution_id from stg_measurements")
        assert found.fetchall() == [(good.nonce,)]


def test_a_table_nobody_asked_for_is_decoded_once_for_each_source_that_wrote_it(
    made, rows, monkeypatch
):
    decoded = []
    monkeypatch.setattr(
        reading, "from_parquet", lambda data: decoded.append(1) or from_parquet(data)
    )
    other = WRITTEN_BY | {"source:warehouse.schema": "3" * 64}
    for number, components in enumerate([WRITTEN_BY] * 3 + [other] * 2 + [{}, {}]):
        made.execute(
            "train_model",
            [rows["measurement"]],
            key=f"key-{number}",
            components=components,
        )
    assert [is_intact for _, is_intact in intact(made.store.root)] == [True] * 7
    # one for each of two sources, and two of which nobody knows the source
    assert len(decoded) == 4
    decoded.clear()
    with open_warehouse(made.store.root, names=["stg_measurements"]) as connection:
        assert len(connection.execute("from stg_measurements").fetchall()) == 7
    assert len(decoded) == 7


def test_a_table_of_another_shape_is_damage_whoever_asks(made, rows, monkeypatch):
    """Rows that an older version wrote otherwise are no rows of this version."""
    made.execute("train_model", [rows["measurement"]], components=WRITTEN_BY)
    made.run("run-1")
    monkeypatch.setattr(shapes, "schema_difference", lambda *_: "columns differ")
    assert [is_intact for _, is_intact in intact(made.store.root)] == [False]
