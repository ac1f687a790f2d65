"""The project's own files: what is installed, and what must never be in them."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

MACHINE_PATHS = re.compile(rb"/(?:ro[o]t|w[o]rk|h[o]me|t[m]p|Us[e]rs)/[A-Za-z]")
REGISTRY_WORDS = re.compile(r"https?://|file://|--(?:extra-)?index-url|--find-links")


def tracked(project: Path) -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=project,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return [project / name for name in names.split("\0") if name]


@pytest.fixture(scope="module")
def lock() -> str:
    return Path(__file__).parent.parent.joinpath("requirements.lock").read_text()


def locked_requirements(lock: str) -> list[str]:
    joined = lock.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line and not line.startswith("#")]


def test_every_locked_requirement_is_exact_and_hashed(lock: str) -> None:
    lines = locked_requirements(lock)
    assert len(lines) > 100
    for line in lines:
        assert re.match(r"^[A-Za-z0-9._-]+==[^ ]+", line), line
        assert "--hash=sha256:" in line, line


def test_the_lock_names_no_place_to_load_from(lock: str) -> None:
    assert REGISTRY_WORDS.search(lock) is None
    assert REGISTRY_WORDS.search("--index-url somewhere") is not None


def test_the_lock_holds_every_declared_dependency(lock: str, project: Path) -> None:
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    wanted = [*declared["dependencies"], *declared["optional-dependencies"]["dev"]]
    names = {re.split(r"[<>=!~ ]", entry)[0].lower() for entry in wanted}
    locked = {line.split("==")[0].lower() for line in locked_requirements(lock)}
    assert names - locked == set()


def test_no_file_holds_a_path_of_a_machine(project: Path) -> None:
    held = []
    for path in tracked(project):
        if path.is_relative_to(project / "tests" / "data"):
            continue  # other people's texts
        found = MACHINE_PATHS.search(path.read_bytes()) if path.is_file() else None
        if found:
            held.append((str(path.relative_to(project)), found.group(0)))
    assert held == []
    assert MACHINE_PATHS.search(b"open('/" + b"tmp/x')") is not None


def test_the_version_has_an_entry_in_the_changelog(project: Path) -> None:
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    changelog = (project / "CHANGELOG.md").read_text()
    assert f"## {declared['version']} " in changelog


def test_decisions_are_numbered_in_order_and_dated(project: Path) -> None:
    decisions = (project / "DECISIONS.md").read_text()
    headings = re.findall(r"^## (\d+)\. .+\n\n(\d{4}-\d\d-\d\d)\.", decisions, re.M)
    assert [int(number) for number, _ in headings] == list(range(1, len(headings) + 1))
    assert len(headings) == decisions.count("\n## ")
    assert decisions.count("Rejected") >= len(headings)
