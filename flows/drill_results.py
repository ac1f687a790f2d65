"""What came of a drill, on the terminal: a line a fault, and how many were killed."""

from pathlib import Path

from flows.display import print_json, print_lines, print_table
from flows.options import root_option
from flows.proof_results import CLAIM_COLUMNS, FAULT_COLUMNS, sentence
from flows.reading import Row, open_run, view_rows

DRILL_COLUMNS = {
    "outcome": "outcome",
    "stage": "stage",
    "fault": "planted fault",
    "claim": "has to catch it",
    "first_claim": "first noticed by",
    "claims": "noticed by",
}
VIEWS = ("drills", "survivors", "false_alarms", "idle_checks")
OF_RESTORE = "drill_recovery"


def show_drill(root: Path, run_id: str, *, is_whole: bool = True, is_json: bool) -> int:
    """Shows what a drill found; returns the exit code.

    Args:
        root: Folder of the store.
        run_id: The run of the drill.
        is_whole: Whether all faults were planted; some alone leave most checks idle.
        is_json: Whether one JSON document is printed and nothing else.
    """
    connection = open_run(root, run_id)
    found = {view: view_rows(connection, view) for view in VIEWS}
    if not is_whole:
        found["idle_checks"] = []
    stages = view_rows(connection, "raw.run_links", run_id=run_id)
    is_restored = any(row["stage"] == OF_RESTORE for row in stages)
    rows = view_rows(connection, "claim_rows", stage=OF_RESTORE) if is_restored else []
    proved = {row["claim"] for row in rows}
    claims = [r for r in view_rows(connection, "verdicts") if r["claim"] in proved]
    is_wrong = (
        # Evidence that is damaged is read as none, and none has survivors.
        not found["drills"]
        or bool(found["survivors"] or found["false_alarms"])
        or any(claim["verdict"] == "revise" for claim in claims)
    )  # fmt: skip
    restore = view_rows(connection, "negative_controls") if is_restored else []
    exit_code = 1 if is_wrong else 0
    if is_json:
        shown = {**found, "faults": restore, "claims": claims}
        print_json({"run_id": run_id, **shown, "exit_code": exit_code})
        return exit_code
    if restore:
        print_table(restore, FAULT_COLUMNS)
        print_lines([""])
        print_table(claims, CLAIM_COLUMNS)
        print_lines(["", sentence(claims, rows), ""])
    _print_drills(found, is_whole=is_whole)
    print_lines([f"Next: harness {_next(found)}{root_option(root)}"])
    return exit_code


def _print_drills(found: dict[str, list[Row]], *, is_whole: bool) -> None:
    print_table(found["drills"], DRILL_COLUMNS, whole=["outcome", "fault"])
    print_lines([""])
    for row in found["survivors"]:
        if row["failure"]:
            print_lines([f"{row['fault']} stopped: {row['failure']}"])
    for row in found["false_alarms"]:
        accused = row["claims"] or row["failure"]
        print_lines([f"{row['fault']} is no fault and was accused: {accused}"])
    for row in found["idle_checks"]:
        print_lines([f"No fault turned claim {row['claim']}: {row['statement']}"])
    print_lines([summary(found, is_whole=is_whole)])


def summary(found: dict[str, list[Row]], *, is_whole: bool = True) -> str:
    """Returns how many faults were killed, in one sentence."""
    idle = f"; {len(found['idle_checks'])} idle checks" if is_whole else ""
    outcomes = [row["outcome"] for row in found["drills"]]
    if not outcomes:
        return "No planted fault is on record: nothing was drilled, or it is damaged."
    faults = sum(not row["is_benign"] for row in found["drills"])
    counts = {
        "wait for a claim that is not measured yet": outcomes.count("waiting"),
        "survived": outcomes.count("survived"),
        "stopped a stage": outcomes.count("stopped"),
    }
    others = "".join(f", {count} {words}" for words, count in counts.items() if count)
    alarms, benign = outcomes.count("false alarm"), len(outcomes) - faults
    return (
        f"{outcomes.count('killed')} of {faults} faults killed{others}; "
        f"{alarms} false alarms in {benign} benign variants{idle}."
    )


def _next(found: dict[str, list[Row]]) -> str:
    for view in ("survivors", "false_alarms", "idle_checks"):
        if found[view]:
            return f'sql "select * from {view}"'
    return 'sql "select * from kill_matrix"'
