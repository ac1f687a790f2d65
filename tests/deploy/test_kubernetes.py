"""The job template for a TPU slice, held against Prefect's worker and Kubernetes.

No cluster is at hand: what the worker would send is made by the worker's own code, and
every field of it is looked up in the types of the Kubernetes API. That a slice runs it
is not shown.
"""

import asyncio
import json
import os
import subprocess
from typing import Any
from uuid import uuid4

import jsonschema
import kubernetes_asyncio.client
import pytest
import yaml
from prefect.client.schemas.objects import FlowRun
from prefect_kubernetes.worker import (
    KubernetesWorker,
    KubernetesWorkerJobConfiguration,
)

SIZES = {"cpu_request", "cpu_limit", "memory_request", "memory_limit"}
"""A pod has its host to itself."""
ASKED_BY_PREFECT = {"parallelism", "completions"}
"""In the pod's own part, where the worker insists on 1 and Kubernetes ignores them."""


@pytest.fixture
def template(project) -> dict[str, Any]:
    return json.loads((project / "deploy" / "kubernetes_tpu.json").read_text())


def prepared(template: dict[str, Any], **values: Any) -> dict[str, Any]:
    """Returns the job that the worker would send for a run."""
    values = {"image": "registry/text-harness:1"} | values
    jsonschema.validate(values, template["variables"])
    # The template names no block, so no server is asked for one.
    configuration = asyncio.run(
        KubernetesWorkerJobConfiguration.from_template_and_values(
            template, values, client=object()
        )
    )
    run = FlowRun(id=uuid4(), name="brave-slice", flow_id=uuid4())
    configuration.prepare_for_flow_run(run)
    return configuration.job_manifest


def unknown_fields(value: Any, kind: str, place: str = "") -> list[str]:
    """Returns every field that the types of the Kubernetes API do not have."""
    if kind.startswith("list["):
        inner = kind.removeprefix("list[").removesuffix("]")
        return [
            found
            for i, each in enumerate(value)
            for found in unknown_fields(each, inner, f"{place}.{i}")
        ]
    model = getattr(kubernetes_asyncio.client, kind, None)
    if model is None or not isinstance(value, dict):
        return []
    names = {key: name for name, key in model.attribute_map.items()}
    found = []
    for key, each in value.items():
        if key not in names:
            found.append(f"{place}.{key}")
        else:
            kind_of_field = model.openapi_types[names[key]]
            found += unknown_fields(each, kind_of_field, f"{place}.{key}")
    return found


def test_the_worker_takes_the_template_and_kubernetes_knows_its_fields(template):
    jsonschema.Draft202012Validator.check_schema(template["variables"])
    job = prepared(template)
    pod = job["spec"]["template"]["spec"]
    assert {name: pod.pop(name) for name in ASKED_BY_PREFECT} == dict.fromkeys(
        ASKED_BY_PREFECT, 1
    )
    assert unknown_fields(job, "V1Job") == []
    pod["nodeSelectors"] = pod.pop("nodeSelector")
    assert unknown_fields(job, "V1Job") == [".spec.template.spec.nodeSelectors"]


def test_every_variable_of_the_worker_is_there_and_every_placeholder_has_one(template):
    own = set(template["variables"]["properties"])
    default = KubernetesWorker.get_default_base_job_template()
    needed = set(default["variables"]["properties"]) - SIZES - {"backoff_limit"}
    assert needed <= own
    used = json.dumps(template["job_configuration"])
    assert {name for name in own if f"{{{{ {name} }}}}" not in used} == set()
    configured = set(template["job_configuration"])
    assert configured == set(default["job_configuration"])


def test_a_slice_is_one_indexed_job_on_hosts_with_its_chips(template):
    values = {"hosts": 2, "tpu_accelerator": "tpu-v6e-slice", "tpu_topology": "2x4"}
    job = prepared(template, **values)
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert spec["completionMode"] == "Indexed"
    assert (spec["completions"], spec["parallelism"]) == (2, 2)
    # One that fails ends all; pod 0 alone says that the run is done.
    assert spec["backoffLimit"] == 0
    assert spec["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}
    assert pod["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": "2x4",
    }
    (container,) = pod["containers"]
    chips = {"google.com/tpu": 4}
    assert container["resources"] == {"limits": chips, "requests": chips}
    assert {"name": "JAX_PLATFORMS", "value": "tpu"} in container["env"]


def test_pods_find_each_other_by_the_service(template, project):
    service = yaml.safe_load(
        (project / "deploy" / "kubernetes_service.yaml").read_text()
    )
    assert unknown_fields(service, "V1Service") == []
    job = prepared(template)["spec"]["template"]
    assert job["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    labels = job["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


@pytest.mark.parametrize("index", [0, 1])
def test_pod_0_runs_the_flow_beside_its_worker_and_the_others_their_worker(
    template, tmp_path, index
):
    """The pod's own script, with a `prefect` that writes down how it was called."""
    (container,) = prepared(template)["spec"]["template"]["spec"]["containers"]
    told = tmp_path / "told"
    prefect = tmp_path / "prefect"
    prefect.write_text(f'#!/bin/sh\necho "$@" >> {told}\n')
    prefect.chmod(0o755)
    subprocess.run(
        [*container["command"], *container["args"]],
        env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "JOB_COMPLETION_INDEX": str(index),
        },
        check=True,
        timeout=60,
        # The worker of pod 0 goes on in the background, and it has its end here.
        stdout=subprocess.PIPE,
    )
    lines = sorted(told.read_text().splitlines())
    worker = (
        "worker start --pool text-harness-hosts --type process --limit 1"
        f" --work-queue host-{index}"
    )
    assert lines == (["flow-run execute", worker] if index == 0 else [worker])


def test_what_the_worker_does_not_allow_is_refused(template):
    pod = template["job_configuration"]["job_manifest"]["spec"]["template"]["spec"]
    pod["restartPolicy"] = "OnFailure"
    with pytest.raises(ValueError, match="restartPolicy must have value 'Never'"):
        prepared(template)


def test_a_run_without_an_image_and_with_no_host_is_refused(template):
    with pytest.raises(jsonschema.ValidationError, match="'image' is a required"):
        jsonschema.validate({}, template["variables"])
    with pytest.raises(jsonschema.ValidationError, match="less than the minimum"):
        prepared(template, hosts=0)
