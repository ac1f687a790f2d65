"""`harness target run`: all hosts of a target are qualified, their result judged."""

from typing import Annotated, Literal

from cyclopts import Parameter

from flows.commands_run import Preset, start_flow
from flows.commands_target import show_target, target
from flows.configured_server import configured_api_url
from flows.options import DEFAULT_ROOT, Json, Root
from flows.server_check import ServerFailed
from model.limits import require
from model.presets import preset


@target.command
def run(
    *,
    queues: Annotated[
        str,
        Parameter(
            help="Queues of the hosts in the work pool text-harness-hosts, such as "
            "host-0,host-1: one worker and one controller each, in this order."
        ),
    ],
    accelerator: Annotated[
        str | None,
        Parameter(
            help="What these hosts are together, such as v5litepod-16; as many queues "
            "as it has hosts."
        ),
    ] = None,
    expect_platform: Annotated[
        Literal["tpu", "gpu", "cpu"],
        Parameter(help="Platform that every device of every host must have."),
    ] = "tpu",
    storage: Annotated[
        str | None,
        Parameter(
            env_var="HARNESS_STORAGE_URL",
            help="URL that all hosts and this process open, such as s3://bucket/gangs.",
        ),
    ] = None,
    preset_name: Preset = "fixture",
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Qualify a slice: probe, compare, train, lose a host, restart, trace, then time.

    Workers and this process share the configured Prefect server and one storage URL. A
    host waits up to 120 s to be started and 60 s to end. The first host that lacks a
    sign of the target ends it with exit code 2, and nothing is recorded of a target.
    Exit code 1: a row about the target is unmet.
    """
    from tasks.accelerators import accelerator_of, require_documents
    from tasks.storage import storage_url

    require(
        expect_platform != "cpu",
        "the platform of the target is 'cpu'",
        "tpu or gpu; a CPU only rehearses one: `harness target rehearse`, or on hosts "
        "`prefect deployment run target/rehearsal --watch`",
    )
    sold = accelerator_of(accelerator, expect_platform, len(queues.split(",")))
    require_documents(sold, preset(preset_name).train, preset_name)
    if not configured_api_url():
        raise ServerFailed(
            "No Prefect server is configured, and hosts can share none that is "
            "private; `harness up` starts one, or set PREFECT_API_URL."
        )
    run_id = start_flow(
        "target",
        root,
        None,
        preset(preset_name).model,
        preset_name=preset_name,
        queues=queues,
        storage=storage_url(storage),
        expect_platform=expect_platform,
        accelerator=sold.name,
    )
    return show_target(root, run_id, is_json=is_json)
