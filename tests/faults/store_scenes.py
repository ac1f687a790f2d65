"""Scenes about verdicts, stored values and files, and runs that are compared."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from tests.faults import Scene, Stage
from tests.faults.made_stores import STAGE, asked, new_store, number, rule, told
from tests.faults.made_stores import verdicts as verdicts_of
from tests.store_maker import StoreMaker
from tests.warehouse.made_rows import REAL, comparison, refusal, rewrite, with_value
from warehouse.records.claims import Measurement
from warehouse.records.execution import ProgramExecution
from warehouse.records.training import Evaluation, TokenLoss, UpdateDigest
from warehouse.sealed import seal, unseal

BEYOND_DOUBLE = 2**53 + 1
ACCEPT, OPEN, REVISE = "accept (undrilled)", "not demonstrated", "revise"
TEXTS = {"limit": None, "unit": ""}


def made_rows(stage: Stage) -> None:
    """One claim for each row that may not be met, and one that is."""
    made = new_store(stage.folder)
    cases = {
        "good": (number(0), {}, ACCEPT),
        "null": (number(None), {}, OPEN),
        "absent": (None, {}, OPEN),
        "one_of_two_cases": (number(0, case_name="a"), {"cases": ("a", "b")}, OPEN),
        "unlisted_case": (number(1, case_name="c"), {"cases": ("a",)}, REVISE),
        "other_unit": (number(0, unit="tokens"), {}, REVISE),
        "beyond_double": (number(BEYOND_DOUBLE), {"limit": 2**53}, REVISE),
        "no_sides": (comparison("", ""), {"relation": "identical", **TEXTS}, OPEN),
        "no_refusal": (
            refusal("document_empty", None),
            {"relation": "refused", **TEXTS},
            REVISE,
        ),
        "infinite": (
            number(0.5),
            {"relation": "at_least", "stage": "infinite"},
            REVISE,
        ),
        "unjudged_nan": (number(0), {"stage": "unjudged_nan"}, REVISE),
    }
    claims, records = [], {}
    for place, (row, asked_of, _) in enumerate(cases.values(), 1):
        claim = f"1.{place}"
        claims.append(rule(claim, **asked_of))
        if row is not None:
            of_stage = records.setdefault(str(asked_of.get("stage", STAGE)), [])
            of_stage.append(dataclasses.replace(row, claim=claim))
    records["unjudged_nan"].append(number(0.5, claim="9.9"))
    for name, rows in records.items():
        made.execute(name, rows)
    infinite = with_value("value_real", float("inf"), REAL)
    rewrite(made, made.executions["infinite"], "measurements", infinite)
    rewrite(made, made.executions["unjudged_nan"], "measurements", _nan_at_the_end)
    made.run("run-1")
    stage.spoil(made)
    found = verdicts_of(made.store.root, claims)
    said = {
        name: (expected, found[f"1.{place}"])
        for place, (name, (*_, expected)) in enumerate(cases.items(), 1)
    }
    stage.promise("9.1", "made_rows", **said)


def _nan_at_the_end(rows: pyarrow.Table) -> pyarrow.Table:
    values = [*rows["value_real"].to_pylist()[:-1], float("nan")]
    place = rows.schema.get_field_index("value_real")
    return rows.set_column(place, rows.field(place), pyarrow.array(values, REAL))


def subjects(stage: Stage) -> None:
    """A good execution of one system, and another system that has none."""
    made = new_store(stage.folder)
    made.execute(STAGE, [number(0)])
    made.run("run-1", system="system-1")
    made.executions = {}
    made.run("run-2", system="system-2")
    claims = [rule("1.1")]
    said = {
        f"system-{place}": (
            expected,
            verdicts_of(made.store.root, claims, run=f"run-{place}")["1.1"],
        )
        for place, expected in ((1, ACCEPT), (2, OPEN))
    }
    stage.promise("9.1", "subjects", **said)


def stored_values(stage: Stage) -> None:
    """Values on which formats and libraries are known to part."""
    made = new_store(stage.folder)
    digests = [f"{place}2e45678{place}" + "0" * 55 for place in (1, 9)]
    measured = [number(BEYOND_DOUBLE), number(0.1), number(None)]
    written = [_digest(place, each) for place, each in enumerate(digests)]
    made.execute(STAGE, [*measured, *written])
    values, found = asked(
        made.store.root,
        [],
        ("stg_measurements", "row_number, value_count, value_real, reason"),
        ("stg_update_digests", "row_number, sha256"),
    )
    rows = dict.fromkeys(range(3)) | {place: tuple(row) for place, *row in values}
    stage.promise(
        "9.2",
        "stored_values",
        beyond_double=(f"({BEYOND_DOUBLE}, None, None)", rows[0]),
        tenth=("(None, 0.1, None)", rows[1]),
        null=("(None, None, 'not_measured')", rows[2]),
        digest=(str(digests), [row[1] for row in found]),
        not_a_number=("RecordError", told(lambda: _written_nan(stage.folder))),
        recounted=("[(0,)]", _recounted(stage.folder)),
    )


def _digest(update: int, sha256: str) -> UpdateDigest:
    return UpdateDigest(
        run_label="uninterrupted",
        update=update,
        kind="parameters",
        leaf="wte",
        dtype="float32",
        shape="[2]",
        sha256=sha256,
    )


def _written_nan(folder: Path) -> str:
    made = new_store(folder, "not_a_number")
    made.execute(STAGE, [number(float("nan"))])
    (found,) = asked(made.store.root, [], ("stg_measurements", "value_real"))
    return f"written as {found}"


def _recounted(folder: Path) -> Any:
    """How many targets a table of losses has beyond those that were evaluated."""
    made = new_store(folder, "recounted")
    names = {"release_policy": "fp32", "split": "heldout"}
    losses = [
        TokenLoss(
            **names,
            document_id="d",
            position=place,
            target_token=2,
            loss_nats=1.0,
            predicted_token=2,
            is_correct=True,
        )
        for place in range(3)
    ]
    counts = {"documents": 1, "valid_targets": 3, "correct_targets": 3}
    evaluation = Evaluation(
        **names, update=1, batch_documents=16, loss_sum_nats=3.0, **counts
    )
    made.execute("evaluate_heldout", [*losses, evaluation])
    (found,) = asked(made.store.root, [], ("recounted_losses", "max(value_count)"))
    return found


ALTERED = "was altered: its bytes are not the committed ones"
DAMAGES: dict[str, tuple[str, Any]] = {
    "flipped": (ALTERED, lambda made: _flip(made)),
    "cut": (ALTERED, lambda made: _cut(made)),
    "stray": ("2 rows", lambda made: _stray(made)),
    "without_a_column": (
        "columns ['detail'] are not as Measurement declares them",
        lambda made: rewrite(
            made,
            made.executions[STAGE],
            "measurements",
            lambda rows: rows.drop_columns(["detail"]),
        ),
    ),
    "fewer_rows": ("has 2 rows, not 5", lambda made: _promise_more_rows(made)),
    "edited_commit": (
        "was altered: its content does not fit its own digest",
        lambda made: _edit_commit(made),
    ),
    "without_commit": ("0 rows", lambda made: _remove_commit(made)),
}
"""What is done to the last execution of a store, and what is said of it."""


def stored_files(stage: Stage) -> None:
    """One execution for each damage: what the view of damage says, or how many rows."""
    made = new_store(stage.folder)
    nonces = {}
    for name, (_, damage) in DAMAGES.items():
        execution = made.execute(STAGE, [number(0.1), number(0.2)], key=name)
        nonces[name] = execution.nonce
        damage(made)
    damaged, rows = asked(
        made.store.root,
        [],
        ("damage", "execution_id, problem"),
        ("stg_measurements", "execution_id"),
    )
    problems = dict(damaged)
    counts = Counter(execution_id for (execution_id,) in rows)
    said = {}
    for name, (expected, _) in DAMAGES.items():
        found = problems.get(nonces[name], f"{counts[nonces[name]]} rows")
        # Before it stands the path, which is another one each time.
        said[name] = (expected, found[max(0, found.find("was altered")) :])
    stage.promise("9.2", "stored_files", **said)


def _evidence(made: StoreMaker) -> Path:
    return made.store.evidence_file(made.executions[STAGE].nonce, "measurements")


def _flip(made: StoreMaker) -> None:
    """Flips a bit of the stored values, so that the file still is a Parquet file."""
    path = _evidence(made)
    whole = path.read_bytes()
    for place in range(4, len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        try:
            found = pyarrow.parquet.read_table(pyarrow.BufferReader(bytes(changed)))
            if found["value_real"].to_pylist() != [0.1, 0.2] and (
                found.num_rows == 2
                and found.drop_columns(["value_real"])
                == pyarrow.parquet.read_table(path).drop_columns(["value_real"])
            ):
                path.write_bytes(bytes(changed))
                return
        except (pyarrow.ArrowException, OSError, ValueError):
            continue
    raise AssertionError("no bit of the file changes a value in silence")


def _cut(made: StoreMaker) -> None:
    path = _evidence(made)
    path.write_bytes(path.read_bytes()[:-20])


def _stray(made: StoreMaker) -> None:
    path = _evidence(made)
    path.with_name("measurements.tmp.parquet").write_bytes(path.read_bytes())


def _commit_file(made: StoreMaker) -> Path:
    nonce = made.executions[STAGE].nonce
    return next((made.store.root / "executions").rglob(f"{nonce}.json"))


def _promise_more_rows(made: StoreMaker) -> None:
    path = _commit_file(made)
    document = unseal(path.read_bytes())
    document["files"][0]["rows"] = 5
    path.write_bytes(seal(document))


def _edit_commit(made: StoreMaker) -> None:
    path = _commit_file(made)
    document = json.loads(path.read_bytes())
    document["host"] = "elsewhere"
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


def _remove_commit(made: StoreMaker) -> None:
    _commit_file(made).unlink()


def whole_store(stage: Stage) -> None:
    """Two claims on two stages of a whole store, for faults that spoil a file."""
    made = new_store(stage.folder)
    artifact = stage.folder / "state.npz"
    artifact.write_bytes(bytes(range(256)) * 4)
    program = ProgramExecution(
        program="model.programs.train_model",
        label="",
        process_id=2,
        host="host",
        started_at=made.now(),
        duration_ns=1,
        peak_memory_bytes=1,
        return_code=0,
    )
    made.execute(STAGE, [number(0.25), program], artifacts=[artifact])
    other = Measurement(claim="1.2", measure="errors", value_count=0, unit="errors")
    made.execute("evaluate_heldout", [other], key="other")
    made.run("run-1")
    stage.spoil(made)
    claims = [
        rule("1.1", relation="at_most", limit=1),
        rule("1.2", stage="evaluate_heldout"),
    ]
    found: dict[str, str] = {}
    failure = told(lambda: found.update(verdicts_of(made.store.root, claims)))
    stage.promise(
        "9.2",
        "whole_store",
        train_model=(ACCEPT, found.get("1.1", failure)),
        evaluate_heldout=(ACCEPT, found.get("1.2", failure)),
    )


def two_writers(stage: Stage) -> None:
    """Two processes that execute one stage under one key, one after another."""
    made = new_store(stage.folder)
    for value in (1, 2):
        made.execute(STAGE, [number(value)])
    executions, rows = asked(
        made.store.root,
        [],
        ("raw.executions", "is_intact"),
        ("stg_measurements", "value_count"),
    )
    stage.promise(
        "9.2",
        "two_writers",
        executions=("[(True,), (True,)]", executions),
        rows=("[(1,), (2,)]", rows),
    )


def time_zones(stage: Stage) -> None:
    """A run late in the evening of one day, which elsewhere is the next."""
    made = new_store(stage.folder)
    # 2026-09-21 23:00 UTC
    made.clock_ns = 1_790_031_600 * 1_000_000_000
    made.run("run-1")
    days = [
        asked(made.store.root, [], ("run_days", "run_date"), zone=zone)[0]
        for zone in ("UTC", "Asia/Tokyo")
    ]
    same = "one day" if str(days[0]) == str(days[1]) else f"{days[0]} or {days[1]}"
    stage.promise("9.2", "time_zones", run_days=("one day", same))


SCENES = tuple(
    Scene(name=play.__name__, play=play)
    for play in (
        *(made_rows, subjects, stored_values, stored_files, whole_store),
        *(two_writers, time_zones),
    )
)
