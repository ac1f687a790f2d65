"""What runs where when several processes share the tests: `make test`.

Much of the suite waits (for servers, automations, browsers), so three processes overlap
that with tests that compute. A file stays in one process, because its fixtures are made
once for it, and so do files that share a fixture which takes long.
"""

import os
from collections import Counter
from collections.abc import Collection
from typing import Any

import pytest

from tests.services import LEFT_OUT

GROUPS = {
    "deaths": ("deploy/test_deaths.py",),
    "qualified": (
        "flows/test_daily_use.py",
        "flows/test_inference_stages.py",
        "flows/test_pages.py",
        "flows/test_qualify.py",
        "flows/test_target.py",
    ),
    "certified": (
        "tasks/test_certify_crash.py",
        "tasks/test_certify_recovery.py",
        "tasks/test_drill_recovery.py",
        "tasks/test_killed_training.py",
    ),
    "rehearsed_on_hosts": ("deploy/test_hosts.py", "deploy/test_slice.py"),
    "rehearsal": ("tasks/test_rehearse_target.py",),
    "operated": ("flows/test_operate.py",),
    "training stages": ("tasks/test_training_stages.py",),
    "prefect_server": (
        "flows/test_left_task_runs.py",
        "flows/test_nested_flows.py",
        "flows/test_parameters.py",
        "flows/test_published.py",
        "flows/test_tended_server.py",
        "tasks/test_reuse.py",
        "tasks/test_stage.py",
    ),
    "regression": ("flows/test_regression.py",),
    "rehearsed": (
        "flows/test_target_import.py",
        "model/checks/test_target_result.py",
        "model/checks/test_workload_trace.py",
    ),
    "operated with others": ("flows/test_operate_shared.py",),
    "checked": ("flows/test_check.py",),
}
"""Files that run in one process, the groups that take longest first, those that wait
and those that compute in turn. Every other file is a group of its own."""
WAITING = ("deploy/", "flows/", "tasks/")
"""Where the other files wait for processes of their own, most of the time."""
SHARED = (
    "certified",
    "prefect_server",
    "qualified",
    "rehearsed",
    "rehearsed_on_hosts",
)
"""Fixtures that several files share; their groups have their names."""
_GROUP_OF = {file: name for name, files in GROUPS.items() for file in files}


def process_name() -> str:
    """Returns the name of this process among several, or nothing."""
    return os.environ.get("PYTEST_XDIST_WORKER", "")


def group_of(nodeid: str) -> str:
    """Returns the group of a test: one that is named, or its file."""
    file = nodeid.partition("::")[0].removeprefix("tests/")
    return _GROUP_OF.get(file, file)


def refuse_lost(nodeid: str, fixtures: Collection[str]) -> None:
    """Refuses a test outside the group of a fixture that it uses.

    Raises:
        pytest.UsageError: The fixture would be made in two processes.
    """
    group = group_of(nodeid)
    lost = [name for name in SHARED if name in fixtures and name != group]
    if lost:
        raise pytest.UsageError(
            f"{nodeid} uses {', '.join(lost)}; add its file to that group in "
            "tests/distribution.py."
        )


def _places(others: Collection[str]) -> dict[str, float]:
    """Returns where each group comes: those that are named, then the other files.

    Of these, too, one that waits comes beside one that computes.
    """
    places = {name: float(place) for place, name in enumerate(GROUPS)}
    waiting = [file for file in others if file.startswith(WAITING)]
    computing = [file for file in others if file not in waiting]
    for files in (waiting, computing):
        for place, file in enumerate(files):
            places[file] = len(GROUPS) + (place + 0.5) / len(files)
    return places


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Puts the tests of one process of several into the order of the groups."""
    if not hasattr(config, "workerinput"):
        return
    for item in items:
        refuse_lost(item.nodeid, getattr(item, "fixturenames", ()))
    others = dict.fromkeys(group_of(item.nodeid) for item in items)
    places = _places([name for name in others if name not in GROUPS])
    items.sort(key=lambda item: places[group_of(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Returns what gives out whole groups, in their order.

    Marks of xdist would do the same, but pytest 9.2 keeps the names of tests where
    xdist 3.8 does not find them.
    """
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return GroupScheduling(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tells the process that sums up which tests were left out here."""
    if hasattr(session.config, "workeroutput"):
        left_out = session.config.stash.get(LEFT_OUT, Counter())
        session.config.workeroutput["left_out"] = dict(left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keeps what a process left out; each of them has looked at every test."""
    left_out = getattr(node, "workeroutput", {}).get("left_out", {})
    node.config.stash[LEFT_OUT] = Counter(left_out)
