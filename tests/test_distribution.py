"""Which process runs which test, shown by a pytest of two processes of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import distribution
from tests.distribution import GROUPS, SHARED, refuse_lost

CONFTEST = """
import os
import pytest
from tests import distribution, services
services.BROWSERS = ()
distribution._GROUP_OF.update({
    "test_qualified_a.py": "qualified", "test_qualified_b.py": "qualified"
})

def pytest_configure(config):
    config.addinivalue_line("markers", "needs(service): x")
    for plugin in (services, distribution):
        config.pluginmanager.register(plugin)

def note(word):
    with open("noted.txt", "a") as file:
        file.write(f"{word} {os.environ['PYTEST_XDIST_WORKER']}\\n")

@pytest.fixture(scope="session")
def qualified():
    note("qualified")

@pytest.fixture(scope="module")
def own(request):
    note(request.module.__name__.rpartition(".")[2])
"""
USING_QUALIFIED = "def test_it(qualified): pass\ndef test_beside_it(): pass\n"
MANY = """
import pytest
@pytest.mark.parametrize("number", range(9))
def test_it(number, own): pass
"""
NEEDING = """
import pytest
@pytest.mark.needs("browser")
def test_it(): pass
"""


@pytest.fixture(scope="module")
def distributed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """What two processes printed, and which of them made which fixture, in order."""
    folder = tmp_path_factory.mktemp("distributed")
    files = {
        "conftest": CONFTEST,
        **{f"test_many_{name}": MANY for name in "abc"},
        **{f"test_qualified_{name}": USING_QUALIFIED for name in "ab"},
        "test_needing": NEEDING,
    }
    for name, text in files.items():
        folder.joinpath(f"{name}.py").write_text(text)
    options = ("-p", "xdist", "-p", "no:cacheprovider", "-v", "--rootdir", folder)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-n", "2", folder],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "REQUIRE": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, folder.joinpath("noted.txt").read_text().splitlines()


def test_a_fixture_of_a_session_or_a_file_is_made_in_one_process(
    distributed: tuple[str, list[str]],
) -> None:
    made = sorted(line.split()[0] for line in distributed[1])
    assert made == ["qualified", "test_many_a", "test_many_b", "test_many_c"]


def test_two_processes_were_at_work_and_what_takes_long_came_first(
    distributed: tuple[str, list[str]],
) -> None:
    out, noted = distributed
    assert {line.split()[1] for line in noted} == {"gw0", "gw1"}
    qualified = [line for line in out.splitlines() if "PASSED test_qualified_" in line]
    assert len({line.split()[0] for line in qualified}) == 1
    assert len(qualified) == 4
    (first,) = [line for line in noted if line.startswith("qualified")]
    # The other process may have begun long before.
    assert next(line for line in noted if line.split()[1] == first.split()[1]) == first


def test_what_waits_and_what_computes_are_given_out_in_turn(monkeypatch) -> None:
    monkeypatch.setattr(distribution, "GROUPS", {"named": ("flows/test_named.py",)})
    others = ["flows/a.py", "flows/b.py", "model/c.py", "model/d.py", "warehouse/e.py"]
    places = distribution._places(others)
    order = sorted(places, key=places.__getitem__)
    assert order == [
        *("named", "model/c.py", "flows/a.py", "model/d.py"),
        *("flows/b.py", "warehouse/e.py"),
    ]


def test_what_was_left_out_is_told_by_the_process_that_sums_up(
    distributed: tuple[str, list[str]],
) -> None:
    named, last = distributed[0].splitlines()[-2:]
    assert named == "left out: browser (no chromium): 1 test"
    assert "31 passed" in last


def test_a_file_outside_the_group_of_a_fixture_that_it_uses_is_refused() -> None:
    refuse_lost("tests/flows/test_pages.py::test_it", ["qualified", "tmp_path"])
    refuse_lost("tests/flows/test_new.py::test_it", ["tmp_path"])
    with pytest.raises(
        pytest.UsageError, match=r"test_new\.py::test_it uses qualified"
    ):
        refuse_lost("tests/flows/test_new.py::test_it", ["qualified"])


def test_every_file_of_a_group_and_every_shared_fixture_is_there(project: Path) -> None:
    """A renamed file would lose its group without a word."""
    tests = project / "tests"
    missing = [
        f for files in GROUPS.values() for f in files if not (tests / f).exists()
    ]
    assert missing == []
    fixtures = [path.read_text() for path in tests.rglob("conftest.py")]
    for name in SHARED:
        assert any(f"def {name}(" in text for text in fixtures)
        assert name in GROUPS
