"""The stage that really kills training processes, by SIGKILL, at given updates."""

import json

from model.config import InterruptConfig, ModelConfig, TrainConfig
from tasks.killed_training import (
    CHECKPOINT_FILES,
    TRAIN,
    KilledTraining,
    kill_training,
    training_request,
)
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.store import Execution

CLAIM = "2.1"


@stage(programs=(TRAIN,), writes=(Measurement, Comparison))
def interrupt_training(
    work: Work,
    tokens: Execution,
    model: ModelConfig,
    train: TrainConfig,
    interrupt: InterruptConfig,
) -> None:
    """Kills one training process after each point; keeps checkpoint and trace.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        model: Shape of the model.
        train: Recipe and seeds, the same as of the uninterrupted training.
        interrupt: Points, and how often a checkpoint is committed.
    """
    request = training_request(work, tokens, model, train)

    for point in interrupt.points:
        case = f"point-{point:02d}"
        killed = kill_training(
            work,
            request,
            claim=CLAIM,
            case=case,
            point=point,
            cadence=interrupt.checkpoint_every_updates,
            folder=work.scratch(case),
        )
        _keep_what_the_kill_left(work, killed)


def _keep_what_the_kill_left(work: Work, killed: KilledTraining) -> None:
    case = killed.case
    process = work.scratch(f"process-{case}") / f"killed-{case}.json"
    facts = {
        "process_id": killed.run.process_id,
        "committed_update": killed.committed_update,
    }
    process.write_text(json.dumps(facts))
    work.keep(process)
    for file, ending in CHECKPOINT_FILES.items():
        work.keep(killed.checkpoint / file, f"checkpoint-{case}.{ending}")
    work.keep(killed.trace, f"trace-{case}.jsonl")
