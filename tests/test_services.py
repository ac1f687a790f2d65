"""A missing service leaves its tests out and is named, or is a failure where required.

Run in a pytest of its own, on a file with one test that needs a service and one that
needs nothing, with a search path that holds neither browser nor server.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tests.services as services

TWO_TESTS = """
import pytest
@pytest.mark.needs("{name}")
def test_that_needs_it(): assert {name!r} == "never runs without the service"
def test_that_needs_nothing(): pass
"""


def run(folder: Path, name: str, **environment: str) -> subprocess.CompletedProcess:
    folder.joinpath("conftest.py").write_text(
        "import tests.services as services\n"
        "services.POSTGRESQL_FOLDERS = '/nonexistent'\n"
        "services.OWN_LIBTPU = '/nonexistent'\n"
        "from tests.services import *\n"
    )
    folder.joinpath("test_two.py").write_text(TWO_TESTS.format(name=name))
    folder.joinpath("pytest.ini").write_text("[pytest]\nmarkers = needs(service): x\n")
    arguments = ["-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "-ra"]
    return subprocess.run(
        [sys.executable, *arguments, "--rootdir", folder, folder],
        cwd=folder,
        env={
            **os.environ,
            "PATH": "",
            "REQUIRE": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **environment,
        },
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("browser", "no chromium"),
        ("postgresql", "no initdb"),
        ("libtpu", "no libtpu"),
    ],
)
def test_a_missing_service_is_left_out_and_named(tmp_path, name, reason):
    done = run(tmp_path, name)
    assert done.returncode == 0, done.stdout
    named, last = done.stdout.splitlines()[-2:]
    assert named == f"left out: {name} ({reason}): 1 test"
    assert "1 passed, 1 deselected" in last


@pytest.mark.parametrize("asked", ["all", "browser,postgresql", "browser"])
def test_a_missing_service_that_is_required_is_a_failure(tmp_path, asked):
    done = run(tmp_path, "browser", REQUIRE=asked)
    assert done.returncode == 1, done.stdout
    assert "REQUIRE asks for browser, but: no chromium." in done.stdout
    assert "left out" not in done.stdout


def test_requiring_another_service_changes_nothing(tmp_path):
    done = run(tmp_path, "postgresql", REQUIRE="browser")
    assert done.returncode == 0, done.stdout
    assert "left out: postgresql (no initdb): 1 test" in done.stdout


def test_a_service_nobody_knows_is_a_mistake(tmp_path):
    misspelt = run(tmp_path, "browser", REQUIRE="browzer")
    assert misspelt.returncode == 4
    assert "REQUIRE names ['browzer']" in misspelt.stderr
    marked = run(tmp_path, "browzer")
    assert marked.returncode == 4
    assert "needs ['browzer']: no service" in marked.stderr


def test_what_is_here_is_found_where_debian_puts_it(monkeypatch, tmp_path):
    for version in ("9.6", "15", "17"):
        folder = tmp_path / version / "bin"
        folder.mkdir(parents=True)
        folder.joinpath("initdb").touch()
    monkeypatch.setattr(services, "POSTGRESQL_FOLDERS", str(tmp_path))
    assert services.postgresql_folder() == tmp_path / "17" / "bin"
