"""The drill of recovery: faults planted into a restore, which have to be found.

A stage of its own, so that it can be repeated every week without the long proof whose
comparison it tests.
"""

from model.config import DrillConfig, ModelConfig, TrainConfig
from tasks.killed_training import TRAIN, training_request
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Measurement
from warehouse.records.training import NegativeControl
from warehouse.store import Execution

PLANT = "model.programs.plant_recovery_faults"


@stage(programs=(TRAIN, PLANT), writes=(Measurement, NegativeControl))
def drill_recovery(
    work: Work,
    tokens: Execution,
    trained: Execution,
    model: ModelConfig,
    train: TrainConfig,
    drill: DrillConfig,
) -> None:
    """Restores one checkpoint with each fault of a restore, and without one.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        trained: The uninterrupted training, which every restore is compared with.
        model: Shape of the model.
        train: Recipe and seeds.
        drill: The update that is restored, and how many follow.
    """
    expected = work.fetch(trained, "trace.jsonl")["trace.jsonl"]
    request = training_request(work, tokens, model, train)
    checkpoints = str(work.scratch("checkpoints"))

    label = "checkpoint of the drill"
    committing = {
        "label": label,
        "checkpoint_folder": checkpoints,
        "checkpoint_every_updates": drill.restored_update,
        "stop_after_update": drill.restored_update,
    }
    work.run(TRAIN, request | committing, label=label, gather=False)
    planting = {
        "label": "drill",
        "restore_folder": checkpoints,
        "stop_after_update": drill.restored_update + drill.updates,
        "expected": expected,
    }
    work.run(PLANT, request | planting)
