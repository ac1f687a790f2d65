"""What the whole run rehearses of a target: two controllers, one of which is lost."""

from concurrent.futures import ThreadPoolExecutor

from model.config import ModelConfig, TrainConfig
from tasks.forked_programs import ForkServer
from tasks.rehearsal import Rehearsal, plan_for
from tasks.work import Work
from warehouse.store import Execution


def rehearsal_for(
    work: Work,
    tokens: Execution,
    model: ModelConfig,
    train: TrainConfig,
    fork_server: ForkServer | None,
) -> Rehearsal | None:
    """Returns the rehearsal of a training; None where it has nothing to show.

    Args:
        work: The working side of a stage.
        tokens: The tokenized corpus.
        model: Shape of the model.
        train: Recipe and seeds.
        fork_server: What controllers are forked from; None starts each anew.
    """
    plan = plan_for(train)
    if plan is None or train.batch_documents < 2:
        return None  # nothing to share or to restart: not demonstrated
    return Rehearsal(work, tokens, model, train, plan, fork_server=fork_server)


def rehearse_two(rehearsal: Rehearsal) -> None:
    """Rehearses with two controllers what the whole run shows of a target.

    Controllers find what the split program has compiled in one process, so they come
    after it; the production update is wanted at the end alone, and goes beside them.

    Args:
        rehearsal: Has run nothing yet.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        whole = pool.submit(rehearsal.train_alone, "whole")
        rehearsal.train_alone("split")
        rehearsal.train_and_lose_one(2)
        rehearsal.record_uncommitted("same")
        rehearsal.restart("same", 2, rehearsal.checkpoints, gang_name="restarted")
        whole.result()
    rehearsal.compare()
