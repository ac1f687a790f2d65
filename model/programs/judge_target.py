"""Holds what a target left against the reference that this machine computes itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model.checks.slice_result import SliceJudge
from model.checks.target_result import Judge
from model.programs import entry
from model.programs.probe_target import answer_row, device_rows, sign_rows
from model.target_result import controllers_of, read_result


def main(request: dict[str, Any], out: Path) -> None:
    """Writes the rows of claims 5.1 to 5.5, and what was answered and timed.

    Args:
        request: ``folder`` (the result), ``nonce``, ``code_sha256``, ``hosts``
            (controllers of the accelerator), ``released_sha256`` (digest of the
            released parameters, empty where none is known).
        out: Result folder.

    Raises:
        Refused: The result is not whole, or is of no target.
    """
    folder = Path(request["folder"])
    manifest = read_result(folder)
    entry.report(event="reference", message="computing the reference on this CPU")
    is_slice = controllers_of(manifest) > 1
    judge = (SliceJudge if is_slice else Judge)(folder, manifest, request)
    for table, rows in judged_rows(judge).items():
        entry.write_rows(out, table, rows)


def judged_rows(judge: Judge | SliceJudge) -> dict[str, list[dict[str, Any]]]:
    """Returns every row of a result, by table.

    Args:
        judge: The result of one host or of a slice, beside the reference.
    """
    answers = list(judge.answers())
    return {
        "measurements": [*judge.signs(), *judge.numbers()],
        "comparisons": [
            *judge.challenge(),
            *judge.configuration(),
            *judge.restart(),
        ],
        "target_answers": [answer_row(gang, each) for gang, each, _ in answers],
        "target_signs": [
            row for gang, each, signs in answers for row in sign_rows(gang, each, signs)
        ],
        "target_devices": [
            row for gang, each, _ in answers for row in device_rows(gang, each)
        ],
        "target_timings": judge.timings(),
    }


if __name__ == "__main__":
    entry.run(main)
