"""What came of a proof, on the terminal: its rows, its claims, and one sentence."""

from collections.abc import Sequence
from pathlib import Path

from flows.display import print_json, print_lines, print_table
from flows.options import root_option
from flows.reading import Row, open_run, view_rows

CLAIM_COLUMNS = {
    "claim": "claim",
    "verdict": "verdict",
    "rows_met": "met",
    "rows_unmet": "unmet",
    "rows_missing": "missing",
    "statement": "statement",
    "next_step": "what would change it",
}
CERTIFICATE_COLUMNS = {
    "case_name": "interrupted at",
    "kills_of_training": "kills of it",
    "killed_process_id": "killed process",
    "restored_process_id": "restored by",
    "restored_update": "restored update",
    "updates_compared": "updates compared",
    "first_divergence": "first divergence",
}
FAULT_COLUMNS = {
    "control": "planted fault",
    "found_at": "found at",
    "first_difference": "what parts there",
    "first_loss_nats": "next loss, nats",
    "first_planted_loss_nats": "with the fault",
    "second_loss_change_nats": "second loss apart",
}
NAMED = 5
"""Rows that the last sentence names at most."""


def show_proof(root: Path, run_id: str, stages: Sequence[str], *, is_json: bool) -> int:
    """Shows what the stages of a proof found; returns the exit code.

    Args:
        root: Folder of the store.
        run_id: The run that made the proof.
        stages: Names of the stages the proof consists of.
        is_json: Whether one JSON document is printed and nothing else.
    """
    connection = open_run(root, run_id)
    certificates = [
        row
        for row in view_rows(connection, "recovery_certificates")
        if row["certificate"] in stages
    ]
    is_drilled = "drill_recovery" in stages
    faults = view_rows(connection, "negative_controls") if is_drilled else []
    of_stages = [r for r in view_rows(connection, "claim_rows") if r["stage"] in stages]
    proved = {row["claim"] for row in of_stages}
    claims = [r for r in view_rows(connection, "verdicts") if r["claim"] in proved]
    exit_code = 1 if any(claim["verdict"] == "revise" for claim in claims) else 0
    if is_json:
        found = {"certificates": certificates, "faults": faults, "claims": claims}
        print_json({"run_id": run_id} | found | {"exit_code": exit_code})
        return exit_code
    for rows, columns in ((certificates, CERTIFICATE_COLUMNS), (faults, FAULT_COLUMNS)):
        if rows:
            print_table(rows, columns)
            print_lines([""])
    print_table(claims, CLAIM_COLUMNS)
    next_command = f"Next: harness review --task 2{root_option(root)}"
    print_lines(["", sentence(claims, of_stages), next_command])
    return exit_code


def sentence(claims: list[Row], rows: list[Row]) -> str:
    """Returns what came of a proof, in one sentence.

    Args:
        claims: Rows of `verdicts`.
        rows: The rows of `claim_rows` that they rest on.
    """
    failed = [claim["claim"] for claim in claims if claim["verdict"] == "revise"]
    if failed:
        return f"The proof failed: {'; '.join(_failure(c, rows) for c in failed)}."
    unproven = [
        claim["claim"] for claim in claims if not claim["verdict"].startswith("accept")
    ]
    if unproven:
        return f"Nothing is wrong, but not demonstrated: {', '.join(unproven)}."
    return "The proof holds."


def _failure(claim: str, rows: list[Row]) -> str:
    """Returns a claim with the rows that it failed by."""
    unmet = [
        f"{row['measure']} {row['case_name']}".rstrip()
        for row in rows
        if row["claim"] == claim and row["status"] in ("unmet", "invalid")
    ]
    named = unmet[:NAMED] + ([f"{len(unmet)} in all"] if len(unmet) > NAMED else [])
    return f"{claim} ({', '.join(named)})" if named else claim
