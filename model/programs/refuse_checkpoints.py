"""Gives a restore every checkpoint that it has to refuse, and writes what it said."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from model import checkpoint
from model.checkpoint_manifest import MARK, read_manifest
from model.checks import changed_requests
from model.checks import checkpoint_damage as damage
from model.checks import checkpoint_refusals as refusals
from model.checks.refused import Wrong
from model.checks.rows import Row
from model.checks.written import measure_written
from model.programs import entry
from model.refusal import ReasonCode
from model.training_request import TrainingRequest, read_request, training_identity


def main(request: dict[str, Any], out: Path) -> None:
    """Writes refusals, and what each of them named and touched.

    Args:
        request: A training request, with `restore_folder` for the matrix of single
            changes, or with `partial`, a list of `checkpoint` (folder) and `case` that
            a kill left without a mark; then it is measured too what a write leaves.
        out: Result folder.
    """
    training = read_request(request)
    if "partial" in request:
        rows = _refuse_partial(training, request["partial"])
        entry.write_rows(out, "comparisons", measure_written(training))
    else:
        rows = _refuse_single_changes(training, out)
    entry.write_rows(out, "refusals", [refused for refused, _ in rows])
    comparisons = [compared for _, about in rows for compared in about]
    entry.write_rows(out, "comparisons", comparisons)


def _refuse_single_changes(
    training: TrainingRequest, out: Path
) -> list[tuple[Row, list[Row]]]:
    assert training.restore_folder is not None, "the matrix needs a checkpoint"
    folder = checkpoint.latest_checkpoint(training.restore_folder)
    given = (folder, training.model, training_identity(training))
    recorded = refusals.recorded_fields(read_manifest(folder)["identity"])
    entry.write_rows(out, "checkpoint_fields", recorded)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        pairs = [
            *refusals.refuse_two_settings(*given),
            *damage.refuse_damages_under_settings(*given, scratch / "changed"),
            *damage.refuse_two_damages(*given, scratch / "two"),
        ]
        entry.write_rows(out, "refused_pairs", pairs)
        return [
            *refusals.refuse_settings(*given),
            *changed_requests.refuse_requests(training),
            *changed_requests.refuse_other_precisions(training, scratch / "written"),
            *damage.refuse_damages(*given, scratch / "one"),
        ]


def _refuse_partial(
    training: TrainingRequest, partial: list[dict[str, str]]
) -> list[tuple[Row, list[Row]]]:
    identity = training_identity(training)
    rows = []
    for item in partial:
        folder = Path(item["checkpoint"])

        def attempt(half: Path = folder) -> None:
            checkpoint.load_checkpoint(half, training.model, identity)

        rows.append(
            refusals.refused_restore(
                "partial_checkpoint",
                Wrong(
                    case=item["case"],
                    code=ReasonCode.CHECKPOINT_UNCOMMITTED,
                    fields=(MARK,),
                ),
                folder,
                attempt,
                claim="2.3",
            )
        )
    return rows


if __name__ == "__main__":
    entry.run(main)
