"""The exact commands that would demonstrate a target, and the rows they must leave.

Without the target a verdict is *not demonstrated*; these steps say what would change
it. They stop at the first that fails, and no time is shown before equal numbers.
Sources: Cloud TPU documentation of queued resources, of managed instance groups and of
runtimes, as of November 2026. None of the commands of a provider was run here.
"""

import dataclasses
from collections.abc import Iterator
from importlib.metadata import version

from tasks.accelerators import Accelerator
from tasks.target_platforms import STARTS_AS
from warehouse.records.inference import TargetStep

_WHERE = "--project=$PROJECT --zone=$ZONE"
_PYTHON = "~/target/bin/python"
_OUT = "target-result"
EXTRAS = {"tpu": "tpu", "gpu": "cuda13"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Step:
    command: str
    claim: str = ""
    expected_table: str = ""
    expected_row: str = ""


def target_steps(target: Accelerator, release_sha256: str) -> list[TargetStep]:
    """Returns the steps in order, preparation and removal included.

    Args:
        target: The accelerator that is wanted.
        release_sha256: SHA-256 of the manifest of the release to qualify.
    """
    prepare, remove = {
        "queued": (_queued, _queued_removed),
        "instances": (_instances, _instances_removed),
        "hand": (_at_hand, _nothing),
    }[target.way]
    is_slice = target.hosts > 1
    begin, measure = _exported(release_sha256), _on_one_host(target)
    if is_slice:
        begin, measure = _shared(release_sha256), _on_every_host(target)
    steps = [
        *begin,
        *prepare(target),
        *measure,
        *remove(target),
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
        f"Python 3.11 or later; jax[{extra}]=={version('jax')} (another version is "
        f"another subject), {needed}",
        f"JAX_PLATFORMS={STARTS_AS[target.platform]}, so that nothing else can start; "
        "JAX_DEFAULT_MATMUL_PRECISION=highest",
        f"{target.hosts} host(s), {target.devices} device(s)"
        + (f", topology {target.topology}" if target.topology else ""),
    ]


def cluster_lines(target: Accelerator) -> list[str]:
    """Returns the commands that get the same hosts from GKE; none for a GPU."""
    if target.platform != "tpu":
        return []
    return [
        f"pip install xpk==1.16.0 && xpk cluster create --cluster qual "
        f"--tpu-type={target.name} --num-slices=1 --spot {_WHERE}",
        f"xpk workload create --cluster qual --workload qual-1 "
        f"--tpu-type={target.name} --docker-image=$IMAGE --max-restarts=3 "
        "--project=$PROJECT --command '...' (what stands after --command below)",
    ]


def _exported(release_sha256: str) -> Iterator[_Step]:
    yield _Step(
        command="export NONCE=$(python3 -c 'import secrets; "
        "print(secrets.token_hex(16))')",
        expected_row="a number of this occasion, for the target and for the import",
    )
    yield _Step(
        command="export CODE=$(harness target digest)",
        expected_row="the digest of the folder model, which a host has to have too",
    )
    yield _Step(
        command="harness export latest ./release",
        expected_row=f"release.json has SHA-256 {release_sha256}",
    )


def _shared(release_sha256: str) -> Iterator[_Step]:
    """What hosts share with their launcher: a server, and one storage URL."""
    yield _Step(
        command="harness run",
        expected_row=f"a release whose release.json has SHA-256 {release_sha256}",
    )
    yield _Step(
        command="export PREFECT_API_URL=$SERVER/api HARNESS_STORAGE_URL=$STORAGE",
        expected_row="a Prefect server and a URL (s3://, gs://, ...) that this machine "
        "and all hosts can open, with credentials in the environment of each",
    )
    yield _Step(
        command="harness up",
        expected_row="the pool text-harness-hosts and the deployment controller/host",
    )


# --- how a target is had ---


def _copied(target: Accelerator) -> str:
    """What a host needs: one host the model and the release, a slice the project."""
    return "./model ./release" if target.hosts == 1 else "./text-harness"


def _install(target: Accelerator) -> str:
    extra = EXTRAS[target.platform]
    if target.hosts > 1:
        return (
            f"python3 -m venv ~/target && {_PYTHON} -m pip install "
            f'"./text-harness[remote]" gcsfs "jax[{extra}]=={version("jax")}"'
        )
    return (
        f"python3 -m venv ~/target && {_PYTHON} -m pip install "
        f'"jax[{extra}]=={version("jax")}" flatbuffers=={version("flatbuffers")} '
        f"numpy=={version('numpy')}"
    )


def _ssh(command: str) -> str:
    """On every host of a slice at once, which a slice needs to start at all."""
    ssh = f"gcloud compute tpus tpu-vm ssh $NODE {_WHERE} --worker=all"
    return f"{ssh} --command='{command}'"


def _queued(target: Accelerator) -> Iterator[_Step]:
    """A v5e is had as a queued resource (or by GKE)."""
    yield _Step(
        command=(
            "gcloud compute tpus queued-resources create $QR --node-id=$NODE "
            f"{_WHERE} --accelerator-type={target.name} "
            f"--runtime-version={target.image} --spot"
        )
    )
    yield _Step(
        command=f"gcloud compute tpus queued-resources describe $QR {_WHERE}",
        expected_row="state ACTIVE",
    )
    yield _Step(
        command=(
            f"gcloud compute tpus tpu-vm scp --recurse {_copied(target)} "
            f"$NODE:~ {_WHERE} --worker=all"
        )
    )
    yield _Step(command=_ssh(_install(target)))


def _queued_removed(target: Accelerator) -> Iterator[_Step]:
    del target
    yield _Step(
        command=f"gcloud compute tpus queued-resources delete $QR --force {_WHERE}"
    )


def _instances(target: Accelerator) -> Iterator[_Step]:
    """Later slices are no queued resources: an instance group, or GKE."""
    policy = "projects/$PROJECT/regions/$REGION/resourcePolicies/$S-wp"
    yield _Step(
        command=(
            "gcloud compute resource-policies create workload-policy $S-wp "
            "--type=HIGH_THROUGHPUT "
            f"--accelerator-topology={target.topology} --region=$REGION"
        )
    )
    yield _Step(
        command=(
            f"gcloud compute instance-templates create $S-it "
            f"--machine-type={target.machine} --maintenance-policy=TERMINATE "
            "--provisioning-model=SPOT --instance-termination-action=STOP "
            f"--image-family={target.image} --image-project=$IMAGE_PROJECT"
        )
    )
    yield _Step(
        command=(
            "gcloud compute instance-groups managed create $S-mig --zone=$ZONE "
            f"--template=$S-it --size={target.hosts} "
            f"--default-action-on-vm-failure=do-nothing --workload-policy={policy}"
        ),
        expected_row=f"{target.hosts} instances of {target.name} RUNNING",
    )
    yield _Step(
        command=(
            f"for HOST in $HOSTS; do gcloud compute scp --recurse {_copied(target)} "
            f"$HOST:~ {_WHERE}; gcloud compute ssh $HOST {_WHERE} "
            f"--command='{_install(target)}'; done"
        )
    )


def _instances_removed(target: Accelerator) -> Iterator[_Step]:
    del target
    yield _Step(
        command="gcloud compute instance-groups managed delete $S-mig --zone=$ZONE"
    )


def _at_hand(target: Accelerator) -> Iterator[_Step]:
    yield _Step(
        command="scp -r ./model ./release $HOST:",
        expected_row="one host with the GPU and its driver",
    )
    yield _Step(command=f"ssh $HOST '{_install(target)}'")


def _nothing(target: Accelerator) -> Iterator[_Step]:
    del target
    yield from ()


# --- what is measured, in the order in which it may be believed ---


def _signs(hosts: int) -> _Step:
    return _Step(
        command="",
        claim="5.1",
        expected_table="measurements",
        expected_row=(
            f"sign_missing: value_count 0 for every sign, hosts that answer: {hosts}; "
            "recounted_signs 11, recounted_devices 1 or more; workload_lane_events "
            "above 0; traced_regions 5 of each region"
        ),
    )


def _answers(hosts: int) -> _Step:
    return _Step(
        command="",
        claim="5.2",
        expected_table="comparisons",
        expected_row=(
            f"controllers_silent: value_count 0 of {hosts}; "
            "recounted_controllers_missing 0; challenge_answered: nonce "
            "and code of the launcher, in the execution that gives the result"
        ),
    )


_NUMBERS = _Step(
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
_CONFIGURATION = _Step(
    command="",
    claim="5.4",
    expected_table="comparisons",
    expected_row=(
        "target_configuration, cases tokenizer, data, masks, global_batch, "
        "device_batch, placement, normalisation, recipe, matmul_precision, release: "
        "expected = measured"
    ),
)
_RESTART = _Step(
    command="",
    claim="5.5",
    expected_table="comparisons",
    expected_row=(
        "resumed_updates: expected = measured for every update after the committed "
        "checkpoint; restart_of_a_killed_process by SIGKILL; "
        "uncommitted_checkpoints_chosen: value_count 0"
    ),
)


_TIMES = _Step(
    command='harness sql "select * from target_timings"',
    expected_table="target_timings",
    expected_row="no row until 5.1 to 5.5 are accepted; only then the times",
)


def _on_one_host(target: Accelerator) -> Iterator[_Step]:
    """One script does all of it, in this order; the verdicts are made at home."""
    script = (
        f"{_PYTHON} -m model.programs.qualify_target {_OUT} "
        f"--expect-platform {target.platform} --accelerator {target.name} "
        "--nonce $NONCE --code-sha256 $CODE "
        "--parameters release/train_model/parameters.npz"
    )
    host = (
        f'ssh $HOST "{script}"'
        if target.way == "hand"
        else f'gcloud compute tpus tpu-vm ssh $NODE {_WHERE} --command="{script}"'
        if target.way == "queued"
        else f'gcloud compute ssh $HOST {_WHERE} --command="{script}"'
    )
    fetch = {
        "hand": f"scp -r $HOST:{_OUT} .",
        "queued": f"gcloud compute tpus tpu-vm scp --recurse $NODE:{_OUT} . {_WHERE}",
        "instances": f"gcloud compute scp --recurse $HOST:{_OUT} . {_WHERE}",
    }[target.way]
    yield dataclasses.replace(_signs(1), command=host)
    yield _Step(command=fetch, expected_row="every file under 16 MiB")
    taken = f"harness target import {_OUT} --nonce $NONCE"
    yield dataclasses.replace(_answers(1), command=taken)
    for step in (_CONFIGURATION, _NUMBERS, _RESTART):
        yield dataclasses.replace(step, command="harness review latest --task 5")
    yield _TIMES


def _on_every_host(target: Accelerator) -> Iterator[_Step]:
    """A slice: a worker on every host, then one command that makes the whole protocol.

    It stops at the first step that fails, and the verdicts are made at its end.
    """
    yield _Step(
        command=_workers(target),
        expected_row=f"{target.hosts} workers online, host-0 on the first host",
    )
    queues = ",".join(f"host-{number}" for number in range(target.hosts))
    command = (
        f"harness target run --accelerator {target.name} --queues {queues} "
        f"--expect-platform {target.platform} --storage $HARNESS_STORAGE_URL"
    )
    yield dataclasses.replace(_signs(target.hosts), command=command)
    for step in (_answers(target.hosts), _CONFIGURATION, _NUMBERS, _RESTART):
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
        ssh = f"gcloud compute tpus tpu-vm ssh $NODE {_WHERE} --worker=$I"
        return f'for I in {numbers}; do {ssh} --command="{worker}"; done'
    ssh = f'gcloud compute ssh $HOST {_WHERE} --command="{worker}"'
    return f"I=0; for HOST in $HOSTS; do {ssh}; I=$((I + 1)); done"
