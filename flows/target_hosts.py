"""A gang on the hosts of a target: what of the flow `target` runs over their queues."""

from collections.abc import Sequence

from prefect.settings import PREFECT_TASKS_REFRESH_CACHE, temporary_settings

from flows.proofs import proof_stages
from flows.qualify import STAGES
from flows.run_record import Subject, recorded_run
from model.config import RunConfig
from tasks.corpus_files import CorpusFiles
from tasks.rehearse_remote import rehearse_remote
from tasks.tokenize_corpus import tokenize_corpus


def rehearse_on_hosts(
    config: RunConfig,
    corpus: CorpusFiles,
    runtime: dict[str, str],
    queues: Sequence[str],
    storage: str,
    *,
    is_fresh: bool,
) -> str:
    """Rehearses a target on the workers of some queues; returns the id of the run.

    Args:
        config: The whole configuration.
        corpus: The corpus.
        runtime: Numerics fingerprint of the run.
        queues: The queue of each host.
        storage: URL that hosts and this process share.
        is_fresh: Whether the rehearsal is made again; the tokens are kept.
    """
    subject = Subject(
        flow="target",
        config=config,
        corpus=corpus,
        runtime=runtime,
        stages=(tokenize_corpus, rehearse_remote),
        beside=(*STAGES, *proof_stages()),
    )
    with recorded_run(subject) as run:
        tokens = tokenize_corpus.submit(
            corpus.path, corpus.sha256, config.model, runtime=runtime
        )
        with temporary_settings({PREFECT_TASKS_REFRESH_CACHE: is_fresh}):
            rehearsed = rehearse_remote.submit(
                tokens,
                config.model,
                config.train,
                len(queues),
                list(queues),
                storage,
                runtime=runtime,
            )
        return run.follow(tokens, rehearsed)
