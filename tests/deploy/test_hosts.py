"""A gang on workers that share a server and one storage URL, for real.

Each worker has a home and folders of its own. Gangs of controllers that fail in some
way are stubs without JAX; the rehearsal trains. What its controllers left is judged in
`test_slice`.
"""

import dataclasses
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterTags
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.reading import open_run, view_rows
from tasks import gang_flow_runs
from tasks import hosts as pool
from tasks.gang import NO_END, Patience
from tasks.host_workers import HostsNotReady, require_workers
from tasks.remote_gang import RemoteHosts
from tasks.run_program import ProgramCall
from tasks.storage import Storage
from tasks.target_challenge import code_sha256
from tests.deploy.conftest import HOSTS
from tests.deploy.host_site import HostSite
from tests.deploy.site import processes
from tests.processes import wait_until

pytestmark = pytest.mark.timeout(1200)
PROGRAM = "stub_controller"


@pytest.fixture
def hosts(
    site: HostSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RemoteHosts]:
    """The hosts as a launcher of this process sees them."""
    for name, value in site.common.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "tokens").write_bytes(b"tokens")
    storage = Storage(site.storage).within("test")
    with temporary_settings({PREFECT_API_URL: site.url}):
        yield RemoteHosts(HOSTS, storage, {"tokens": str(tmp_path / "tokens")}, "cpu")


def calls(folder: Path, *acts: str) -> list[ProgramCall]:
    made = []
    for process, act in enumerate(acts):
        own = folder / f"controller-{process}"
        own.mkdir()
        request = {
            "process": process,
            "processes": len(acts),
            "platform": "cpu",
            "act": act,
            "code_sha256": code_sha256(),
        }
        call = ProgramCall(
            program=PROGRAM, request=request, folder=own, deadline_seconds=120
        )
        made.append(call)
    return made


def states(site: HostSite) -> Sequence[str]:
    """Returns the states of the flow runs of the newest gang, in order."""
    with site.client() as client:
        runs = client.read_flow_runs(
            flow_run_filter=FlowRunFilter(tags=FlowRunFilterTags(is_null_=False))
        )
    ours = [run for run in runs if run.name.startswith("controller-")]
    newest = max(ours, key=lambda run: run.created).tags
    return [
        run.state.name
        for run in sorted(ours, key=lambda run: run.name)
        if run.tags == newest
    ]


def test_the_rehearsal_by_workers_of_two_hosts_is_accepted(
    site: HostSite, rehearsed_on_hosts: Path
) -> None:
    connection = open_run(site.root, "latest")
    (claim,) = view_rows(connection, "verdicts", claim="5.14")
    assert claim["verdict"].startswith("accept"), claim
    challenges = view_rows(connection, "controller_challenges")
    assert [(row["gang"], row["controller"]) for row in challenges] == [
        (gang, number) for gang in ("restarted", "trained") for number in (0, 1)
    ]
    for row in challenges:
        assert row["stage"] == "rehearse_remote"
        assert row["is_nonce_repeated"] and row["is_code_demanded"]
    unlisted = {row["measure"] for row in view_rows(connection, "unlisted_rows")}
    assert not [name for name in unlisted if name.startswith("rehearsed_")]
    (ended,) = view_rows(
        connection, "claim_rows", measure="rehearsed_end_seconds", claim="5.14"
    )
    assert ended["detail"] == "controller 1: ended by SIGKILL"
    (rung,) = view_rows(
        connection, "target_ladder", name="rehearsed on hosts", platform="tpu"
    )
    assert rung["verdict"] == "accept", rung
    # Hosts keep nothing, and know of no store.
    for host in HOSTS:
        left = [p for p in (site.folder / host).rglob("*.npz") if p.is_file()]
        assert left == []
        assert not list((site.folder / host).rglob("commit.json"))


def test_a_host_with_other_code_is_refused_and_the_others_end_in_time(
    site: HostSite, hosts: RemoteHosts, tmp_path: Path
) -> None:
    made, other = calls(tmp_path, "hang", "hang"), "0" * 64
    changed = {**made[1].request, "code_sha256": other}
    made[1] = dataclasses.replace(made[1], request=changed)
    started = time.monotonic()
    gang = hosts.run(made, Patience(), None)
    assert gang.failed == 1
    assert other in gang.cause and code_sha256() in gang.cause
    assert gang.processes_left == 0
    assert len(gang.runs[0].events) == 4, "what it told came back although it was ended"
    assert states(site) == ["Cancelled", "Failed"], gang
    assert processes("site", f"-m {PROGRAM}") == []
    limit = gang_flow_runs.FOLLOW_SECONDS + gang_flow_runs.END_SECONDS
    assert time.monotonic() - started < limit + gang_flow_runs.START_SECONDS


def test_hosts_without_the_platform_are_no_target(site: HostSite) -> None:
    """Whatever they are called: the probe of the first host ends it."""
    done = site.command(
        *("flows.entry_point", "target", "run", "--queues", ",".join(HOSTS)),
        *("--accelerator", "v5p-16", "--storage", site.storage),
    )
    assert done.returncode == 2, done.stdout + site.logs()
    told = done.stderr.splitlines()[-1]
    assert "refused (target_absent): platform 'tpu' cannot start" in told, done.stderr
    shown = site.command(
        *("flows.entry_point", "sql", "--format", "csv"),
        "select count(*) from stg_target_answers where stage = 'qualify_target'",
    )
    assert shown.stdout.split() == ["count_star()", "0"], shown.stderr


def test_a_host_without_a_worker_is_named_and_nothing_is_started(
    site: HostSite,
) -> None:
    with (
        site.client() as client,
        pytest.raises(HostsNotReady, match=r"'host-9'.*nothing was started.*host-9"),
    ):
        require_workers(client, ["host-0", "host-9"], seconds=0.0)
    with site.client() as client:
        queues = client.read_work_queues(work_pool_name=pool.POOL)
    assert "host-9" not in {queue.name for queue in queues}
    with site.client() as client, pytest.raises(HostsNotReady, match="its own"):
        require_workers(client, ["host-0", "host-0"])


def test_a_controller_that_never_starts_is_cancelled(
    site: HostSite,
    hosts: RemoteHosts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its worker died a moment ago, so its queue still looks alive."""
    os.killpg(site.workers["host-1"].pid, signal.SIGKILL)
    monkeypatch.setattr(gang_flow_runs, "START_SECONDS", 12.0)
    gang = hosts.run(calls(tmp_path, "hang", "hang"), Patience(), None)
    assert gang.cause.startswith("not started by a worker in 12 s: controller ")
    assert "controller 1 (queue 'host-1')" in gang.cause
    assert gang.runs[1].return_code == NO_END
    assert gang.processes_left == 0
    assert states(site) == ["Cancelled", "Cancelled"]
    gone = "the controller that had started is gone"
    wait_until(lambda: not processes("site", f"-m {PROGRAM}"), gone, 30)
