"""Holds what a target left against the reference that this machine computes itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model.checks.target_result import Judge, read_json
from model.programs import entry
from model.programs.probe_target import answer_row, device_rows, sign_rows
from model.target_result import read_result


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
    judge = Judge(folder, manifest, request)
    entry.write_rows(out, "measurements", [*judge.signs(), *judge.numbers()])
    entry.write_rows(
        out,
        "comparisons",
        [*judge.challenge(), *judge.configuration(), *judge.restart()],
    )
    entry.write_rows(out, "target_answers", [answer_row("", judge.observed)])
    entry.write_rows(out, "target_signs", sign_rows("", judge.observed, judge.found))
    entry.write_rows(out, "target_devices", device_rows("", judge.observed))
    timings = folder / "executed" / "records" / "target_timings.json"
    entry.write_rows(out, "target_timings", read_json(timings))


if __name__ == "__main__":
    entry.run(main)
