"""A proof: a target rehearsed by CPU controllers on workers that share nothing else.

The same protocol as on a target, by controllers that Prefect workers of several hosts
start; of it the same trainings, loss and restart as in the whole run are judged. They
have the server and one storage URL in common: checkpoints and all that is evidence go
through it. It says nothing about a target, and its result is one of a rehearsal.
"""

import dataclasses
import secrets

from model.config import ModelConfig, ProfileConfig, TrainConfig
from model.limits import require
from tasks.gang_endings import FAILED, ending_rows
from tasks.rehearsal import ALONE, PROGRAMS, RECORDS
from tasks.rehearsal_on_hosts import CONTROLLER, Occasion, hosts_together
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.store import Execution

ACCELERATOR = "cpu-rehearsal"
CLAIM = "5.14"
PLATFORM = "cpu"


@stage(
    programs=(*PROGRAMS, CONTROLLER),
    writes=(Measurement, Comparison, *RECORDS),
    # Where hosts and storage are is not what is rehearsed; how many hosts is.
    not_in_key=("queues", "storage"),
)
def rehearse_remote(
    work: Work,
    tokens: Execution,
    model: ModelConfig,
    train: TrainConfig,
    profile: ProfileConfig,
    preset: str,
    controllers: int,
    queues: list[str],
    storage: str,
) -> None:
    """Has the hosts of a work pool make the protocol of a target, on their CPUs.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        model: Shape of the model.
        train: Recipe and seeds.
        profile: What is traced and timed.
        preset: Name of the preset that all of this is.
        controllers: How many hosts there are, 2 or more.
        queues: The queue of each host in the work pool.
        storage: URL that all hosts and this process open.
    """
    require(
        controllers == len(queues), f"controllers is {controllers}", str(len(queues))
    )
    files = work.fetch(tokens, "tokens.npz", "corpus.json")
    inputs = {"tokens": files["tokens.npz"], "corpus": files["corpus.json"]}
    occasion = Occasion(
        platform=PLATFORM,
        accelerator=ACCELERATOR,
        preset=preset,
        queues=queues,
        storage=storage,
        nonce=secrets.token_hex(16),
    )
    settings = (model, train, profile)
    with hosts_together(work, inputs, tokens, settings, occasion) as hosts:
        for program in ALONE:
            hosts.rehearsal.train_alone(program)
        killed = hosts.lose_one()
        work.record(*ending_rows("killed", killed, FAILED, controllers - 1))
        hosts.go_on()
        hosts.rehearsal.compare()
        hosts.keep_result(work)
    work.records = [_claimed(row) for row in work.records]


def _claimed(row: object) -> object:
    """Returns a row as one of the claim about hosts, with the limits of the local."""
    if isinstance(row, Measurement | Comparison):
        return dataclasses.replace(row, claim=CLAIM)
    return row
