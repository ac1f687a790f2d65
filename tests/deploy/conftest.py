"""Hosts that several test files share: made once, because they take long."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.reading import open_run, view_rows
from flows.target_hosts import unpacked
from tasks.rehearsal_on_hosts import RESULT
from tests.deploy.host_site import HostSite
from tests.deploy.seaweed import Seaweed
from tests.free_ports import free_port
from warehouse.store import Store

HOSTS = ("host-0", "host-1")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostSite]:
    """One server, a worker that gives orders, two that are hosts, and S3."""
    folder = tmp_path_factory.mktemp("hosts")
    weed = Seaweed(folder)
    site = HostSite(folder, free_port(), "s3://harness/gangs", **weed.environment)
    try:
        site.start_server()
        site.start_launcher()
        for host in HOSTS:
            site.start_host(host)
        site.prepare()
        weed.wait()
        yield site
    finally:
        site.stop()
        weed.stop()


@pytest.fixture(scope="session")
def rehearsed_on_hosts(
    site: HostSite, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The result of a rehearsal by the workers of two hosts, as they left it.

    The command is that of an operator; all that is checked came back through the URL.
    """
    done = site.prefect("deployment", "run", "target/rehearsal", "--watch")
    assert done.returncode == 0, done.stdout + site.logs()
    connection = open_run(site.root, "latest")
    (packed,) = [
        row["sha256"]
        for row in view_rows(connection, "run_artifacts", artifact=RESULT)
        if row["stage"] == "rehearse_remote"
    ]
    folder = tmp_path_factory.mktemp("result")
    return unpacked(Store(site.root).artifact_path(packed), folder)
