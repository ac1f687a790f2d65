"""`harness target run`: a gang trains on the hosts of a target."""

from typing import Annotated, Literal

from cyclopts import Parameter

from flows.commands_rehearse import ANSWER_COLUMNS
from flows.commands_run import Fresh, Manifest, Preset, Settings, start_flow
from flows.commands_target import target
from flows.configured_server import configured_api_url
from flows.display import print_json, print_lines, print_table
from flows.options import DEFAULT_ROOT, Json, Root
from flows.reading import open_run, view_rows
from flows.server_check import ServerFailed
from model.limits import require
from model.presets import override, preset


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
    manifest: Manifest = None,
    settings: Settings = (),
    fresh: Fresh = False,
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Train on all hosts of a target, lose one on purpose, and go on from a commit.

    Workers and this process share the configured Prefect server and one storage URL. A
    host waits up to 120 s to be started and 60 s to end. Nothing is judged by it: a
    target is demonstrated by `harness target import`.
    """
    from tasks.storage import storage_url

    require(
        expect_platform != "cpu",
        "the platform of the target is 'cpu'",
        "tpu or gpu; a CPU only rehearses one: `harness target rehearse`, or on hosts "
        "`prefect deployment run target/rehearsal --watch`",
    )
    if not configured_api_url():
        raise ServerFailed(
            "No Prefect server is configured, and hosts can share none that is "
            "private; `harness up` starts one, or set PREFECT_API_URL."
        )
    overrides = list(settings)
    config = override(preset(preset_name), overrides)
    run_id = start_flow(
        "target",
        root,
        manifest,
        config.model,
        overrides=overrides,
        preset_name=preset_name,
        is_fresh=fresh,
        queues=queues,
        storage=storage_url(storage),
        expect_platform=expect_platform,
    )
    answers = view_rows(open_run(root, run_id), "controller_challenges")
    if is_json:
        print_json({"run_id": run_id, "controllers": answers, "exit_code": 0})
    else:
        print_table(answers, ANSWER_COLUMNS)
        print_lines(["", *_outcome(run_id, expect_platform)])
    return 0


def _outcome(run_id: str, platform: str) -> list[str]:
    return [
        f"Run {run_id}: all hosts trained and went on from a commit. Not "
        "demonstrated: nothing was compared yet.",
        f"Next: harness target plan --platform {platform}",
    ]
