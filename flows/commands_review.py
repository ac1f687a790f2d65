"""`harness review`: the verdicts of a run with the rows they rest on."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from flows.display import note, print_json, print_lines, print_table, shortened
from flows.options import DEFAULT_ROOT, Json, Root, Run, root_option
from flows.reading import Row, open_run, selected_run, view_rows
from flows.target_plan import step_lines

TASKS = (1, 2, 3, 4, 5)
CLAIM_COLUMNS = {
    "claim": "claim",
    "verdict": "verdict",
    "rows_met": "met",
    "rows_unmet": "unmet",
    "rows_missing": "missing",
    "statement": "statement",
}
ROW_COLUMNS = {
    "status": "status",
    "what": "measure and case",
    "measured": "value",
    "required": "must be",
}
LONGEST_VALUE = 20
SIGNS = {"equal": "=", "at_most": "≤", "at_least": "≥", "above": ">"}
TASK_COLUMNS = {
    "review_task": "task",
    "verdict": "verdict",
    "accepted": "accepted",
    "undrilled": "of them undrilled",
    "revised": "revise",
    "open": "not demonstrated",
}

SHOWN = ("raw.selection", "runs", "verdicts", "task_verdicts", "claim_rows", "damage")
"""Views that a review asks for."""
SUMMARIZED = ("raw.selection", "runs", "task_verdicts", "run_stages")
"""Views that the end of a run asks for."""


def review(
    run: Run = "latest",
    /,
    *,
    task: Annotated[
        tuple[Literal[1, 2, 3, 4, 5], ...],
        Parameter(
            negative=(),
            consume_multiple=True,
            help="Only these review tasks, with every row; may be repeated.",
        ),
    ] = (),
    require: Annotated[
        Literal["accept"] | None,
        Parameter(help="Exit with 1 unless every verdict shown is accept."),
    ] = None,
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Show which claims hold, and the rows each verdict rests on.

    Exit code 1: a row is unmet, or less than required.
    """
    is_target_shown = 5 in task
    names = (*SHOWN, "target_plan") if is_target_shown else SHOWN
    connection = open_run(root, run, names=names)
    about = selected_run(connection)
    claims = _of_task(view_rows(connection, "verdicts"), task)
    tasks = _of_task(view_rows(connection, "task_verdicts"), task)
    rows = _of_task(view_rows(connection, "claim_rows"), task)
    damage = view_rows(connection, "damage")
    exit_code = _exit_code(claims, tasks, require)
    if is_json:
        print_json(
            {
                "run": about,
                "tasks": tasks,
                "claims": claims,
                "rows": rows,
                "damage": damage,
                "exit_code": exit_code,
            }
        )
        return exit_code
    print_table(claims, CLAIM_COLUMNS, whole=["claim", "verdict"])
    if task:
        _print_rows(rows)
    _print_open_claims(claims)
    if is_target_shown and any(row["verdict"] == "not demonstrated" for row in tasks):
        steps = step_lines(view_rows(connection, "target_plan"))
        print_lines(["", "The plan for the target:" if steps else "", *steps])
    for file in damage:
        note(f"damaged: {file['path']} {file['problem']}")
    print_lines([""])
    _print_tasks(tasks)
    _print_next(about["run_id"], root_option(root), tasks, task)
    return exit_code


def summarize(root: Path, run_id: str, *, is_json: bool) -> int:
    """Prints the verdicts of a run that has just ended, and what to do next."""
    connection = open_run(root, run_id, names=SUMMARIZED)
    about = selected_run(connection)
    tasks = view_rows(connection, "task_verdicts")
    stages = view_rows(connection, "run_stages", run_id=run_id)
    if is_json:
        print_json({"run": about, "tasks": tasks, "stages": stages})
        return 0
    _print_tasks(tasks)
    print_lines(
        [
            "",
            f"Run {run_id}: {_count(about['executed_stages'], 'stage')} executed, "
            f"{about['reused_stages']} reused; {_sum_up(tasks)}",
            "Next: harness review" + root_option(root),
        ]
    )
    return 0


def _of_task(rows: list[Row], wanted: tuple[int, ...]) -> list[Row]:
    return [row for row in rows if not wanted or row["review_task"] in wanted]


def _exit_code(claims: list[Row], tasks: list[Row], require: str | None) -> int:
    if any(claim["verdict"] == "revise" for claim in claims):
        return 1
    is_accepted = all(row["verdict"].startswith("accept") for row in tasks)
    return 1 if require == "accept" and not is_accepted else 0


def _print_rows(rows: list[Row]) -> None:
    """Prints the rows of each claim, and below all of them where they come from."""
    for claim in dict.fromkeys(row["claim"] for row in rows):
        shown = [
            {
                "status": row["status"],
                "what": f"{row['measure']} {row['case_name']}",
                "measured": measured(row),
                "required": required(row),
            }
            for row in rows
            if row["claim"] == claim
        ]
        print_lines(["", f"Claim {claim}"])
        whole = ["status", "measured", "required"]
        print_table(shown, ROW_COLUMNS, whole=whole)
    origins = {
        f"{row['stage']} ({row['state']}) of {row['finished_at']} on {row['host']}": 1
        for row in rows
        if row["execution_id"]
    }
    print_lines(["", *(f"from {shortened(origin)}" for origin in origins)])


def measured(row: Row) -> str:
    """Returns a value with its unit; the six digits of a real, all of a count."""
    if row["value_real"] is not None:
        return f"{row['value_real']:.6g} {row['unit']}"
    if row["value_count"] is not None:
        return f"{row['value_count']} {row['unit']}"
    text = shortened(row["value"])
    is_long = len(text) > LONGEST_VALUE
    return f"{text[: LONGEST_VALUE - 1]}…" if is_long else text


def required(row: Row) -> str:
    """Returns what a row must be, such as "≤ 0.001"."""
    if row["relation"] in SIGNS:
        return f"{SIGNS[row['relation']]} {row['limit_text']}"
    return str(row["relation"])


def _print_tasks(tasks: list[Row]) -> None:
    print_table(tasks, TASK_COLUMNS, whole=["verdict"])
    if any(row["undrilled"] for row in tasks):
        print_lines(["undrilled: no planted fault has shown that the check can fail."])


def _sum_up(tasks: list[Row]) -> str:
    """Returns in words what went wrong, and what is missing."""
    revised = sum(row["revised"] for row in tasks)
    missing = sum(row["open"] for row in tasks)
    wrong = f"{_count(revised, 'claim')} to revise" if revised else "nothing failed"
    shown = f"{_count(missing, 'claim')} not demonstrated yet"
    return f"{wrong}; {shown if missing else 'every claim is demonstrated'}."


def _print_open_claims(claims: list[Row]) -> None:
    open_claims = [c for c in claims if c["next_step"]]
    if open_claims:
        print_lines(["", "What would change a verdict:"])
        for claim in open_claims:
            print_lines([f"  {claim['claim']}  {claim['next_step']}"])


def _print_next(run: str, option: str, tasks: list[Row], task: tuple[int, ...]) -> None:
    pending = [row for row in tasks if not row["verdict"].startswith("accept")]
    # What is wrong comes before what is missing.
    pending.sort(key=lambda row: (row["verdict"] != "revise", row["review_task"]))
    accepted = sum(row["accepted"] for row in tasks)
    claims = sum(row["claims"] for row in tasks)
    print_lines(
        ["", f"Run {run}: {accepted} of {claims} claims accepted; {_sum_up(tasks)}"]
    )
    if not task and pending:
        command = f"harness review {run} --task {pending[0]['review_task']}"
    else:
        command = f"harness report {run}"
    print_lines([f"Next: {command}{option}"])


def _count(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
