"""The commands that only look: `sql`, `runs`, `why` and `report`."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from flows.display import note, print_json, print_lines, print_table, seconds, shortened
from flows.options import DEFAULT_ROOT, Json, Root, Run, root_option
from flows.reading import (
    ACCEPTED,
    Row,
    UnknownName,
    check_known,
    open_run,
    selected_run,
    tell_unless_completed,
    view_rows,
)
from warehouse.errors import QueryError

RUN_COLUMNS = {
    "run_id": "run",
    "status": "status",
    "preset": "preset",
    "executed": "ran",
    "took": "took",
    "started": "started",
}
LEAST_SHOWN_NS = 5_000_000
CHANGE_COLUMNS = {"component": "what", "previous_value": "before", "value": "now"}


def sql(
    query: Annotated[
        str,
        # A query may begin with a comment, which looks like an option.
        Parameter(
            allow_leading_hyphen=True, help="One SELECT over the tables and views."
        ),
    ],
    /,
    *,
    run: Annotated[
        str | None, Parameter(help="The run that views show; else the latest.")
    ] = None,
    format: Annotated[
        Literal["table", "csv", "json"], Parameter(help="How to print the rows.")
    ] = "table",
    root: Root = DEFAULT_ROOT,
) -> int:
    """Ask the evidence a question in SQL (DuckDB), without access to any file.

    `select * from tables` and `select * from table_columns` say what there is.
    """
    from warehouse.answers import render
    from warehouse.load import known_names
    from warehouse.query import names_read

    try:
        answer = _ask(root, run, query, names_read(query, known_names()))
    except QueryError as error:
        if "does not exist" not in str(error):
            raise
        # Which name was meant can be said only where all of them are.
        answer = _ask(root, run, query, None)
    print_lines([render(answer, format)])
    if answer.is_cut:
        note(f"Only the first {len(answer.rows)} rows are shown; there are more.")
    return 0


def _ask(root: Path, run: str | None, query: str, names: Collection[str] | None) -> Any:
    """Returns the answer from a store that is opened for some names alone."""
    from warehouse.query import ask

    is_about_two = names is None or any("compar" in name for name in names)
    against = ACCEPTED if is_about_two else None
    connection = open_run(root, run, has_history=True, names=names, against=against)
    return ask(connection, query)


def runs(*, root: Root = DEFAULT_ROOT, is_json: Json = False) -> int:
    """List the runs of the store, the newest first."""
    rows = view_rows(open_run(root, None, names=["runs"]), "runs")
    if is_json:
        print_json(rows)
        return 0
    for row in rows:
        row["executed"] = _executed(row)
        row["took"] = seconds(row["duration_ns"])
        row["started"] = row["started_at"][:16].replace("T", " ")
    print_table(rows, RUN_COLUMNS, whole=["run_id", "status", "started"])
    if rows:
        print_lines(["", "ran: stages executed, of those the run used."])
    for row in rows:
        if row["status"] not in ("completed", "running"):
            print_lines([f"{row['run_id']}: {row['message']}"])
    command = f"review {rows[0]['run_id']}" if rows else "run"
    print_lines(["", f"Next: harness {command}{root_option(root)}"])
    return 0


def _executed(row: Row) -> str:
    executed, reused = row["executed_stages"], row["reused_stages"]
    return "" if executed is None else f"{executed} of {executed + reused}"


def why(
    run: Run,
    stage: Annotated[str, Parameter(help="Name of a stage, such as train_model.")],
    /,
    *,
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Say why a stage was executed in a run, or which execution it reused."""
    connection = open_run(root, run)
    about = selected_run(connection)
    run_id = about["run_id"]
    stages = view_rows(connection, "run_stages", run_id=run_id)
    _check_stage(connection, about, stage, [row["stage"] for row in stages])
    link = next(row for row in stages if row["stage"] == stage)
    changes = [
        row
        for row in view_rows(connection, "why_executed", run_id=run_id, stage=stage)
        if row["component"]
    ]
    if is_json:
        print_json({"stage": link, "changes": changes})
        return 0
    _print_link(link)
    if changes:
        print_lines([""])
        print_table(changes, CHANGE_COLUMNS)
    return 0


def _check_stage(connection: Any, run: Row, stage: str, used: list[str]) -> None:
    """Refuses a stage that the run did not use, or that there is not at all."""
    if stage in used:
        return
    required = sorted({row["stage"] for row in view_rows(connection, "raw.contract")})
    check_known("Stage", stage, used + [name for name in required if name not in used])
    if run["status"] == "running":
        problem = f"is still running; what became of {stage} is recorded at its end."
    elif run["status"] == "completed":
        problem = f"is completed and has no stage {stage}."
    else:
        problem = f"ended ({run['status']}) before {stage}."
    raise UnknownName(f"Run {run['run_id']} {problem}")


def _print_link(link: Row) -> None:
    took = seconds(link["duration_ns"])
    if link["state"] == "executed":
        text = f"{link['stage']} was executed in {took}: {link['reason']}"
    else:
        text = (
            f"{link['stage']} was reused: nothing its key holds has changed since the "
            f"execution of {shortened(link['finished_at'])} on {link['host']}."
        )
    times = _times(link)
    lines = [text, *times, f"execution {link['execution_id']}", f"key {link['key']}"]
    print_lines(lines)


def _times(link: Row) -> list[str]:
    """Returns a line about the parts of a stage's time, where they were taken."""
    parts = {"program_ns": "programs", "recording_ns": "recording"}
    parts |= {"hashing_ns": "hashing", "key_ns": "key", "waiting_ns": "waited before"}
    taken = [
        f"{words} {link[name] / 1e9:.2f} s"
        for name, words in parts.items()
        if link[name] is not None and link[name] >= LEAST_SHOWN_NS
    ]
    return [", ".join(taken)] if taken else []


def report(
    run: Run = "latest",
    /,
    *,
    format: Annotated[
        Literal["html", "markdown"], Parameter(help="Kind of page.")
    ] = "html",
    output: Annotated[
        Path | None, Parameter(help="File to write; else report-RUN in this folder.")
    ] = None,
    root: Root = DEFAULT_ROOT,
) -> int:
    """Write a page with verdicts, plots and the rows behind them."""
    from warehouse.report import write_report
    from warehouse.report_rows import ReportRows

    connection = open_run(root, run)
    about = selected_run(connection)
    tell_unless_completed(about)
    run_id = about["run_id"]
    suffix = "html" if format == "html" else "md"
    path = output or Path(f"report-{run_id}.{suffix}")
    if not path.parent.is_dir():
        raise UnknownName(
            f"The folder {str(path.parent)!r} of --output does not exist; make it, or "
            "name one that does."
        )
    files = write_report(ReportRows(connection), run_id, format, path)
    print_lines([str(file) for file in files])
    return 0
