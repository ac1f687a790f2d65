"""The exact commands that would demonstrate a target, and the rows they must leave.

Without the target a verdict is *not demonstrated*; these steps say what would change
it. They stop at the first that fails, and no time is shown before equal numbers.
How the hosts are had stands in target_machines.py.
"""

import dataclasses
from collections.abc import Iterator
from importlib.metadata import version

from tasks.accelerators import Accelerator
from tasks.target_machines import EXTRAS, PYTHON, WHERE, PlannedStep, prepared, removed
from tasks.target_platforms import STARTS_AS
from warehouse.records.inference import TargetStep

_OUT = "target-result"


def target_steps(target: Accelerator, release_sha256: str) -> list[TargetStep]:
    """Returns the steps in order, preparation and removal included.

    Args:
        target: The accelerator that is wanted.
        release_sha256: SHA-256 of the manifest of the release to qualify.
    """
    is_slice = target.hosts > 1
    begin, measure = _exported(release_sha256), _on_one_host(target)
    if is_slice:
        begin, measure = _shared(release_sha256), _on_every_host(target)
    steps = [
        *begin,
        *prepared(target),
        *measure,
        *removed(target),
    ]
    return [
        TargetStep(accelerator=target.name, step=number, **dataclasses.asdict(step))
        for number, step in enumerate(steps, 1)
    ]


def environment_lines(target: Accelerator) -> list[str]:
    """Returns versions and variables that a target runs under."""
    extra = EXTRAS[target.platform]
    needed = (
        "numpy, flatbuffers; no Prefect, PyArrow or DuckDB"
        if target.hosts == 1
        else "and this project with the extra `remote`, whose Prefect worker runs there"
    )
    return [
        f"Python 3.12, which uv brings to each host; jax[{extra}]=={version('jax')} "
        f"(another version is another subject), {needed}",
        f"JAX_PLATFORMS={STARTS_AS[target.platform]}, so that nothing else can start; "
        "JAX_DEFAULT_MATMUL_PRECISION=highest",
        f"{target.hosts} host(s), {target.devices} device(s)"
        + (
            ", the first of its machine by CUDA_VISIBLE_DEVICES=0"
            if target.platform == "gpu" and target.hosts == 1
            else ""
        )
        + (f", topology {target.topology}" if target.topology else ""),
    ]


def _release(release_sha256: str) -> PlannedStep:
    return PlannedStep(
        command="harness run",
        expected_row=f"a release whose release.json has SHA-256 {release_sha256}, made "
        "by bash in the folder of this repository, as all that follows",
    )


def _at_home(release_sha256: str) -> Iterator[PlannedStep]:
    """What one machine shows without a target, and a target's run rests on besides."""
    yield PlannedStep(
        command="python -m pip install '.[tpu-compile,sharded,remote]'",
        expected_row="what 5.8, 5.14 and 5.15 need here: libtpu, which has terms of "
        "its own, Orbax, and what opens s3://",
    )
    yield _release(release_sha256)
    yield PlannedStep(
        command="harness target rehearse",
        expected_row="5.9 to 5.13 and 5.15 accepted, by CPU controllers of this code",
    )


def _by_workers() -> Iterator[PlannedStep]:
    """The rehearsal by two workers; they end, so that they take no host's part."""
    yield PlannedStep(
        command="harness up",
        expected_row="the pool text-harness-hosts, the deployments controller/host and "
        "target/rehearsal",
    )
    yield PlannedStep(
        command="WORKERS=; for I in 0 1; do nohup setsid env --default-signal=INT,TERM "
        "prefect worker start --pool text-harness-hosts --limit 1 --work-queue host-$I "
        '--name home-$I > home-$I.log 2>&1 < /dev/null & WORKERS="$WORKERS $!"; done',
        expected_row="two workers here, home-0 and home-1",
    )
    yield PlannedStep(
        command="prefect deployment run target/rehearsal --watch",
        expected_row="5.14 accepted; task 5 is accepted with all of these and a result "
        "that is taken in after them",
    )
    yield PlannedStep(command="kill $WORKERS")


def _exported(release_sha256: str) -> Iterator[PlannedStep]:
    yield from _at_home(release_sha256)
    yield PlannedStep(
        command="export HARNESS_STORAGE_URL=$PWD/gangs",
        expected_row="a folder of this machine for the rehearsal by workers",
    )
    yield from _by_workers()
    yield PlannedStep(
        command="export NONCE=$(harness target nonce)",
        expected_row="a number of this occasion, which the store remembers: the import "
        "takes one result that answers it",
    )
    yield PlannedStep(
        command="export CODE=$(harness target digest)",
        expected_row="the digest of the folder model, which a host has to have too",
    )
    yield PlannedStep(
        command="harness export latest ./release",
        expected_row="the release as a folder, which the host gets",
    )


def _shared(release_sha256: str) -> Iterator[PlannedStep]:
    """What hosts share with their launcher: a server, and one storage URL."""
    yield from _at_home(release_sha256)
    yield PlannedStep(
        command="export PREFECT_API_URL=http://YOUR-SERVER:4200/api "
        "HARNESS_STORAGE_URL=gs://YOUR-BUCKET/gangs",
        expected_row="a Prefect server and a URL (s3://, gs://, ...) that this machine "
        "and all hosts can open, with credentials in the environment of each",
    )
    yield PlannedStep(
        command="python -m pip install s3fs gcsfs",
        expected_row="what opens s3:// and gs:// here; hosts get it below",
    )
    yield from _by_workers()


# --- what is measured, in the order in which it may be believed ---


def _signs(hosts: int) -> PlannedStep:
    return PlannedStep(
        command="",
        claim="5.1",
        expected_table="measurements",
        expected_row=(
            f"sign_missing: value_count 0 for every sign, hosts that answer: {hosts}; "
            "recounted_signs 11, recounted_devices 1 or more; recounted_devices_apart, "
            "recounted_devices_of_another_kind and recounted_hosts_of_another_chip 0: "
            "what answers is all of the accelerator; workload_lane_events "
            "above 0; traced_regions 5 of each region"
        ),
    )


def _answers(target: Accelerator) -> PlannedStep:
    trained = "devices_untrained 0: each device of the accelerator trained; "
    if target.hosts == 1 < target.devices:
        trained = (
            "devices_untrained null: the script trains on the first of "
            f"{target.devices} devices, so that 5.2, rung 5 and task 5 stay not "
            "demonstrated; "
        )
    return PlannedStep(
        command="",
        claim="5.2",
        expected_table="comparisons",
        expected_row=(
            f"controllers_silent: value_count 0 of {target.hosts}; {trained}"
            "recounted_controllers_missing and recounted_machines_apart 0; "
            "challenge_answered: nonce "
            "and code of the launcher, in the execution that gives the result"
        ),
    )


_NUMBERS = PlannedStep(
    command="",
    claim="5.3",
    expected_table="measurements",
    expected_row=(
        "endpoint_logit_difference for each policy, then "
        "valid_targets_beyond_reference: value_count 0, loss_difference and "
        "largest_parameter_difference within the contract, key_bias_difference "
        "reported, repeated_updates bit by bit"
    ),
)
_CONFIGURATION = PlannedStep(
    command="",
    claim="5.4",
    expected_table="comparisons",
    expected_row=(
        "target_configuration, cases tokenizer, data, masks, global_batch, "
        "device_batch, placement, normalisation, recipe, matmul_precision, release: "
        "expected = measured"
    ),
)
_RESTART = PlannedStep(
    command="",
    claim="5.5",
    expected_table="comparisons",
    expected_row=(
        "resumed_updates: expected = measured for every update after the committed "
        "checkpoint; restart_of_a_killed_process by SIGKILL; "
        "uncommitted_checkpoints_chosen: value_count 0"
    ),
)


_TIMES = PlannedStep(
    command='harness sql "select * from target_timings"',
    expected_table="target_timings",
    expected_row="no row until 5.1 to 5.5 are accepted; only then the times",
)


def _on_one_host(target: Accelerator) -> Iterator[PlannedStep]:
    """One script does all of it, in this order; the verdicts are made at home."""
    # one device of a machine that may have eight: the others are another accelerator
    chosen = "CUDA_VISIBLE_DEVICES=0 " if target.platform == "gpu" else ""
    script = (
        f"{chosen}{PYTHON} -m model.programs.qualify_target {_OUT} "
        f"--expect-platform {target.platform} --accelerator {target.name} "
        "--nonce $NONCE --code-sha256 $CODE "
        "--parameters release/train_model/parameters.npz"
    )
    host = (
        f'ssh $HOST "{script}"'
        if target.way == "hand"
        else f'gcloud compute tpus tpu-vm ssh $NODE {WHERE} --command="{script}"'
        if target.way == "queued"
        else f'gcloud compute ssh $HOST {WHERE} --command="{script}"'
    )
    fetch = {
        "hand": f"scp -r $HOST:{_OUT} .",
        "queued": f"gcloud compute tpus tpu-vm scp --recurse $NODE:{_OUT} . {WHERE}",
        "instances": f"gcloud compute scp --recurse $HOST:{_OUT} . {WHERE}",
    }[target.way]
    yield dataclasses.replace(_signs(1), command=host)
    yield PlannedStep(command=fetch, expected_row="every file under 16 MiB")
    taken = f"harness target import {_OUT} --accelerator {target.name}"
    yield dataclasses.replace(_answers(target), command=taken)
    for step in (_CONFIGURATION, _NUMBERS, _RESTART):
        yield dataclasses.replace(step, command="harness review latest --task 5")
    yield _TIMES


def _on_every_host(target: Accelerator) -> Iterator[PlannedStep]:
    """A slice: a worker on every host, then one command that makes the whole protocol.

    It stops at the first step that fails, and the verdicts are made at its end.
    """
    yield PlannedStep(
        command=_workers(target),
        expected_row=f"{target.hosts} workers online, host-0 on the first host",
    )
    queues = ",".join(f"host-{number}" for number in range(target.hosts))
    command = (
        f"harness target run --accelerator {target.name} --queues {queues} "
        f"--expect-platform {target.platform} --storage $HARNESS_STORAGE_URL"
    )
    yield dataclasses.replace(_signs(target.hosts), command=command)
    for step in (_answers(target), _CONFIGURATION, _NUMBERS, _RESTART):
        yield dataclasses.replace(step, command="harness review latest --task 5")
    yield _TIMES


def _workers(target: Accelerator) -> str:
    """Starts on each host the worker of its own queue, which outlives the login.

    What a shell puts into the background ignores SIGINT, which a worker needs.
    """
    worker = (
        "PREFECT_API_URL=$PREFECT_API_URL HARNESS_STORAGE_URL=$HARNESS_STORAGE_URL "
        "nohup setsid env --default-signal=INT,TERM ~/target/bin/prefect worker start "
        "--pool text-harness-hosts --limit 1 --work-queue host-$I --name host-$I "
        "> worker.log 2>&1 < /dev/null &"
    )
    if target.way == "queued":
        numbers = " ".join(map(str, range(target.hosts)))
        ssh = f"gcloud compute tpus tpu-vm ssh $NODE {WHERE} --worker=$I"
        return f'for I in {numbers}; do {ssh} --command="{worker}"; done'
    ssh = f'gcloud compute ssh $HOST {WHERE} --command="{worker}"'
    return f"I=0; for HOST in $HOSTS; do {ssh}; I=$((I + 1)); done"
