"""A proof: a target rehearsed by CPU controllers on workers that share nothing else.

The same trainings, loss and restart as in the whole run, by controllers that Prefect
workers of several hosts start. They have the server and one storage URL in common:
checkpoints and all that is evidence go through it. It says nothing about a target.
"""

import dataclasses
import secrets

from model.config import ModelConfig, TrainConfig
from model.limits import require
from tasks.errors import StageError
from tasks.gang import GangRun
from tasks.gang_endings import FAILED, ending_rows
from tasks.rehearsal import PROGRAMS, RECORDS, Rehearsal, plan_for
from tasks.remote_gang import RemoteHosts
from tasks.stage import stage
from tasks.storage import Storage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.store import Execution

CLAIM = "5.14"


class GangFailed(StageError):
    """A gang of hosts ended otherwise than it was meant to."""


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
    plan = plan_for(train)
    require(plan is not None, f"train.updates is {train.updates}", "at least 3")
    require(
        2 <= controllers <= train.batch_documents,
        f"controllers is {controllers}",
        f"2 to {train.batch_documents}, the documents of a batch",
    )
    assert plan is not None
    place = Storage(storage).within(secrets.token_hex(16))
    files = work.fetch(tokens, "tokens.npz", "corpus.json")
    inputs = {"tokens": files["tokens.npz"], "corpus": files["corpus.json"]}
    hosts = RemoteHosts(queues, place, inputs, "cpu")
    rehearsal = Rehearsal(work, tokens, model, train, plan, hosts)
    rehearsal.train_alone()
    killed = rehearsal.train_and_lose_one(controllers)
    _require(killed.disturbed_at_ns is not None, killed)
    work.record(*ending_rows("killed", killed, FAILED))
    rehearsal.record_uncommitted("same")
    restarted = rehearsal.restart(
        "same", controllers, rehearsal.checkpoints, gang_name="restarted"
    )
    _require(restarted.is_complete, restarted)
    rehearsal.compare()
    work.records = [_claimed(row) for row in work.records]
    place.remove()


def _require(is_as_meant: bool, gang: GangRun) -> None:
    if not is_as_meant:
        raise GangFailed(f"The gang ended: {gang.cause.removesuffix('.')}.")


def _claimed(row: object) -> object:
    """Returns a row as one of the claim about hosts, with the limits of the local."""
    if isinstance(row, Measurement | Comparison):
        return dataclasses.replace(row, claim=CLAIM)
    return row
