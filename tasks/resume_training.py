"""The stage that resumes killed trainings in fresh processes and compares all of it."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from model.config import InterruptConfig, ModelConfig, TrainConfig, to_dict
from tasks.compared_trainings import COMPARE, Compared, compare_trainings
from tasks.killed_training import CHECKPOINT_FILES, training_request
from tasks.resumed_training import (
    TRAIN,
    Request,
    Resumption,
    record_resumption,
    resume_trainings,
    trace_of,
)
from tasks.run_program import ProgramRun
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.records.training import Update, UpdateDigest
from warehouse.store import Execution

CLAIM = "2.1"
# Three updates are enough to see that another seed is another training.
OTHER_SEED_UPDATES = 3
# The number in the name only orders checkpoints; here is but one.
CHECKPOINT_FOLDER = "update-000000"


@stage(
    programs=(TRAIN, COMPARE),
    writes=(Measurement, Comparison, Update, UpdateDigest),
)
def resume_training(
    work: Work,
    tokens: Execution,
    trained: Execution,
    interrupted: Execution,
    model: ModelConfig,
    train: TrainConfig,
    interrupt: InterruptConfig,
) -> None:
    """Resumes every interrupted training and compares it with the uninterrupted one.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        trained: The uninterrupted training.
        interrupted: The killed trainings.
        model: Shape of the model.
        train: Recipe and seeds.
        interrupt: Points, last update and the seeds that have to differ.
    """
    expected = work.fetch(trained, "trace.jsonl")["trace.jsonl"]
    request = training_request(work, tokens, model, train)
    request["stop_after_update"] = min(interrupt.final_update, train.updates)
    beside = request | {"compared_trace": expected}

    trainings: list[Compared] = []
    for point in interrupt.points:
        trainings += _resume(work, interrupted, beside, point)
    trainings.append(_repeat(work, beside))
    trainings += _train_with_other_seeds(work, request, train, interrupt)

    compare_trainings(work, request, expected, trainings)


def _resume(
    work: Work, interrupted: Execution, request: Request, point: int
) -> list[Compared]:
    """Restores from what the kill left, goes on, and returns what to compare."""
    case = f"point-{point:02d}"
    names = {file: f"checkpoint-{case}.{end}" for file, end in CHECKPOINT_FILES.items()}
    trace, facts = f"trace-{case}.jsonl", f"killed-{case}.json"
    kept = work.fetch(interrupted, *names.values(), trace, facts)
    killed = json.loads(Path(kept[facts]).read_bytes())
    folder = work.scratch(case)
    _lay_out_checkpoint(folder, {file: kept[name] for file, name in names.items()})

    resumption = Resumption(
        case=case,
        folder=folder,
        committed_update=killed["committed_update"],
        point=point,
        killed_process_id=killed["process_id"],
    )
    run = resume_trainings(work, request, [resumption], label=resumption.label)
    record_resumption(work, run, resumption, CLAIM)
    before = {"trace": kept[trace], "role": "interrupted", "case": case}
    after = resumption.compared(
        run,
        trace_of(run, case),
        role="resumed",
        claim=CLAIM,
        last_update=request["stop_after_update"],
    )
    return [before | {"owed": [1, point]}, after]


def _lay_out_checkpoint(folder: Path, files: Mapping[str, str]) -> None:
    """Puts the files of a checkpoint where a training expects its folder."""
    checkpoint = folder / CHECKPOINT_FOLDER
    checkpoint.mkdir()
    for name, path in files.items():
        shutil.copyfile(path, checkpoint / name)


def _repeat(work: Work, request: Request) -> Compared:
    """Trains once more from the start, in another process with the same seeds."""
    run = _train(work, request, "repeated", "repeated", {})
    return {"trace": _trace(run, "repeated"), "role": "repeated", "case": "same-seeds"}


def _train_with_other_seeds(
    work: Work, request: Request, train: TrainConfig, interrupt: InterruptConfig
) -> list[Compared]:
    changes = {
        "other_dropout_seed": replace(train, dropout_seed=interrupt.other_dropout_seed),
        "other_order_seed": replace(train, order_seed=interrupt.other_order_seed),
    }
    measured = []
    for role, changed in changes.items():
        different = {
            "train": to_dict(changed),
            "stop_after_update": min(OTHER_SEED_UPDATES, interrupt.final_update),
        }
        name = role.replace("_", "-")
        run = _train(work, request, role.replace("_", " "), name, different)
        measured.append({"trace": _trace(run, name), "role": role, "case": name})
    return measured


def _train(
    work: Work, request: Request, label: str, name: str, changes: Mapping[str, Any]
) -> ProgramRun:
    named = {"label": label, "suffix": f"-{name}"}
    return work.run(TRAIN, request | named | dict(changes), label=label)


def _trace(run: ProgramRun, name: str) -> str:
    return str(run.out / "artifacts" / f"trace-{name}.jsonl")
