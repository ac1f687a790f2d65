"""The rehearsal with the hosts of a work pool in place of this machine.

What every gang of hosts does, on whichever platform: it trains, loses a controller
before a commit, and a new gang goes on from the last one. One that ends otherwise than
it was meant to shows nothing, and its cause is what the stage fails with.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from model.config import ModelConfig, TrainConfig
from model.limits import require
from tasks.errors import StageError
from tasks.gang import GangRun
from tasks.rehearsal import Rehearsal, plan_for
from tasks.remote_gang import RemoteHosts
from tasks.storage import Storage
from tasks.work import Work
from warehouse.store import Execution


class GangFailed(StageError):
    """A gang of hosts ended otherwise than it was meant to."""


@contextmanager
def rehearsal_on_hosts(
    work: Work,
    tokens: Execution,
    model: ModelConfig,
    train: TrainConfig,
    platform: str,
    queues: Sequence[str],
    storage: str,
) -> Iterator[Rehearsal]:
    """Yields the rehearsal on hosts, and removes what it left in their storage.

    Where the block fails, inputs and results stay there for whoever looks into it.

    Args:
        work: The working side of a stage.
        tokens: The tokenized corpus.
        model: Shape of the model.
        train: Recipe and seeds.
        platform: JAX platform that every device must have.
        queues: The queue of each host.
        storage: URL that all hosts and this process open.

    Raises:
        Refused: The recipe is too short, or has too few documents for the hosts.
        StageError: A worker, the deployment or the storage is missing.
    """
    plan = plan_for(train)
    require(plan is not None, f"train.updates is {train.updates}", "at least 3")
    require(
        2 <= len(queues) <= train.batch_documents,
        f"the number of queues is {len(queues)}",
        f"2 to {train.batch_documents}, the documents of a batch",
    )
    assert plan is not None
    place = Storage(storage).within(secrets.token_hex(16))
    files = work.fetch(tokens, "tokens.npz", "corpus.json")
    inputs = {"tokens": files["tokens.npz"], "corpus": files["corpus.json"]}
    hosts = RemoteHosts(queues, place, inputs, platform)
    yield Rehearsal(work, tokens, model, train, plan, hosts)
    place.remove()


def lose_one(rehearsal: Rehearsal, controllers: int) -> GangRun:
    """Trains on all hosts and has the last one lost before a commit.

    Raises:
        GangFailed: The gang failed before.
    """
    killed = rehearsal.train_and_lose_one(controllers)
    _require(killed.disturbed_at_ns is not None, killed)
    rehearsal.record_uncommitted("same")
    return killed


def go_on(rehearsal: Rehearsal, controllers: int) -> None:
    """Restores the last commit on all hosts and trains to the end.

    Raises:
        GangFailed: The gang did not complete.
    """
    restarted = rehearsal.restart(
        "same", controllers, rehearsal.checkpoints, gang_name="restarted"
    )
    _require(restarted.is_complete, restarted)


def _require(is_as_meant: bool, gang: GangRun) -> None:
    if not is_as_meant:
        cause = gang.cause.removesuffix(".")
        raise GangFailed(f"The gang of hosts ended: {cause}.")
