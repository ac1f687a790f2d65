"""What `harness up` runs with is never kept where something else is asked for."""

import json
import os
import subprocess
import sys

import pytest

from flows.operator_state import MARK, Operated, keep_credentials
from flows.operator_wanted import (
    AlreadyRuns,
    Wanted,
    given_settings,
    refuse_difference,
)

SETTINGS = {"PREFECT_SERVER_API_HOST": "127.0.0.1", "PREFECT_LOGGING_LEVEL": "INFO"}
DATABASE = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
AUTH = "PREFECT_SERVER_API_AUTH_STRING"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith("PREFECT_SERVER_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def wanted(home):
    """A maker of what a call asks for."""

    def make(**others):
        asked = {
            "port": None,
            "settings": home / "laptop.env",
            "deployments": home / "prefect.yaml",
            "automations": home / "automations.yaml",
            "webhook": None,
            "limit": None,
            "root": home / "evidence",
            "is_foreground": False,
        }
        return Wanted(**{**asked, **others})

    return make


@pytest.fixture
def running(home):
    """What is on record, with a process that carries the mark."""
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, MARK: f"mark of {home}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        # Before that the process may still have the environment of this one.
        assert process.stdout is not None and process.stdout.readline()
        yield Operated(
            mark=f"mark of {home}",
            api_url="http://127.0.0.1:4200/api",
            root=str(home / "evidence"),
            settings=str(home / "laptop.env"),
            given=given_settings(SETTINGS),
            limit=1,
            port=4200,
        )


def test_what_is_asked_as_it_runs_or_not_at_all_is_kept(running, wanted):
    assert refuse_difference(None, wanted(), SETTINGS) is None
    for asked in (wanted(), wanted(port=4200, limit=1)):
        assert refuse_difference(running, asked, SETTINGS) is running


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"port": 4300}, "port 4200 (asked for: 4300)"),
        ({"limit": 2}, "limit 1 (asked for: 2)"),
        ({"root": "other"}, "(asked for: '{home}/other')"),
        ({"settings": "shared.env"}, "(asked for: '{home}/shared.env')"),
    ],
)
def test_another_option_is_refused_with_both_values(
    asked, words, running, wanted, home
):
    options = {
        name: home / value if isinstance(value, str) else value
        for name, value in asked.items()
    }
    with pytest.raises(AlreadyRuns) as refused:
        refuse_difference(running, wanted(**options), SETTINGS)
    text = str(refused.value)
    assert words.format(home=home) in text
    assert text.endswith("`harness down` first, or call it as it runs.")
    assert text.count("asked for") == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {**SETTINGS, "PREFECT_SERVER_API_HOST": "0.0.0.0"},
            "PREFECT_SERVER_API_HOST '127.0.0.1' (asked for: '0.0.0.0')",
        ),
        (
            {"PREFECT_SERVER_API_HOST": "127.0.0.1"},
            "PREFECT_LOGGING_LEVEL 'INFO' (asked for: none)",
        ),
        (
            {**SETTINGS, DATABASE: "postgresql://me:secret@here"},
            f"another value of {DATABASE} than the one asked for",
        ),
    ],
)
def test_a_changed_line_of_the_settings_is_refused_and_no_secret_told(
    settings, words, running, wanted
):
    with pytest.raises(AlreadyRuns) as refused:
        refuse_difference(running, wanted(), settings)
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_variable_of_the_server_that_is_set_now_counts(running, wanted, monkeypatch):
    monkeypatch.setenv("PREFECT_SERVER_LOGGING_LEVEL", "DEBUG")
    with pytest.raises(AlreadyRuns, match=r"LOGGING_LEVEL none \(asked for: 'DEBUG'"):
        refuse_difference(running, wanted(), SETTINGS)


def test_credentials_that_were_made_are_what_new_ones_are_held_against(running, wanted):
    keep_credentials("me:secret")
    same = {**SETTINGS, AUTH: "me:secret"}
    assert refuse_difference(running, wanted(), same) is running
    with pytest.raises(AlreadyRuns, match=f"another value of {AUTH}"):
        refuse_difference(running, wanted(), {**SETTINGS, AUTH: "me:other"})


def test_of_secrets_the_record_holds_a_digest(home):
    address = "postgresql+asyncpg://me:hidden@here/prefect"
    given = given_settings({**SETTINGS, DATABASE: address})
    assert given.items() > SETTINGS.items()
    assert given[DATABASE].startswith("sha256:")
    assert "hidden" not in json.dumps(given)


def test_what_has_ended_and_records_of_before_refuse_nothing(running, wanted):
    import dataclasses

    ended = dataclasses.replace(running, mark="nobody has this")
    assert refuse_difference(ended, wanted(limit=2), SETTINGS) is None
    old = dataclasses.replace(running, given=None)
    assert refuse_difference(old, wanted(), {}) is old
