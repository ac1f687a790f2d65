"""Parts of the report lie under keys that stay; what cannot be published is said."""

import re
import subprocess
import sys

import pytest

from flows import published
from flows.published import is_watched, key_of, publish, write_beside
from flows.reading import open_run, view_rows
from model.presets import PRESETS
from warehouse.report_parts import PLANS
from warehouse.report_rows import ReportRows

NEW = {"claim": "1.1", "verdict": "accept", "next_step": ""}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("part", [*PLANS, "report", "train_model-progress"])
def test_a_key_is_one_that_prefect_takes(preset, part):
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", key_of(preset, part))


def test_keys_of_two_presets_differ():
    assert len({key_of(preset, "verdicts") for preset in PRESETS}) == len(PRESETS)


@pytest.mark.usefixtures("prefect_server")
def test_a_run_leaves_its_parts_and_a_second_one_a_history(
    small_store, tmp_path, monkeypatch
):
    from prefect import flow
    from prefect.client.orchestration import get_client

    drawn = []
    monkeypatch.setattr(
        "warehouse.report_rows.draw_pictures", lambda rows: drawn.append(rows) or []
    )
    root = tmp_path / "evidence"
    connection = open_run(small_store, "latest")
    run_id = view_rows(connection, "runs")[0]["run_id"]

    @flow
    def publish_once():
        return publish(connection, root)

    assert (publish_once(), publish_once()) == ("", "")
    assert len(drawn) == 2, "page and parts show the same pictures"
    with get_client(sync_client=True) as client:
        response = client._client.post("/artifacts/filter", json={})
    made = response.json()
    by_key = {each["key"]: each for each in made}
    assert {"fixture-verdicts", "fixture-report"} <= by_key.keys()
    assert sum(each["key"] == "fixture-verdicts" for each in made) == 2
    assert run_id in by_key["fixture-verdicts"]["description"]
    page = root.with_name("evidence-reports") / f"{run_id}.html"
    assert page.is_file()
    assert page.as_uri() in by_key["fixture-report"]["data"]
    assert not root.exists(), "nothing may come into the evidence"


@pytest.mark.usefixtures("prefect_server")
def test_what_cannot_be_published_is_said_and_fails_nothing(
    small_store, tmp_path, monkeypatch
):
    from prefect import flow

    (tmp_path / "evidence-reports").write_text("a file where the folder should be")
    connection = open_run(small_store, "latest")

    @flow
    def publish_once():
        return publish(connection, tmp_path / "evidence")

    said = publish_once()
    assert said.startswith(" Not everything could be published (The report cannot be")
    assert said.endswith(").")


def test_only_the_newest_reports_are_kept(small_store, tmp_path, monkeypatch):
    monkeypatch.setattr(published, "KEPT_REPORTS", 3)
    folder = tmp_path / "evidence-reports"
    folder.mkdir()
    for year in (2001, 2002, 2003, 2004):
        (folder / f"{year}0101-000000-abcdef.html").touch()
    (folder / "notes.txt").touch()
    connection = open_run(small_store, "latest")
    run_id = view_rows(connection, "runs")[0]["run_id"]
    write_beside(ReportRows(connection), tmp_path / "evidence", run_id)
    assert sorted(path.name for path in folder.iterdir()) == [
        "20030101-000000-abcdef.html",
        "20040101-000000-abcdef.html",
        f"{run_id}.html",
        "notes.txt",
    ]


def test_what_draws_is_not_loaded_before_something_is_drawn(project):
    """It is two fifths of what a flow would have to load before its first stage."""
    code = "import sys, flows.regression, flows.certify, flows.target; "
    code += "print([n for n in ('matplotlib', 'jinja2', 'jax') if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=project
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_a_private_server_gets_nothing(tiny_harness, tmp_path, monkeypatch):
    """And the warehouse is not even opened for it."""
    from flows.local_server import PRIVATE

    monkeypatch.setenv(PRIVATE, "1")
    assert not is_watched()
    monkeypatch.delenv(PRIVATE)
    assert is_watched()
    process = tiny_harness("behave")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert not (tmp_path / "evidence-reports").exists()
