"""Settings every test runs under: strict JAX, several CPU devices, no outside state.

The environment is set before JAX or Prefect can be imported, and child processes
inherit it, so a program started by a test computes under the same rules as the test.
"""

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import distribution, services
from tests.target_results import rehearse

PROJECT = Path(__file__).resolve().parent.parent

# A shell that starts us in the background has Ctrl-C ignored, and what we start too.
signal.signal(signal.SIGINT, signal.default_int_handler)

STRICT = {
    "NPROC": "2",
    "JAX_PLATFORMS": "cpu",
    "JAX_NUMPY_DTYPE_PROMOTION": "strict",
    "JAX_NUMPY_RANK_PROMOTION": "raise",
    "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
    "MPLBACKEND": "agg",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "NO_COLOR": "1",
}
os.environ.update(STRICT)
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(PROJECT / ".cache" / "jax-tests")
)
# The private server of `harness run` keeps its database from one run of the tests to
# the next. It is made for one user, so each of several processes has its own.
os.environ.setdefault(
    "XDG_CACHE_HOME",
    str(PROJECT / ".cache" / f"home{distribution.process_name()}"),
)
os.environ["PREFECT_HOME"] = tempfile.mkdtemp(prefix="text-harness-prefect-")
atexit.register(shutil.rmtree, os.environ["PREFECT_HOME"], ignore_errors=True)
os.environ["PYTHONPATH"] = str(PROJECT)
# One process of several is given a width of its own.
for name in (
    "HARNESS_ROOT",
    "PREFECT_API_URL",
    "PREFECT_PROFILE",
    "FORCE_COLOR",
    "COLUMNS",
):
    os.environ.pop(name, None)


def pytest_configure(config: pytest.Config) -> None:
    """Adds our own plugins; each has a hook for the list of tests."""
    for plugin in (services, distribution):
        config.pluginmanager.register(plugin)


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """Takes back what a test has put into the environment, as a command does."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def project() -> Path:
    """The folder of the project, for tests that read its own files."""
    return PROJECT


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One Prefect test server for the session, started by the first test that asks.

    Not automatic: it takes about ten seconds, which tests of the model do not owe.
    The heartbeat is off, because its thread adds a second to every flow.
    """
    from prefect.settings import (
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        PREFECT_LOCAL_STORAGE_PATH,
        temporary_settings,
    )
    from prefect.testing.utilities import prefect_test_harness

    results = tmp_path_factory.mktemp("prefect-results")
    with (
        prefect_test_harness(server_startup_timeout=120),
        temporary_settings(
            {
                PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
                PREFECT_LOCAL_STORAGE_PATH: results,
            }
        ),
    ):
        yield


@pytest.fixture(scope="session")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of the whole script for a target on this CPU; it takes a minute."""
    folder = tmp_path_factory.mktemp("rehearsed") / "result"
    done = rehearse(folder)
    assert done.returncode == 0, done.stderr
    return folder
