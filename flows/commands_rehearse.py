"""`harness target rehearse`: a target rehearsed on CPUs, and what came of it."""

from typing import Annotated

from cyclopts import Parameter

from flows.commands_run import Fresh, Manifest, Preset, Settings, start_flow
from flows.commands_target import target
from flows.display import print_json, print_lines, print_table
from flows.options import DEFAULT_ROOT, Json, Root, root_option
from flows.proof_results import CLAIM_COLUMNS, sentence
from flows.reading import open_run, view_rows
from model.limits import validate_controllers
from model.presets import override, preset

REHEARSED = ("5.9", "5.10", "5.11", "5.12", "5.13", "5.15")
ANSWER_COLUMNS = {
    "gang": "gang",
    "controller": "controller",
    "is_nonce_repeated": "nonce",
    "is_code_demanded": "code",
    "devices": "devices",
    "process_id": "process",
    "host": "host",
    "updates": "updates",
}


@target.command
def rehearse(
    *,
    controllers: Annotated[
        int,
        Parameter(
            help="Processes of a gang, each one controller: 2 up to the documents of "
            "a batch."
        ),
    ] = 4,
    preset_name: Preset = "fixture",
    manifest: Manifest = None,
    settings: Settings = (),
    fresh: Fresh = False,
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Rehearse a target on CPUs: train by several processes, lose some, go on.

    Exit code 1: the rehearsal failed. It never says anything about a target.
    """
    overrides = list(settings)
    config = override(preset(preset_name), overrides)
    validate_controllers(controllers, config.train)
    run_id = start_flow(
        "rehearse",
        root,
        manifest,
        config.model,
        overrides=overrides,
        controllers=controllers,
        preset_name=preset_name,
        is_fresh=fresh,
    )
    connection = open_run(root, run_id)
    answers = view_rows(connection, "controller_challenges")
    claims = [r for r in view_rows(connection, "verdicts") if r["claim"] in REHEARSED]
    rows = [r for r in view_rows(connection, "claim_rows") if r["claim"] in REHEARSED]
    exit_code = 1 if any(claim["verdict"] == "revise" for claim in claims) else 0
    if is_json:
        print_json(
            {
                "run_id": run_id,
                "controllers": answers,
                "claims": claims,
                "exit_code": exit_code,
            }
        )
        return exit_code
    print_table(answers, ANSWER_COLUMNS)
    print_lines([""])
    print_table(claims, CLAIM_COLUMNS)
    print_lines(
        [
            "",
            f"{sentence(claims, rows)} It was about CPUs; no target was asked.",
            f"Next: harness review --task 5{root_option(root)}",
        ]
    )
    return exit_code
