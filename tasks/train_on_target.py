"""The training of all hosts of a target: who answered, each update, and the restart.

The gang is that of the rehearsal on the platform of the target. What it leaves are
records of who took part and what each held after every update. Whether the numbers are
right is asked of `qualify_target`, which compares them at home, so no row is judged.
"""

from model.config import ModelConfig, TrainConfig
from model.limits import require
from tasks.rehearsal import CONTROLLER, RECORDS
from tasks.rehearsal_on_hosts import go_on, lose_one, rehearsal_on_hosts
from tasks.stage import stage
from tasks.target_platforms import STARTS_AS
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.store import Execution


@stage(
    programs=(CONTROLLER,),
    writes=(Measurement, Comparison, *RECORDS),
    # Where hosts and storage are is not what is trained; how many hosts is.
    not_in_key=("queues", "storage"),
)
def train_on_target(
    work: Work,
    tokens: Execution,
    model: ModelConfig,
    train: TrainConfig,
    platform: str,
    controllers: int,
    queues: list[str],
    storage: str,
) -> None:
    """Trains on all hosts of a target, loses one, and goes on from the last commit.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        model: Shape of the model.
        train: Recipe and seeds.
        platform: JAX platform that every device must have, tpu or gpu.
        controllers: How many hosts there are, 2 or more.
        queues: The queue of each host in the work pool.
        storage: URL that all hosts and this process open.
    """
    require(platform in STARTS_AS, f"the platform is {platform!r}", "tpu or gpu")
    with rehearsal_on_hosts(
        work, tokens, model, train, platform, queues, storage
    ) as rehearsal:
        lose_one(rehearsal, controllers)
        go_on(rehearsal, controllers)
    # Rows of a rehearsal would read as if a CPU had been asked.
    judged = (Measurement, Comparison)
    work.records = [row for row in work.records if not isinstance(row, judged)]
