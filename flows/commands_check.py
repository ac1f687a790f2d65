"""`harness check` and `harness starter`: qualifying somebody's own implementation."""

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from flows.commands_review import measured, required
from flows.display import note, print_json, print_lines, shortened
from flows.options import Json
from model.system import (
    FUNCTIONS,
    TIME_LIMIT_SECONDS,
    asked_claims,
    of_review_tasks,
)

BUILT_IN = "builtin"
DAY_SECONDS = 86_400
TASKS = {"1": (1,), "2": (2,), "3": (3,), "4": (4,), "all": (1, 2, 3, 4)}


def check(
    *,
    implementation: Annotated[
        str,
        Parameter(help="Python file with your functions, or `builtin`."),
    ],
    stage: Annotated[
        Literal["1", "2", "3", "4", "all"],
        Parameter(
            help="Review task to check: 1 objective, 2 recovery, 3 cache, 4 execution."
        ),
    ] = "1",
    time_limit: Annotated[
        float,
        Parameter(
            help="Most seconds that one call of a function may take.",
            validator=Number(gt=0, lt=DAY_SECONDS),
        ),
    ] = TIME_LIMIT_SECONDS,
    is_json: Json = False,
) -> int:
    """Check your own functions as the built-in system is checked, in a few minutes.

    A smaller run than `harness run`, whose evidence is not kept. Exit code 1: a check
    fails; 2: it could not run.
    """
    from flows.implementation_check import checked_claims, conformance

    tasks = TASKS[stage]
    file = None if implementation == BUILT_IN else Path(implementation).absolute()
    again = _again(implementation, stage, time_limit)
    document: dict[str, Any] = {
        "implementation": implementation,
        "stage": stage,
        "review_tasks": list(tasks),
    }
    held = [each.name for each in FUNCTIONS]
    if file is not None:
        if not file.is_file():
            return _refused(
                f"there is no file {implementation!r}; `harness starter` writes one."
            )
        report = conformance(file, time_limit, of_review_tasks(tasks))
        held = report.held
        document |= {"functions": report.found, "left_out": report.left_out}
        if not is_json:
            _print_functions(report.found, report.left_out)
        if report.wrong:
            return _end(document, report.wrong, again, is_json)
        if not report.found:
            names = ", ".join(each.name for each in of_review_tasks(tasks))
            return _refused(
                f"{implementation} defines none of the functions that stage {stage} "
                f"measures: {names}."
            )
    claims, failure = checked_claims(file, time_limit, tasks)
    asked = {row["claim"] for row in claims} if file is None else asked_claims(held)
    shown = [row for row in claims if row["claim"] in asked]
    document |= {"claims": shown, "failure": failure}
    # A claim that was asked and shows nothing has not passed.
    wrong = [row["claim"] for row in shown if row["verdict"] != "accept"]
    wrong += [] if shown else ["nothing was measured"]
    if not is_json:
        _print_claims(shown, [row["claim"] for row in claims if row not in shown])
        if failure:
            print_lines(["", f"It ended early: {failure}"])
    # What ended early has measured the less; the stage says where.
    wrong += [failure.partition(":")[0]] if failure else []
    return _end(document, wrong, again, is_json)


def _refused(sentence: str) -> int:
    note(f"harness: {sentence}")
    return 2


def starter(
    file: Annotated[Path, Parameter(help="File to write; it must not exist yet.")],
    /,
) -> int:
    """Write a commented Python file with every function of a system, to fill in."""
    from flows.implementation_starter import starter_text

    if file.suffix != ".py":
        note(f"harness: {str(file)!r} is no name of a Python file: let it end with .py")
        return 2
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(starter_text(file.name))
    except FileExistsError:
        note(
            f"harness: {str(file)!r} exists already and is left as it is; name another."
        )
        return 2
    print_lines(
        [
            f"Wrote {file} with {len(FUNCTIONS)} functions to fill in.",
            f"Next: harness check --implementation {file} --stage 1",
        ]
    )
    return 0


def _print_functions(found: list[dict[str, str]], left_out: list[str]) -> None:
    for row in found:
        sentence = row["found"] or "has the form of its signature"
        print_lines([f"{row['function']:<20} {sentence}"])
    if left_out:
        print_lines([f"Built-in, not asked about: {', '.join(left_out)}."])


def _print_claims(shown: list[dict[str, Any]], others: list[str]) -> None:
    print_lines([""])
    for row in shown:
        what = f"{row['measure']} {row['case_name']}".strip()
        found = measured(row) if row["status"] in ("met", "unmet") else "not measured"
        line = (
            f"{row['claim']:<5} {row['verdict']:<17} {what}: {found}, "
            f"must be {required(row)}"
        )
        print_lines([shortened(line)])
        if row["verdict"] != "accept":
            print_lines([f"      {_look(row)}"])
    if others:
        print_lines(
            [f"Not asked, none of your functions is measured by: {', '.join(others)}."]
        )


def _look(row: dict[str, Any]) -> str:
    """Returns what to look at next: the functions that a claim measures."""
    names = [each.name for each in FUNCTIONS if row["claim"] in each.claims]
    where = f"look at {', '.join(names)}" if names else "look at the stage"
    detail = f" ({shortened(row['detail'])})" if row["detail"] else ""
    return f"{where}: {row['statement']}{detail}"


def _again(implementation: str, stage: str, time_limit: float) -> str:
    """Returns the command of this very check."""
    limit = f" --time-limit {time_limit:g}" if time_limit != TIME_LIMIT_SECONDS else ""
    named = shlex.quote(implementation)
    return f"harness check --implementation {named} --stage {stage}{limit}"


def _end(document: dict[str, Any], wrong: list[str], again: str, is_json: bool) -> int:
    exit_code = 1 if wrong else 0
    if is_json:
        print_json(document | {"exit_code": exit_code})
        return exit_code
    if wrong:
        names = ", ".join(dict.fromkeys(wrong))
        print_lines(["", f"Fails: {names}.", f"Next: mend it, then {again}"])
        return exit_code
    implementation, stage = document["implementation"], document["stage"]
    further = "harness run"
    if implementation != BUILT_IN:
        further += f" --implementation {shlex.quote(implementation)}"
    print_lines(["", f"Stage {stage} passes for {implementation}.", f"Next: {further}"])
    return exit_code
