"""`harness target`: what a target has to show, and how it is asked."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from flows.display import print_json, print_lines, print_table
from flows.options import DEFAULT_ROOT, Json, Root, root_option
from flows.reading import Row
from flows.target_plan import step_lines

Platform = Annotated[
    Literal["tpu", "gpu"] | None,
    Parameter(help="Platform of the target; else that of the accelerator, or tpu."),
]
Accelerator = Annotated[
    str | None,
    Parameter(help="Accelerator, such as v5litepod-16; else the platform's own."),
]
PLANNED = "fixture"
"""Preset of the commands that are planned."""
RELEASE = "the digest that `harness export` prints"
SIGN_COLUMNS = {
    "sign": "sign",
    "shown": "there",
    "found": "found",
    "wanted": "a target shows",
}

ROW_COLUMNS = {
    "claim": "claim",
    "what": "measure and case",
    "expected": "expected",
    "measured": "measured",
}

CLAIM_COLUMNS = ("claim", "verdict", "rows_met", "rows_unmet", "rows_missing")
LAST_OF_TARGET = 5
"""Number of the last claim of task 5 that only a target can meet."""
LADDER_COLUMNS = ("rung", "name", "platform", "verdict", "missing")

target = App(name="target", help="Qualify a target runtime, such as a TPU slice.")


@target.command
def plan(
    *,
    platform: Platform = None,
    accelerator: Accelerator = None,
    is_json: Json = False,
) -> int:
    """Print the commands that would demonstrate a target, and the rows they leave."""
    from model.presets import preset
    from tasks.accelerators import chosen_accelerator, require_documents
    from tasks.published_checks import PUBLISHED_CHECKS
    from tasks.target_machines import cluster_steps
    from tasks.target_steps import environment_lines, target_steps

    chosen = chosen_accelerator(accelerator, platform)
    require_documents(chosen, preset(PLANNED).train, PLANNED)
    steps = target_steps(chosen, RELEASE)
    if is_json:
        print_json(
            {
                "accelerator": vars(chosen),
                "environment": environment_lines(chosen),
                "steps": [vars(step) for step in steps],
                "steps_on_gke": [vars(step) for step in cluster_steps(chosen)],
                "published_checks": [vars(check) for check in PUBLISHED_CHECKS],
            }
        )
        return 0
    print_lines([f"{chosen.name} ({chosen.platform}), in this order:", ""])
    print_lines([f"  {line}" for line in environment_lines(chosen)])
    print_lines(["", *step_lines([vars(step) for step in steps]), ""])
    clusters = cluster_steps(chosen)
    if clusters:
        numbered = [{**vars(each), "step": n} for n, each in enumerate(clusters, 1)]
        print_lines(["The same hosts from GKE, up to the workers of all hosts:"])
        print_lines([*step_lines(numbered), ""])
    print_lines(["It builds on two published checks:"])
    for check in PUBLISHED_CHECKS:
        print_lines([f"  {check.name}: covered by {check.covered_by}"])
        print_lines([f"     {check.command}"])
    print_lines(["", "None of this was run here; without it: not demonstrated."])
    return 0


@target.command
def digest() -> int:
    """Print the digest of the code that a host of a target has to have."""
    from tasks.target_challenge import code_sha256

    print_lines([code_sha256()])
    return 0


@target.command
def nonce(*, root: Root = DEFAULT_ROOT) -> int:
    """Draw the nonce of a new run on a target, remember it in the store, and print it.

    The import takes a result that answers it, once, and no other.
    """
    from tasks.target_challenge import drawn_nonce

    print_lines([drawn_nonce(root)])
    return 0


@target.command
def probe(
    *,
    platform: Platform = None,
    accelerator: Accelerator = None,
    require: Annotated[
        Literal["accept"] | None,
        Parameter(help="Exit with 1 unless every sign of the target is there."),
    ] = None,
    is_json: Json = False,
) -> int:
    """Ask this machine for every sign of a target; a name is none.

    Exit code 1: a sign is missing, and all were required.
    """
    from flows.target_probe import probe_here
    from tasks.accelerators import chosen_accelerator
    from tasks.target_challenge import new_challenge

    chosen = chosen_accelerator(accelerator, platform)
    probed = probe_here(chosen, new_challenge())
    exit_code = 1 if require and probed.code else 0
    if is_json:
        print_json({**vars(probed), "exit_code": exit_code})
        return exit_code
    shown = [
        {**sign, "shown": "yes" if sign["is_there"] else "no"} for sign in probed.signs
    ]
    print_table(shown, SIGN_COLUMNS, whole=["sign"])
    if probed.code:
        told = [
            f"Not demonstrated ({probed.code}): {probed.message}.",
            f"Next: harness target plan --accelerator {chosen.name}",
        ]
    else:
        told = [
            f"{chosen.name} is there: every sign agrees. What it computes is not "
            "measured by this.",
            f"Next: harness target plan --accelerator {chosen.name}",
        ]
    print_lines(["", *told])
    return exit_code


@target.command(name="import")
def import_(
    folder: Annotated[
        Path, Parameter(help="What model.programs.qualify_target has written.")
    ],
    /,
    *,
    accelerator: Accelerator = None,
    preset_name: Annotated[
        str,
        Parameter(name="--preset", help="Preset that the target was asked for."),
    ] = "fixture",
    rehearsal: Annotated[
        bool,
        Parameter(
            negative=(),
            show_default=False,
            help="Show what the rows would say, of a CPU too, and record nothing.",
        ),
    ] = False,
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Take in the result of a target, and judge it here.

    A folder that was altered, is incomplete, or was made by other code or by a CPU is
    refused, and so is one that answers no nonce of `harness target nonce`, or one that
    another result has answered. Exit code 1: a row about the target is unmet.
    """
    from tasks.accelerators import chosen_accelerator
    from tasks.target_results import open_result

    result = open_result(folder)
    result.require_preset(preset_name)
    if not rehearsal:
        result.require_target()
    # what this loads takes seconds
    from flows.target_import import import_result, rehearse_import, shown

    manifest = result.manifest
    platform = None if manifest["is_rehearsal"] else manifest["platform"]
    name = accelerator or manifest["accelerator"] or None
    chosen = chosen_accelerator(name, platform)
    asked = manifest["nonce"]
    if not rehearsal:
        judged = import_result(root, result, chosen, asked, preset_name)
        return show_target(root, judged.run_id, is_json=is_json)
    judged = rehearse_import(root, result, chosen, asked, preset_name)
    rows = shown(judged)
    if is_json:
        print_json({"rows": rows, "exit_code": 0})
        return 0
    print_table(rows, ROW_COLUMNS, longest=40, whole=["what"])
    print_lines(["", "A rehearsal: nothing was recorded, and nothing is demonstrated."])
    return 0


def show_target(root: Path, run_id: str, *, is_json: bool) -> int:
    """Shows the verdicts of the run that took a result in; returns the exit code."""
    from flows.reading import open_run, view_rows

    names = ["verdicts", "target_ladder"]
    connection = open_run(root, run_id, names=names)
    claims = view_rows(connection, "verdicts", review_task=5)
    ladder = view_rows(connection, "target_ladder")
    exit_code = 1 if any(claim["verdict"] == "revise" for claim in claims) else 0
    if is_json:
        found = {"run_id": run_id, "claims": claims, "ladder": ladder}
        print_json({**found, "exit_code": exit_code})
        return exit_code
    print_table(claims, {name: name for name in CLAIM_COLUMNS}, whole=["claim"])
    print_lines([""])
    print_table(ladder, {name: name for name in LADDER_COLUMNS}, whole=["name"])
    next_command = f"Next: harness review {run_id} --task 5{root_option(root)}"
    print_lines(["", f"The result is run {run_id}.", *_at_home(claims), next_command])
    return exit_code


def _at_home(claims: list[Row]) -> list[str]:
    """Returns what to do about claims that need no target and are not shown yet."""
    lacking = [
        claim["claim"]
        for claim in claims
        if claim["claim_number"] > LAST_OF_TARGET
        and not claim["verdict"].startswith("accept")
    ]
    if not lacking:
        return []
    return [
        f"{', '.join(lacking)} need no target: make them at home (`harness run`, "
        "`harness target rehearse`), then take the result in again."
    ]
