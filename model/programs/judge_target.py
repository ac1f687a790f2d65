"""Holds what a target left against the reference that this machine computes itself."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

from model.checks.slice_result import SliceJudge
from model.checks.target_result import Judge, read_json
from model.checks.target_rows import sold_row
from model.programs import entry
from model.programs.probe_target import answer_row, device_rows, sign_rows
from model.refusal import ReasonCode, Refused
from model.target_result import controllers_of, read_result
from model.workload_trace import TRACE, require_as_told

# The result is whole, but its files may say anything: a name that is not there, text
# for a number, an archive that is none, a number that no float or memory holds.
MALFORMED = (
    *(LookupError, TypeError, ValueError, AttributeError, OSError, ArithmeticError),
    *(EOFError, zipfile.BadZipFile, zlib.error, RecursionError, MemoryError),
    *(NotImplementedError, StopIteration),
)
LARGEST_COUNT = 2**63


def main(request: dict[str, Any], out: Path) -> None:
    """Writes the rows of claims 5.1 to 5.5, and what was answered and timed.

    Args:
        request: ``folder`` (the result), ``model`` and ``train`` (settings that were
            asked for, which the result has no say in), ``nonce``, ``code_sha256``,
            ``accelerator`` (what was asked for: hosts, devices, kinds and chip),
            ``released_sha256`` (digest of the released parameters, empty where none is
            known).
        out: Result folder.

    Raises:
        Refused: The result is not whole, or holds what no target writes, such as a
            summary of a trace that is not in its raw trace.
    """
    folder = Path(request["folder"])
    manifest = read_result(folder)
    entry.report(event="reference", message="computing the reference on this CPU")
    is_slice = controllers_of(manifest) > 1
    try:
        for summary in folder.rglob(TRACE):
            require_as_told(summary.parent, read_json(summary))
        judge = (SliceJudge if is_slice else Judge)(folder, manifest, request)
        found = judged_rows(judge)
        _require_numbers(found)
    except MALFORMED as error:
        told = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise Refused(
            ReasonCode.ARTIFACT_METADATA_MISMATCH,
            f"a file of this result does not hold what a target writes ({told}); let "
            "model.programs.qualify_target write it again",
        ) from error
    for table, rows in found.items():
        entry.write_rows(out, table, rows)


def _require_numbers(found: dict[str, list[dict[str, Any]]]) -> None:
    """Refuses an integer that no record can hold; the result made it what it is.

    Raises:
        OverflowError: There is one.
    """
    for table, rows in found.items():
        for row in rows:
            for name, value in row.items():
                if isinstance(value, int) and abs(value) >= LARGEST_COUNT:
                    raise OverflowError(f"{table}.{name} would have {value:.3g}")


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
        "target_accelerators": [sold_row(judge.request["accelerator"])],
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
