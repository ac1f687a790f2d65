"""Faults of files of a store, and two changes that are none."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.faults import NO_REPORT, Fault
from tests.faults.declaring import of_file
from tests.faults.made_stores import STAGE
from tests.store_maker import StoreMaker
from tests.warehouse.damaged import flip
from tests.warehouse.made_rows import REAL, rewrite, with_value

GROUP = "store"
_damage = partial(of_file, GROUP)


def _evidence(made: StoreMaker) -> Path:
    nonce = made.executions[STAGE].nonce
    return made.store.evidence_file(nonce, "measurements")


def _first(made: StoreMaker, pattern: str) -> Path:
    return next(iter(sorted(made.store.root.glob(pattern))))


def _move(made: StoreMaker) -> None:
    other = made.store.root.with_name("moved")
    made.store.root.rename(other)
    made.store.root = other


FAULTS = (
    _damage(
        "evidence-bit-flipped",
        *("whole_store", "store"),
        "records/<nonce>/measurements.parquet",
        "One bit of an evidence file is another one.",
        "paleolimbot/duckdb-nanoarrow#105",
        lambda made: flip(_evidence(made), 0.3),
    ),
    _damage(
        "evidence-file-cut",
        *("whole_store", "store"),
        "records/<nonce>/measurements.parquet",
        "An evidence file ends too early.",
        "apache/parquet-java#2109",
        lambda made: _evidence(made).write_bytes(_evidence(made).read_bytes()[:-9]),
    ),
    _damage(
        "evidence-without-rows",
        *("whole_store", "store"),
        "records/<nonce>/measurements.parquet",
        "An evidence file holds no row, and its record says so.",
        NO_REPORT,
        lambda made: rewrite(
            made, made.executions[STAGE], "measurements", lambda rows: rows.slice(0, 0)
        ),
    ),
    _damage(
        "nan-from-another-writer",
        *("whole_store", "store"),
        "records/<nonce>/measurements.parquet",
        "Another program has written NaN where a number was measured.",
        "duckdb/duckdb#10196",
        lambda made: rewrite(
            made,
            made.executions[STAGE],
            "measurements",
            with_value("value_real", float("nan"), REAL),
        ),
    ),
    _damage(
        "artifact-bit-flipped",
        *("whole_store", "store"),
        "artifacts/<digest>",
        "One bit of an artifact is another one.",
        "iterative/dvc#9542",
        lambda made: flip(_first(made, "artifacts/*/*"), 0.5),
    ),
    _damage(
        "commit-record-deleted",
        *("whole_store", "store"),
        "executions/<stage>/<key>/<nonce>.json",
        "The commit record that a run rests on is gone.",
        "restic/restic#3273",
        lambda made: _first(made, "executions/train_model/*/*.json").unlink(),
    ),
    _damage(
        "run-record-edited",
        *("whole_store", "store"),
        "runs/<run>/finished.json",
        "The record of how a run ended was edited by hand.",
        "borgbackup/borg#7670",
        lambda made: flip(_first(made, "runs/*/finished.json"), 0.5),
    ),
    Fault(
        name="unfinished-file-beside-evidence",
        group=GROUP,
        summary="An unfinished file lies beside the evidence, and nothing reads it.",
        source=NO_REPORT,
        claim="store",
        replaces="records/<nonce>/measurements.tmp.parquet",
        scene="whole_store",
        file=lambda made: (
            _evidence(made)
            .with_name("measurements.tmp.parquet")
            .write_bytes(b"unfinished")
        ),
        is_benign=True,
    ),
    Fault(
        name="store-copied-to-another-folder",
        group=GROUP,
        summary="The store lies in another folder than the one that wrote it.",
        source=NO_REPORT,
        claim="store",
        replaces="the folder of the store",
        scene="whole_store",
        file=_move,
        is_benign=True,
    ),
)
