"""How the hosts of a target are had and prepared, and how they are given back.

Sources: Cloud TPU documentation of queued resources, of managed instance groups and of
runtimes, GKE's of TPU node pools and uv's of its installer, as of November 2026. None
of the commands of a provider was run here.
"""

import dataclasses
from collections.abc import Iterator
from importlib.metadata import version

from tasks.accelerators import Accelerator

WHERE = "--project=$PROJECT --zone=$ZONE"
PYTHON = "~/target/bin/python"
EXTRAS = {"tpu": "tpu", "gpu": "cuda13"}
# The project as deploy/Dockerfile copies it, without evidence or environments.
_SOURCES = "model tasks flows warehouse deploy pyproject.toml README.md LICENSE"
_UV = "~/.local/bin/uv"
_IMAGE_PROJECT = "ubuntu-os-accelerator-images"
# Source: public scripts that make v5p and v6e instances; Ubuntu 22.04.
_IMAGE_FAMILY = "ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
_ATTRIBUTES = "http://metadata.google.internal/computeMetadata/v1/instance/attributes"
_GKE_LABELS = {
    "v5e": "tpu-v5-lite-podslice",
    "v5p": "tpu-v5p-slice",
    "v6e": "tpu-v6e-slice",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlannedStep:
    """One step of the plan, before it has a number."""

    command: str
    claim: str = ""
    expected_table: str = ""
    expected_row: str = ""


def prepared(target: Accelerator) -> Iterator[PlannedStep]:
    """Yields the steps that get the hosts and install what they need."""
    ways = {"queued": _queued, "instances": _instances, "hand": _at_hand}
    if target.hosts > 1:
        yield PlannedStep(
            command=f"tar czf text-harness.tar.gz --exclude=__pycache__ {_SOURCES}",
            expected_row="the project as it stands here, for every host",
        )
    yield from ways[target.way](target)


def removed(target: Accelerator) -> Iterator[PlannedStep]:
    """Yields the steps that give back whatever was created."""
    if target.way == "queued":
        yield PlannedStep(
            command="gcloud compute tpus queued-resources delete $QR --force --quiet "
            + WHERE
        )
    if target.way == "instances":
        for command in (
            f"instance-groups managed delete $S-mig {WHERE}",
            "instance-templates delete $S-it --project=$PROJECT",
            "resource-policies delete $S-wp --project=$PROJECT --region=$REGION",
        ):
            yield PlannedStep(command=f"gcloud compute {command} --quiet")


def _copied(target: Accelerator) -> str:
    """What a host needs: one host the model and the release, a slice the project."""
    return "./model ./release" if target.hosts == 1 else "./text-harness.tar.gz"


def _install(target: Accelerator) -> str:
    """Brings a Python of its own: Ubuntu 22.04 has 3.10, which JAX no longer takes."""
    jax = f'"jax[{EXTRAS[target.platform]}]=={version("jax")}"'
    unpack = ""
    packages = f"{jax} flatbuffers=={version('flatbuffers')} numpy=={version('numpy')}"
    if target.hosts > 1:
        unpack = (
            "mkdir -p text-harness && tar xzf text-harness.tar.gz -C text-harness && "
        )
        packages = f'"./text-harness[remote]" gcsfs {jax}'
    return (
        f"{unpack}curl -LsSf https://astral.sh/uv/install.sh | sh && "
        f"{_UV} venv --clear --python 3.12 ~/target && "
        f"{_UV} pip install --python {PYTHON} {packages}"
    )


def _queued(target: Accelerator) -> Iterator[PlannedStep]:
    """A v5e is had as a queued resource (or by GKE)."""
    queued = "gcloud compute tpus queued-resources"
    yield PlannedStep(
        command="export PROJECT=YOUR-PROJECT ZONE=YOUR-ZONE QR=qual-qr NODE=qual-tpu",
        expected_row=f"a project of yours, a zone that has {target.name}, and names "
        "for what is created",
    )
    yield PlannedStep(
        command=(
            f"{queued} create $QR --node-id=$NODE {WHERE} "
            f"--accelerator-type={target.name} --runtime-version={target.image} --spot"
        )
    )
    yield PlannedStep(
        command=f"{queued} describe $QR {WHERE}", expected_row="state ACTIVE"
    )
    yield PlannedStep(
        command=(
            f"gcloud compute tpus tpu-vm scp --recurse {_copied(target)} "
            f"$NODE:~ {WHERE} --worker=all"
        )
    )
    # on all hosts at once, which a slice needs to start at all
    yield PlannedStep(
        command=f"gcloud compute tpus tpu-vm ssh $NODE {WHERE} --worker=all "
        f"--command='{_install(target)}'"
    )


def _instances(target: Accelerator) -> Iterator[PlannedStep]:
    """Later slices are no queued resources: an instance group, or GKE."""
    yield PlannedStep(
        command="export PROJECT=YOUR-PROJECT REGION=YOUR-REGION ZONE=YOUR-ZONE S=qual "
        f"IMAGE_FAMILY={_IMAGE_FAMILY} IMAGE_PROJECT={_IMAGE_PROJECT}",
        expected_row=f"a project of yours, a zone that has {target.name} and its "
        "region, and a prefix for what is created",
    )
    yield PlannedStep(
        command=(
            "gcloud compute resource-policies create workload-policy $S-wp "
            "--type=HIGH_THROUGHPUT --project=$PROJECT --region=$REGION "
            f"--accelerator-topology={target.topology}"
        )
    )
    yield PlannedStep(
        command=(
            "gcloud compute instance-templates create $S-it --project=$PROJECT "
            f"--machine-type={target.machine} --maintenance-policy=TERMINATE "
            "--provisioning-model=SPOT --instance-termination-action=STOP "
            f"--image-family={target.image} --image-project=$IMAGE_PROJECT "
            "--boot-disk-size=100GB --scopes=cloud-platform"
        )
    )
    yield PlannedStep(
        command=(
            f"gcloud compute instance-groups managed create $S-mig {WHERE} "
            f"--template=$S-it --size={target.hosts} "
            "--default-action-on-vm-failure=do-nothing --workload-policy="
            "projects/$PROJECT/regions/$REGION/resourcePolicies/$S-wp"
        ),
        expected_row=f"{target.hosts} instances of {target.name} RUNNING",
    )
    yield _names(target)
    yield PlannedStep(
        command=(
            f"for HOST in $HOSTS; do gcloud compute scp --recurse {_copied(target)} "
            f"$HOST:~ {WHERE}; gcloud compute ssh $HOST {WHERE} "
            f"--command='{_install(target)}'; done"
        )
    )


def _names(target: Accelerator) -> PlannedStep:
    """Names of the instances; those of a slice in the order that its chips know.

    JAX takes the number of a process from the TPU runtime, so that another order ends
    with controllers that are not where the launcher looks for them.
    """
    listed = (
        f"gcloud compute instance-groups managed list-instances $S-mig {WHERE} "
        '--format="value(instance.basename())"'
    )
    if target.hosts == 1:
        return PlannedStep(
            command=f"export HOSTS=$({listed}); export HOST=$HOSTS",
            expected_row="the name of the instance",
        )
    ask = "curl -sf -H Metadata-Flavor:Google"
    number = f"{ask} {_ATTRIBUTES}/worker-id || {ask} {_ATTRIBUTES}/agent-worker-number"
    return PlannedStep(
        command=(
            f"export HOSTS=$(for NAME in $({listed}); do echo "
            f"$(gcloud compute ssh $NAME {WHERE} --command='{number}') $NAME; "
            "done | sort -n | cut -d' ' -f2); echo $HOSTS"
        ),
        expected_row=f"{target.hosts} names in the order of their TPU worker ids, 0 "
        "first; an instance without a worker id answers with no name",
    )


def _at_hand(target: Accelerator) -> Iterator[PlannedStep]:
    yield PlannedStep(
        command="export HOST=YOUR-HOST",
        expected_row="one host with the GPU and its driver, reached by ssh",
    )
    yield PlannedStep(command=f"scp -r {_copied(target)} $HOST:")
    yield PlannedStep(command=f"ssh $HOST '{_install(target)}'")


def cluster_steps(target: Accelerator) -> list[PlannedStep]:
    """Returns the steps that get the hosts of a TPU slice from GKE; else none.

    Pods are hosts and nothing else: pod 0 waits where a flow would run, so that the
    launcher keeps the evidence, which would end with a pod.
    """
    if target.platform != "tpu" or target.hosts == 1:
        return []
    return [*_cluster(target), *_pods(target)]


def _cluster(target: Accelerator) -> Iterator[PlannedStep]:
    yield PlannedStep(
        command="export PROJECT=YOUR-PROJECT ZONE=YOUR-ZONE S=qual "
        "IMAGE=YOUR-REGISTRY/text-harness-tpu",
        expected_row="after the server and the storage above are exported",
    )
    machine = target.machine or "ct5lp-hightpu-4t"
    for command in (f"create $S {WHERE}", f"get-credentials $S {WHERE}"):
        yield PlannedStep(command=f"gcloud container clusters {command}")
    yield PlannedStep(
        command=f"gcloud container node-pools create $S-tpu --cluster=$S {WHERE} "
        f"--machine-type={machine} --tpu-topology={target.topology} "
        f"--num-nodes={target.hosts} --spot --scopes=cloud-platform",
        expected_row=f"{target.hosts} nodes; Kubernetes 1.31 or later",
    )
    yield PlannedStep(
        command="docker build -f deploy/Dockerfile -t text-harness . && "
        f"printf 'FROM text-harness\\nRUN pip install gcsfs \"jax[tpu]=="
        f"{version('jax')}\"\\n' | docker build -t $IMAGE - && docker push $IMAGE"
    )


def _pods(target: Accelerator) -> Iterator[PlannedStep]:
    chips = target.devices // target.hosts
    variables = (
        f'{{"hosts": {target.hosts}, "chips_per_host": {chips}, "command": "sleep '
        f'7200", "tpu_accelerator": "{_GKE_LABELS[target.generation]}", '
        f'"tpu_topology": "{target.topology}", "image": "\'$IMAGE\'", "env": '
        '{"JAX_PLATFORMS": "tpu", "HARNESS_STORAGE_URL": "\'$HARNESS_STORAGE_URL\'"}}'
    )
    yield PlannedStep(command="kubectl apply -f deploy/kubernetes_service.yaml")
    yield PlannedStep(
        command='python -m pip install "prefect-kubernetes>=0.8,<0.9" && '
        "prefect work-pool create text-harness-slice --type kubernetes "
        "--base-job-template deploy/kubernetes_tpu.json"
    )
    yield PlannedStep(
        command="prefect --no-prompt deploy flows.target:target --prefect-file "
        "deploy/prefect.yaml --name slice --pool text-harness-slice "
        f"--job-variable '{variables}'"
    )
    yield PlannedStep(command="prefect deployment run target/slice")
    yield PlannedStep(
        command="nohup prefect worker start --pool text-harness-slice > slice.log "
        "2>&1 & export WORKER=$!",
        expected_row=f"{target.hosts} pods for two hours, each with the worker of its "
        "queue; this run itself computes nothing and stays pending. Now harness "
        "target run as above; the rest follows when its times are shown",
    )
    yield PlannedStep(
        command=f"kill $WORKER; gcloud container clusters delete $S {WHERE} --quiet"
    )
