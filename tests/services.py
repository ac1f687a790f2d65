"""Services that pip cannot install: which tests need them, and what is left out.

`@pytest.mark.needs("postgresql")` names what a test needs. Where it is missing, the
test is deselected and the summary says so; with `REQUIRE=all`, or a list of names, it
fails instead, so that a build server cannot pass by having less.
"""

import importlib.util
import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"
LEFT_OUT = pytest.StashKey[Counter[str]]()
# Debian keeps the programs of a PostgreSQL server out of the search path.
POSTGRESQL_FOLDERS = "/usr/lib/postgresql"
OWN_LIBTPU = Path(__file__).parents[1] / ".cache" / "libtpu" / "libtpu" / "libtpu.so"


def browser() -> str | None:
    """Returns the path of a browser that can be driven."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def postgresql_folder() -> Path | None:
    """Returns the folder of the newest PostgreSQL server's programs."""
    installed = Path(POSTGRESQL_FOLDERS).glob("*/bin/initdb")
    found = max(installed, key=lambda path: float(path.parts[-3]), default=None)
    on_path = shutil.which("initdb")
    if found is None and on_path is not None:
        found = Path(on_path).resolve()
    return found.parent if found else None


def _no_browser() -> str | None:
    if browser() is None:
        return "no chromium"
    return None if shutil.which(DRIVER) else f"no {DRIVER}"


def _no_postgresql() -> str | None:
    if postgresql_folder() is None:
        return "no initdb"
    if os.geteuid() == 0 and not shutil.which("runuser"):
        return "root may not run it, and there is no runuser"
    return None


def libtpu() -> Path | None:
    """Returns the library that compiles for a TPU, wherever it is.

    It has a folder of its own: in the environment of the other tests it would answer
    where they ask for a TPU.
    """
    named = Path(os.environ.get("TPU_LIBRARY_PATH", OWN_LIBTPU))
    if named.is_file():
        return named
    spec = importlib.util.find_spec("libtpu")
    return Path(spec.origin).parent / "libtpu.so" if spec and spec.origin else None


def _no_libtpu() -> str | None:
    return None if libtpu() else "no libtpu"


MISSING: Mapping[str, Callable[[], str | None]] = {
    "browser": _no_browser,
    "libtpu": _no_libtpu,
    "postgresql": _no_postgresql,
}
"""For each service, a function that says why it is missing, or nothing."""


def required() -> set[str]:
    """Returns the services whose absence is a failure, as REQUIRE names them."""
    names = {name for name in os.environ.get("REQUIRE", "").split(",") if name}
    unknown = names - MISSING.keys() - {"all"}
    if unknown:
        raise pytest.UsageError(
            f"REQUIRE names {sorted(unknown)!r}; it is 'all' or a list of "
            f"{', '.join(MISSING)}."
        )
    return set(MISSING) if "all" in names else names


def _needed(item: pytest.Item) -> set[str]:
    names = {name for mark in item.iter_markers("needs") for name in mark.args}
    if unknown := names - MISSING.keys():
        raise pytest.UsageError(f"{item.nodeid} needs {sorted(unknown)!r}: no service.")
    return names


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leaves out tests whose service is missing, unless it is required."""
    optional = MISSING.keys() - required()
    reasons = {name: MISSING[name]() for name in optional}
    left_out = config.stash.setdefault(LEFT_OUT, Counter())
    kept, dropped = [], []
    for item in items:
        missing = [name for name in _needed(item) if reasons.get(name)]
        (dropped if missing else kept).append(item)
        left_out.update(f"{name} ({reasons[name]})" for name in missing)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fails a test whose service is required and missing."""
    for name in sorted(_needed(item)):
        if reason := MISSING[name]():
            pytest.fail(f"REQUIRE asks for {name}, but: {reason}.", pytrace=False)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Says which services were missing and how many tests that left out."""
    for service, count in sorted(config.stash.get(LEFT_OUT, Counter()).items()):
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.write_line(f"left out: {service}: {tests}")
