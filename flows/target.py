"""The release and its target: what has to be there, and what is missing.

Only the stages that lead to a release, then the question whether the target is really
there. Nothing is measured on it yet, so the run ends Not demonstrated, which is no
failure. With queues of hosts, all of them are qualified instead; on CPUs that is a
rehearsal.
"""

from typing import Any, Literal

from prefect.futures import PrefectFuture
from prefect.settings import PREFECT_TASKS_REFRESH_CACHE, temporary_settings
from prefect.states import Completed, State

from flows.harness_flow import harness_flow
from flows.outcome import NOT_DEMONSTRATED
from flows.parameters import PresetName, Settings, overrides_of
from flows.proofs import proof_stages
from flows.qualify import STAGES
from flows.run_record import Subject, recorded_run
from flows.runtime_fingerprint import runtime_fingerprint
from flows.target_finding import target_finding
from flows.target_hosts import named_hosts, run_on_hosts
from model.config import RunConfig
from model.presets import override, preset
from tasks.accelerators import known_accelerator
from tasks.corpus_files import CorpusFiles, corpus_files
from tasks.export_endpoints import export_endpoints
from tasks.qualify_tpu import qualify_tpu
from tasks.quantize_cache import quantize_cache
from tasks.tokenize_corpus import tokenize_corpus
from tasks.train_model import train_model

TARGET_STAGES = (
    tokenize_corpus,
    train_model,
    quantize_cache,
    export_endpoints,
    qualify_tpu,
)


@harness_flow
def target(
    preset_name: PresetName = "fixture",
    manifest: str | None = None,
    is_fresh: bool = False,
    settings: Settings | None = None,
    queues: str | None = None,
    storage: str | None = None,
    expect_platform: Literal["cpu", "tpu", "gpu"] = "cpu",
    accelerator: str | None = None,
) -> State[Any] | str:
    """Makes a release and asks whether its target is there; the state says so.

    Args:
        preset_name: The preset the configuration starts from.
        manifest: Path of a corpus manifest on the worker; empty for the fixture corpus.
        is_fresh: Whether every stage is computed again.
        settings: Settings that differ from the preset's; an empty field changes none.
            The target is `target.platform` and `target.accelerator`.
        queues: Queues of hosts in the work pool text-harness-hosts, with commas; a
            gang of CPU controllers then rehearses there, one controller a queue.
        storage: URL that these hosts and this worker share; empty for the one in
            HARNESS_STORAGE_URL of this worker.
        expect_platform: Platform that every device of these hosts must have; a gang on
            cpu rehearses, on tpu or gpu it is qualified.
        accelerator: What these hosts are together, such as v5litepod-16; a rehearsal
            has none.
    """
    config = override(preset(preset_name), overrides_of(settings))
    known_accelerator(config.target.accelerator, config.target.platform)
    corpus = corpus_files(manifest)
    runtime = runtime_fingerprint()
    if queues:
        hosts = named_hosts(queues, storage, expect_platform, accelerator)
        return run_on_hosts(config, corpus, runtime, hosts, is_fresh=is_fresh)
    subject = Subject(
        flow="target",
        config=config,
        corpus=corpus,
        runtime=runtime,
        stages=TARGET_STAGES,
        beside=(*STAGES, *proof_stages()),
    )
    with (
        recorded_run(subject) as run,
        temporary_settings({PREFECT_TASKS_REFRESH_CACHE: is_fresh}),
    ):
        run_id = run.follow(*submit_target_stages(config, corpus, runtime))
    finding = f"Run {run_id}: {target_finding(run_id)}"
    return Completed(name=NOT_DEMONSTRATED, message=finding, data=run_id)


def submit_target_stages(
    config: RunConfig, corpus: CorpusFiles, runtime: dict[str, str]
) -> tuple[PrefectFuture[Any], ...]:
    """Starts the stages of `TARGET_STAGES` and returns one future each, in order.

    Args:
        config: The whole configuration.
        corpus: The corpus.
        runtime: Numerics fingerprint of the run.
    """
    model, train = config.model, config.train
    tokens = tokenize_corpus.submit(corpus.path, corpus.sha256, model, runtime=runtime)
    trained = train_model.submit(tokens, model, train, runtime=runtime)
    quantized = quantize_cache.submit(
        tokens, trained, model, config.cache, runtime=runtime
    )
    exported = export_endpoints.submit(
        tokens, trained, quantized, model, config.export, runtime=runtime
    )
    probed = qualify_tpu.submit(
        tokens, trained, exported, model, train, config.target, runtime=runtime
    )
    return tokens, trained, quantized, exported, probed
