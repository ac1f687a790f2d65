"""All hosts of a target, probed, compared, trained, lost and restarted: their result.

The protocol is that of the rehearsal on hosts, on the platform of the target. What it
leaves are records of who took part and what each held after every update, and one
artifact, the result. Nothing is judged here: a result is about the runtime of the
target and is taken in as a run of its own, like that of one host.
"""

from model.config import ModelConfig, ProfileConfig, TrainConfig
from model.limits import require
from tasks.rehearsal import RECORDS
from tasks.rehearsal_on_hosts import CONTROLLER, Occasion, hosts_together
from tasks.stage import stage
from tasks.target_platforms import STARTS_AS
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.store import Execution


@stage(
    programs=(CONTROLLER,),
    writes=(Measurement, Comparison, *RECORDS),
    # Where hosts, storage and release are is not what is computed.
    not_in_key=("queues", "storage", "release"),
)
def train_on_target(
    work: Work,
    tokens: Execution,
    release: str,
    release_sha256: str,
    model: ModelConfig,
    train: TrainConfig,
    profile: ProfileConfig,
    preset: str,
    platform: str,
    accelerator: str,
    nonce: str,
    controllers: int,
    queues: list[str],
    storage: str,
) -> None:
    """Has all hosts of a target make the whole protocol, and keeps their result.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        release: Path of the released parameters; empty where none are known.
        release_sha256: Digest of that file.
        model: Shape of the model.
        train: Recipe and seeds.
        profile: What is traced and timed.
        preset: Name of the preset that all of this is.
        platform: JAX platform that every device must have, tpu or gpu.
        accelerator: What the hosts are together, as it is sold.
        nonce: What the launcher drew for this occasion; in the key, so that no earlier
            occasion passes for this one.
        controllers: How many hosts there are, 2 or more.
        queues: The queue of each host in the work pool.
        storage: URL that all hosts and this process open.
    """
    require(platform in STARTS_AS, f"the platform is {platform!r}", "tpu or gpu")
    require(
        controllers == len(queues), f"controllers is {controllers}", str(len(queues))
    )
    files = work.fetch(tokens, "tokens.npz", "corpus.json")
    inputs = {"tokens": files["tokens.npz"], "corpus": files["corpus.json"]}
    if release_sha256:
        inputs["parameters"] = release
    occasion = Occasion(
        platform=platform,
        accelerator=accelerator,
        preset=preset,
        queues=queues,
        storage=storage,
        nonce=nonce,
    )
    settings = (model, train, profile)
    with hosts_together(work, inputs, tokens, settings, occasion) as hosts:
        hosts.lose_one()
        hosts.go_on()
        hosts.keep_result(work)
    # Rows of a rehearsal would read as if a CPU had been asked.
    judged = (Measurement, Comparison)
    work.records = [row for row in work.records if not isinstance(row, judged)]
