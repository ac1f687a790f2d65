"""A proof: a target rehearsed by CPU controllers on workers that share nothing else.

The same trainings, loss and restart as in the whole run, by controllers that Prefect
workers of several hosts start. They have the server and one storage URL in common:
checkpoints and all that is evidence go through it. It says nothing about a target.
"""

import dataclasses

from model.config import ModelConfig, TrainConfig
from tasks.gang_endings import FAILED, ending_rows
from tasks.rehearsal import PROGRAMS, RECORDS
from tasks.rehearsal_on_hosts import go_on, lose_one, rehearsal_on_hosts
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.store import Execution

CLAIM = "5.14"
PLATFORM = "cpu"


@stage(
    programs=PROGRAMS,
    writes=(Measurement, Comparison, *RECORDS),
    # Where hosts and storage are is not what is rehearsed; how many hosts is.
    not_in_key=("queues", "storage"),
)
def rehearse_remote(
    work: Work,
    tokens: Execution,
    model: ModelConfig,
    train: TrainConfig,
    controllers: int,
    queues: list[str],
    storage: str,
) -> None:
    """Trains on the hosts of a work pool, loses one, and restores the last commit.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        model: Shape of the model.
        train: Recipe and seeds.
        controllers: How many hosts there are, 2 or more.
        queues: The queue of each host in the work pool.
        storage: URL that all hosts and this process open.
    """
    with rehearsal_on_hosts(
        work, tokens, model, train, PLATFORM, queues, storage
    ) as rehearsal:
        rehearsal.train_alone()
        killed = lose_one(rehearsal, controllers)
        work.record(*ending_rows("killed", killed, FAILED))
        go_on(rehearsal, controllers)
        rehearsal.compare()
    work.records = [_claimed(row) for row in work.records]


def _claimed(row: object) -> object:
    """Returns a row as one of the claim about hosts, with the limits of the local."""
    if isinstance(row, Measurement | Comparison):
        return dataclasses.replace(row, claim=CLAIM)
    return row
