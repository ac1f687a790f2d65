"""`harness up` and `harness down`: a Prefect server with UI, a worker, deployments."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from flows.display import print_json, print_lines
from flows.options import DEFAULT_ROOT, Json, Root


def up(
    *,
    port: Annotated[
        int | None,
        Parameter(
            validator=Number(gte=1, lte=65535),
            help="Port of the server; else that of the settings.",
        ),
    ] = None,
    env_file: Annotated[
        Path | None,
        Parameter(
            help="Settings of server and worker, NAME=VALUE a line; else "
            "deploy/laptop.env."
        ),
    ] = None,
    deployments: Annotated[
        Path | None, Parameter(help="Deployments; else deploy/prefect.yaml.")
    ] = None,
    automations: Annotated[
        Path | None, Parameter(help="Automations; else deploy/automations.yaml.")
    ] = None,
    webhook: Annotated[
        str | None, Parameter(help="Address that notifications are posted to.")
    ] = None,
    limit: Annotated[
        int | None,
        Parameter(
            validator=Number(gte=1),
            help="Flow runs that the worker takes at a time; 1 unless set before.",
        ),
    ] = None,
    foreground: Annotated[
        bool,
        Parameter(
            negative=(),
            show_default=False,
            help="Become the worker instead of starting one, as containers want it.",
        ),
    ] = False,
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Start a Prefect server with its UI, a worker and the deployments, or repair them.

    What runs already is left as it is; a call with other options is refused. Where
    PREFECT_API_URL (or the active profile) names a server, that one is used and none
    is started.
    """
    from flows.operator_settings import deploy_file
    from flows.operator_up import bring_up
    from flows.operator_wanted import Wanted

    wanted = Wanted(
        port=port,
        settings=(env_file or deploy_file("laptop.env")).absolute(),
        deployments=(deployments or deploy_file("prefect.yaml")).absolute(),
        automations=(automations or deploy_file("automations.yaml")).absolute(),
        webhook=webhook,
        limit=limit,
        root=root.absolute(),
        is_foreground=foreground,
    )
    shown = bring_up(wanted)
    if is_json:
        print_json(shown)
    else:
        print_lines(_lines_up(shown))
    return 0


def down(*, is_json: Json = False) -> int:
    """End what `harness up` has started, and nothing else.

    Runs that go on are ended too; what they had finished is kept.
    """
    from flows.operator_down import bring_down

    shown = bring_down()
    if is_json:
        print_json(shown)
    else:
        print_lines(shown["ended"] or ["Nothing that `harness up` started runs."])
    return 0


def _lines_up(shown: dict[str, Any]) -> list[str]:
    lines = [*shown["changed"]] or ["Everything runs already; nothing was changed."]
    server = shown["server_log"]
    lines += [
        "",
        f"UI           {shown['ui']}",
        *([f"sign in      {shown['sign_in']}"] if shown["sign_in"] else []),
        f"evidence     {shown['root']}",
        *([f"server log   {server}"] if server else []),
        f"worker log   {shown['worker_log']}",
        f"deployments  {', '.join(shown['deployments'])}",
        "",
        "Next: prefect deployment run qualify/default --watch",
        "      harness down",
    ]
    return lines
