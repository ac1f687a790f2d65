"""Records of any content or form are damage, told by their path, and never a crash."""

import pytest

from tests.warehouse.damaged import files_of, reseal
from warehouse.sealed import unseal

NO_DOCUMENTS = {
    "nan": b'{"document_sha256": "x", "a": NaN}',
    "infinite": b'{"document_sha256": "x", "a": 1e999}',
    "deep": b"[" * 200_000,
    "not utf-8": b"\xff\xfe",
}


@pytest.mark.parametrize("data", NO_DOCUMENTS.values(), ids=NO_DOCUMENTS)
@pytest.mark.parametrize("kind", ["commit record", "run record"])
def test_a_record_of_any_content_is_damage_and_the_rest_stays_readable(
    whole, opened, rules, kind: str, data: bytes
):
    path = files_of(whole, kind)[0]
    path.write_bytes(data)
    connection = opened(*rules)
    found = connection.execute("select kind, path from damage").fetchall()
    assert found == [(kind, str(path.relative_to(whole.store.root)))]
    assert connection.execute("select count(*) from verdicts").fetchone() == (2,)
    assert len(whole.store.commits()) == (1 if kind == "commit record" else 2)


FILE = {"table": "measurements", "sha256": "0" * 64, "bytes": 1, "rows": 1}


MALFORMED_COMMITS = [
    {"components": [1]},
    {"components": {"stage:name": 1}},
    {"components": {"stage:name": "\ud800"}},
    {"artifacts": 1},
    {"artifacts": [{"name": "../x", "sha256": "0" * 64, "bytes": 1}]},
    {"artifacts": [{"name": "x", "sha256": "../../../etc", "bytes": 1}]},
    {"files": [{**FILE, "table": "../../../etc/passwd"}]},
    {"files": [{**FILE, "rows": 2**63}]},
    {"files": [{**FILE, "bytes": True}]},
    {"reason": None},
]


@pytest.mark.parametrize("changes", MALFORMED_COMMITS, ids=str)
def test_a_sealed_commit_record_of_another_form_is_damage(
    whole, opened, rules, changes
):
    path = files_of(whole, "commit record")[0]
    reseal(path, **changes)
    connection = opened(*rules)
    found = connection.execute("select kind, path from damage").fetchall()
    assert found == [("commit record", str(path.relative_to(whole.store.root)))]
    assert connection.execute("select count(*) from stg_measurements").fetchone() == (
        1,
    )


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("started.json", {"components": [1]}),
        ("started.json", {"process_id": "one"}),
        ("started.json", {"preset": None}),
        ("finished.json", {"links": [1]}),
        ("finished.json", {"links": 3}),
        ("finished.json", {"message": 4}),
    ],
    ids=str,
)
def test_a_sealed_run_record_of_another_form_is_damage(
    whole, opened, rules, name: str, changes
):
    reseal(whole.store.root / "runs/run-1" / name, **changes)
    found = opened(*rules).execute("select kind, run_id from damage").fetchall()
    assert found == [("run record", "run-1")]


def test_a_link_cannot_name_a_file_outside_the_store(whole, opened, rules):
    path = whole.store.root / "runs/run-1/finished.json"
    links = unseal(path.read_bytes())["links"]
    reseal(path, links=[{**links[0], "stage": "/etc"}])
    found = opened(*rules).execute("select kind, run_id from damage").fetchall()
    assert found == [("run record", "run-1")]


def test_a_missing_commit_record_of_a_run_is_listed(whole, opened, rules):
    path = files_of(whole, "commit record")[0]
    path.unlink()
    found = opened(*rules).execute("select kind, path, problem from damage").fetchall()
    place = str(path.relative_to(whole.store.root))
    assert found == [("commit record", place, "is missing")]


def test_a_time_that_is_none_is_no_duration_and_no_crash(whole, opened, rules):
    reseal(whole.store.root / "runs/run-1/started.json", started_at="yesterday")
    reseal(files_of(whole, "commit record")[0], started_at="before")
    connection = opened(*rules)
    assert connection.execute("select duration_ns from runs").fetchall() == [(None,)]
    stages = connection.execute("select stage_seconds from stage_durations").fetchall()
    assert None in [row[0] for row in stages]
