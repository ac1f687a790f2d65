"""A gang on the hosts of a target: what of the flow `target` runs over their queues."""

from collections.abc import Sequence
from dataclasses import dataclass

from prefect.settings import PREFECT_TASKS_REFRESH_CACHE, temporary_settings

from flows.proofs import proof_stages
from flows.qualify import STAGES
from flows.run_record import Subject, recorded_run
from model.config import RunConfig
from tasks.corpus_files import CorpusFiles
from tasks.rehearse_remote import PLATFORM, rehearse_remote
from tasks.storage import storage_url
from tasks.tokenize_corpus import tokenize_corpus
from tasks.train_on_target import train_on_target

TRAINED = (
    "Not demonstrated: all hosts trained and went on from a commit (controllers, "
    "controller_updates); their numbers are compared by `harness target import`."
)


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The hosts that a gang runs on."""

    queues: Sequence[str]
    """The queue of each in the work pool."""
    storage: str
    """URL that they share."""
    platform: str
    """JAX platform that every device must have; on cpu it is a rehearsal."""


def named_hosts(queues: str, storage: str | None, platform: str) -> Hosts:
    """Returns hosts by the parameters of a flow.

    Args:
        queues: Their queues, with commas.
        storage: URL that they share; empty for that of the environment.
        platform: JAX platform that every device must have.

    Raises:
        StageError: No storage is named.
    """
    names = [name.strip() for name in queues.split(",")]
    return Hosts(queues=names, storage=storage_url(storage), platform=platform)


def run_on_hosts(
    config: RunConfig,
    corpus: CorpusFiles,
    runtime: dict[str, str],
    hosts: Hosts,
    *,
    is_fresh: bool,
) -> str:
    """Rehearses a target, or trains on one, and returns the id of the run.

    Args:
        config: The whole configuration.
        corpus: The corpus.
        runtime: Numerics fingerprint of the run.
        hosts: Where it runs.
        is_fresh: Whether the gang trains again; the tokens are kept.
    """
    is_rehearsal = hosts.platform == PLATFORM
    stage = rehearse_remote if is_rehearsal else train_on_target
    subject = Subject(
        flow="target",
        config=config,
        corpus=corpus,
        runtime=runtime,
        stages=(tokenize_corpus, stage),
        beside=(*STAGES, *proof_stages()),
    )
    with recorded_run(subject) as run:
        tokens = tokenize_corpus.submit(
            corpus.path, corpus.sha256, config.model, runtime=runtime
        )
        asked = {} if is_rehearsal else {"platform": hosts.platform}
        with temporary_settings({PREFECT_TASKS_REFRESH_CACHE: is_fresh}):
            trained = stage.submit(
                tokens,
                config.model,
                config.train,
                controllers=len(hosts.queues),
                queues=list(hosts.queues),
                storage=hosts.storage,
                runtime=runtime,
                **asked,
            )
        return run.follow(tokens, trained)
