"""`harness accept` and `harness compare`: a baseline, and what differs from it."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from flows.display import print_json, print_lines, print_table, shortened
from flows.options import DEFAULT_ROOT, Json, Root, Run, root_option
from flows.reading import ACCEPTED, Row, open_run, view_rows
from warehouse.errors import ComparisonRefused

VIEWS = {
    "changes": "comparison_changes",
    "stages": "comparison_stages",
    "findings": "comparison_findings",
    "verdicts": "comparison_verdicts",
    "updates": "comparison_updates",
    "artifacts": "comparison_artifacts",
    "rows": "comparison_rows",
    "timings": "comparison_timings",
}
CHANGE_COLUMNS = {"what": "changed", "before_value": "before", "after_value": "after"}
STAGE_COLUMNS = {"stage": "stage", "result": "compared", "why": "why it ran"}
FINDING_COLUMNS = {
    "result": "result",
    "place": "where",
    "before_value": "before",
    "after_value": "after",
}
DRIFT_COLUMNS = {
    "row": "drifted within its limit",
    "before_value": "before",
    "after_value": "after",
    "moved": "by",
    "share": "of its limit",
}
TIMING_COLUMNS = {
    "timing": "timing (not judged)",
    "before": "before: least / median / largest",
    "after": "after",
    "ratio": "median after/before",
}
SHOWN = {"changes": 20, "stages": 20, "timings": 25, "drift": 5, "findings": 12}
"""Rows of each table that people see; `--json` has all of them."""


def accept(
    run: Run,
    /,
    *,
    note: Annotated[
        str, Parameter(help="Why it is accepted, in a sentence that is kept.")
    ] = "",
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Accept a run as the baseline that later runs of its preset and data meet.

    A run of your own implementation is a baseline for that file alone.

    The newest accepted run counts; earlier decisions stay on record. A run that is not
    complete, is damaged or has a claim to revise is refused.
    """
    from warehouse.acceptance import accept_run

    baseline = asdict(accept_run(root, run, note))
    if is_json:
        print_json(baseline)
        return 0
    print_lines(
        [
            f"Run {baseline['run_id']} is the baseline of preset {baseline['preset']} "
            f"and data {shortened(baseline['data_sha256'])} for flow "
            f"{baseline['flow']} and {_whose(baseline['implementation'])} now.",
            _next_after(baseline, root_option(root)),
        ]
    )
    return 0


def _whose(implementation: str) -> str:
    return implementation or "the built-in system"


def _next_after(baseline: dict[str, str], root: str) -> str:
    flow, file = baseline["flow"], baseline["implementation"]
    if flow == "qualify":
        own = f" --implementation {file}" if file else ""
        return f"Next: harness run --fresh{own}{root}, then harness compare{root}"
    return (
        f"Runs of `harness run` are not compared with it, only those of {flow}; "
        f"`harness accept RUN{root}` takes one of those that harness runs{root} lists."
    )


def compare(
    run: Run = "latest",
    other: Annotated[
        str | None,
        Parameter(help="With it RUN is the run before, and this the one after."),
    ] = None,
    /,
    *,
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Compare a run with its accepted baseline, or RUN (before) with OTHER (after).

    Exit code 1: an exact value differs, something is missing, or a verdict got worse. A
    comparison that shows nothing, such as one without a baseline, is 0 and says so.
    """
    before, after = (ACCEPTED, run) if other is None else (run, other)
    names = ("comparison", *VIEWS.values())
    connection = open_run(root, after, names=names, against=before)
    found = view_rows(connection, "comparison")
    if not found or found[0]["result"] == "refused":
        raise ComparisonRefused(
            found[0]["sentence"] if found else "The store has no run to compare yet."
        )
    (about,) = found
    tables = {name: view_rows(connection, view) for name, view in VIEWS.items()}
    exit_code = 1 if about["result"] == "worse" else 0
    if is_json:
        print_json({"comparison": about, **tables, "exit_code": exit_code})
        return exit_code
    if about["before_run_id"] is not None:
        _print_tables(tables)
    print_lines(
        [
            *([""] if about["before_run_id"] is not None else []),
            _capitalized(about["sentence"]),
            *_next_lines(about, root_option(root)),
        ]
    )
    return exit_code


def _print_tables(tables: dict[str, list[Row]]) -> None:
    changes = [
        {**row, "what": f"{row['kind']} {row['name']}"} for row in tables["changes"]
    ]
    stages = [
        {**row, "why": row["after_reason"] if row["result"] == "recomputed" else ""}
        for row in tables["stages"]
    ]
    moved = [row for row in tables["rows"] if row["result"] == "drifted"]
    moved.sort(key=lambda row: -abs(row["drift_share"] or 0))
    # What happens once a process says little about the system.
    timings = [
        row
        for row in tables["timings"]
        if row["result"] == "shown" and not row["what"].startswith("first")
    ]
    if not changes:
        print_lines(["Both runs are about the same subject: nothing was changed."])
    shown = {
        "changes": (changes, CHANGE_COLUMNS),
        "stages": (stages, STAGE_COLUMNS),
        "timings": ([_timing(row) for row in timings], TIMING_COLUMNS),
        "drift": ([_drift(row) for row in moved], DRIFT_COLUMNS),
        "findings": (tables["findings"], FINDING_COLUMNS),
    }
    for name, (rows, columns) in shown.items():
        if rows:
            print_lines([""] if name != "changes" else [])
            print_table(rows[: SHOWN[name]], columns, longest=72)
        if len(rows) > SHOWN[name]:
            print_lines([f"… and {len(rows) - SHOWN[name]} more; --json has them."])


def _timing(row: Row) -> Row:
    def spread(side: str) -> str:
        values = [row[f"{side}_{name}_ns"] for name in ("least", "median", "largest")]
        return " / ".join("" if v is None else _milliseconds(v) for v in values)

    ratio = row["median_ratio"]
    return {
        "timing": f"{row['what']} {row['case_name']}",
        "before": f"{spread('before')} ms, {row['before_samples']}×",
        "after": f"{spread('after')} ms, {row['after_samples']}×",
        "ratio": "" if ratio is None else f"{ratio:.2f}",
    }


def _milliseconds(duration_ns: int) -> str:
    return (
        f"{duration_ns / 1e6:.3g}" if duration_ns < 1e9 else f"{duration_ns / 1e6:.0f}"
    )


def _drift(row: Row) -> Row:
    share = row["drift_share"]
    return {
        "row": f"{row['claim']} {row['measure']} {row['case_name']}",
        "before_value": row["before_value"],
        "after_value": row["after_value"],
        "moved": f"{row['drift']:+.3g} {row['unit']}",
        "share": "" if share is None else f"{100 * share:+.2g} %",
    }


def _next_lines(about: Row, option: str) -> list[str]:
    after = about["after_run_id"]
    if about["result"] == "worse":
        return [
            f"If that is what was meant: harness accept {after}{option}",
            f"Next: harness review {after}{option}",
        ]
    if about["result"] == "agrees":
        return [f"Next: harness report {after}{option}"]
    if about["before_run_id"] is None:
        return [f"Next: harness accept {after}{option}"]
    return [f"Next: harness run --fresh --preset {about['preset']}{option}"]


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
