"""All hosts of a target: what of the flow `target` runs over their queues.

On CPUs that is a rehearsal, a run like any other. On a target the run ends with a
result, which is taken in as a run of its own, exactly as that of one host is: nobody
but the import judges a target.
"""

import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect.futures import PrefectFuture
from prefect.settings import PREFECT_TASKS_REFRESH_CACHE, temporary_settings
from prefect.states import Completed, State

from flows.outcome import NOT_DEMONSTRATED
from flows.proofs import proof_stages
from flows.qualify import STAGES
from flows.reading import open_run, view_rows
from flows.run_record import Subject, recorded_run
from flows.target_home import home_of
from flows.target_import import import_result
from model.config import RunConfig
from model.limits import require
from model.presets import preset
from tasks.accelerators import Accelerator, accelerator_of, require_documents
from tasks.corpus_files import CorpusFiles
from tasks.rehearsal_on_hosts import RESULT
from tasks.rehearse_remote import PLATFORM, rehearse_remote
from tasks.reuse import store_root
from tasks.storage import storage_url
from tasks.target_challenge import drawn_nonce
from tasks.target_results import open_result
from tasks.temporary_folders import temporary_folder
from tasks.tokenize_corpus import tokenize_corpus
from tasks.train_on_target import train_on_target
from warehouse.store import Execution, Store

JUDGED_FIRST, JUDGED_LAST = 1, 5
"""Numbers of the claims of task 5 that only a target can meet."""


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The hosts that a gang runs on."""

    queues: Sequence[str]
    """The queue of each in the work pool."""
    storage: str
    """URL that they share."""
    platform: str
    """JAX platform that every device must have; on cpu it is a rehearsal."""
    accelerator: Accelerator | None
    """What they are together; None for a rehearsal."""


def named_hosts(
    queues: str, storage: str | None, platform: str, accelerator: str | None
) -> Hosts:
    """Returns hosts by the parameters of a flow.

    Args:
        queues: Their queues, with commas.
        storage: URL that they share; empty for that of the environment.
        platform: JAX platform that every device must have.
        accelerator: What they are together, as it is sold; empty for the one that a
            platform is asked for first.

    Raises:
        Refused: The accelerator is unknown, or has another number of hosts.
        StageError: No storage is named.
    """
    names = [name.strip() for name in queues.split(",")]
    sold = None
    if platform != PLATFORM:
        sold = accelerator_of(accelerator, platform, len(names))
    return Hosts(
        queues=names,
        storage=storage_url(storage),
        platform=platform,
        accelerator=sold,
    )


def run_on_hosts(
    config: RunConfig,
    corpus: CorpusFiles,
    runtime: dict[str, str],
    hosts: Hosts,
    *,
    is_fresh: bool,
) -> State[Any] | str:
    """Rehearses a target, or qualifies one.

    Args:
        config: The whole configuration.
        corpus: The corpus.
        runtime: Numerics fingerprint of the run.
        hosts: Where it runs.
        is_fresh: Whether a rehearsal is made again; a target always is.

    Returns:
        The id of the rehearsal, or a state that says what came of the target.
    """
    if hosts.accelerator is None:
        return _rehearse(config, corpus, runtime, hosts, is_fresh=is_fresh)
    require(
        config == preset(config.preset) and corpus.is_fixture,
        f"configuration is not the preset {config.preset!r} and its corpus",
        "a preset as it stands, which is what a result of a target is about",
    )
    require_documents(hosts.accelerator, config.train, config.preset)
    # Each occasion has its own; hosts learn what follows from it for them alone.
    nonce = drawn_nonce(store_root())
    visited = _qualify(config, corpus, runtime, hosts, nonce)
    return taken_in(visited, hosts.accelerator, nonce, config.preset)


def _rehearse(
    config: RunConfig,
    corpus: CorpusFiles,
    runtime: dict[str, str],
    hosts: Hosts,
    *,
    is_fresh: bool,
) -> str:
    subject = _subject(config, corpus, runtime, (tokenize_corpus, rehearse_remote))
    with recorded_run(subject) as run:
        tokens = _tokens(config, corpus, runtime)
        with temporary_settings({PREFECT_TASKS_REFRESH_CACHE: is_fresh}):
            rehearsed = rehearse_remote.submit(
                tokens,
                config.model,
                config.train,
                config.profile,
                config.preset,
                len(hosts.queues),
                queues=list(hosts.queues),
                storage=hosts.storage,
                runtime=runtime,
            )
        return run.follow(tokens, rehearsed)


def _qualify(
    config: RunConfig,
    corpus: CorpusFiles,
    runtime: dict[str, str],
    hosts: Hosts,
    nonce: str,
) -> Execution:
    """Returns the execution that holds the result of all hosts."""
    assert hosts.accelerator is not None
    subject = _subject(config, corpus, runtime, (tokenize_corpus, train_on_target))
    released = released_at_home(store_root(), subject)
    path = str(Store(store_root()).artifact_path(released)) if released else ""
    with recorded_run(subject) as run:
        tokens = _tokens(config, corpus, runtime)
        visited = train_on_target.submit(
            tokens,
            path,
            released,
            config.model,
            config.train,
            config.profile,
            config.preset,
            hosts.platform,
            hosts.accelerator.name,
            nonce,
            len(hosts.queues),
            queues=list(hosts.queues),
            storage=hosts.storage,
            runtime=runtime,
        )
        run.follow(tokens, visited)
        found: Execution = visited.result()
        return found


def released_at_home(root: Path, subject: Subject) -> str:
    """Returns the digest of the newest release at home; empty where there is none.

    Args:
        root: Folder of the store.
        subject: The system, configuration and data that it has to be about.
    """
    return home_of(root, subject.start().components).released_sha256


def _subject(
    config: RunConfig, corpus: CorpusFiles, runtime: dict[str, str], stages: Any
) -> Subject:
    return Subject(
        flow="target",
        config=config,
        corpus=corpus,
        runtime=runtime,
        stages=stages,
        beside=(*STAGES, *proof_stages()),
    )


def _tokens(
    config: RunConfig, corpus: CorpusFiles, runtime: dict[str, str]
) -> PrefectFuture[Any]:
    return tokenize_corpus.submit(
        corpus.path, corpus.sha256, config.model, runtime=runtime
    )


def taken_in(
    visited: Execution, accelerator: Accelerator, nonce: str, preset_name: str
) -> State[Any]:
    """Has the result of all hosts judged and recorded; returns what came of it.

    Args:
        visited: The execution that keeps it.
        accelerator: What the hosts are together.
        nonce: What the launcher drew for this occasion.
        preset_name: Preset that the hosts were asked for.

    Raises:
        Refused: It is no result of a target, or of another preset.
    """
    root = store_root()
    packed = Store(root).artifact_path(visited.artifact(RESULT))
    with temporary_folder("result") as folder:
        result = open_result(unpacked(packed, folder))
        judged = import_result(root, result, accelerator, nonce, preset_name)
        return _judged_state(judged.run_id)


def unpacked(packed: Path, folder: Path) -> Path:
    """Returns a folder with the files of a packed result.

    Args:
        packed: The artifact.
        folder: Where the files go.
    """
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _judged_state(run_id: str) -> State[Any]:
    connection = open_run(store_root(), run_id, names=["verdicts"])
    claims = [
        claim
        for claim in view_rows(connection, "verdicts", review_task=5)
        if JUDGED_FIRST <= claim["claim_number"] <= JUDGED_LAST
    ]
    told = ", ".join(f"{claim['claim']} {claim['verdict']}" for claim in claims)
    message = f"Run {run_id} holds the result of the target: {told}."
    is_accepted = all(claim["verdict"].startswith("accept") for claim in claims)
    name = None if is_accepted else NOT_DEMONSTRATED
    if any(claim["verdict"] == "revise" for claim in claims):
        name = REVISED
    return Completed(name=name, message=message, data=run_id)


REVISED = "Revise"
"""State of a run that is done and has shown that the target fails a claim."""
