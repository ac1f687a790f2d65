"""Two runs of one stage, to be held against each other."""

from typing import Any

from warehouse.records.training import UpdateDigest

NAMES = [
    f"comparison{part}"
    for part in (
        *("", "_stages", "_rows", "_verdicts", "_findings", "_changes"),
        *("_artifacts", "_updates", "_timings"),
    )
]
"""The views of a comparison."""
BEFORE, AFTER = "run-1", "run-2"
STAGE = "train_model"
TIMED = {"stage:name": STAGE, "machine:cpu": "here"}
"""The key of a stage that measures time."""


def update(number: int, kind: str, sha256: str, leaf: str = "", label: str = "u"):
    return UpdateDigest(
        run_label=label,
        update=number,
        kind=kind,
        leaf=leaf,
        dtype="float32",
        shape="[]",
        sha256=sha256,
    )


def rows_of(connection: Any, view: str) -> list[dict[str, Any]]:
    result = connection.execute(f"select * from {view}")
    names = [column[0] for column in result.description]
    return [dict(zip(names, values, strict=True)) for values in result.fetchall()]
