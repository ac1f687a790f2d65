"""The qualification of a training system: nine stages, their order, and nothing else.

An edge is an argument. Interrupting a training needs only the tokens, so it runs
beside the training that is not interrupted; timing runs when nothing else does.
"""

from prefect.settings import PREFECT_TASKS_REFRESH_CACHE, temporary_settings

from flows.harness_flow import harness_flow
from flows.parameters import PresetName, Settings, overrides_of
from flows.proofs import proof_stages
from flows.run_record import Subject, recorded_run
from flows.runtime_fingerprint import runtime_fingerprint
from model.presets import override, preset
from tasks.accelerators import known_accelerator
from tasks.corpus_files import corpus_files
from tasks.evaluate_heldout import evaluate_heldout
from tasks.export_endpoints import export_endpoints
from tasks.implementation_files import system_of
from tasks.interrupt_training import interrupt_training
from tasks.profile_runtime import profile_runtime
from tasks.qualify_tpu import qualify_tpu
from tasks.quantize_cache import quantize_cache
from tasks.resume_training import resume_training
from tasks.tokenize_corpus import tokenize_corpus
from tasks.train_model import train_model

STAGES = (
    tokenize_corpus,
    train_model,
    interrupt_training,
    resume_training,
    evaluate_heldout,
    quantize_cache,
    export_endpoints,
    profile_runtime,
    qualify_tpu,
)


@harness_flow
def qualify(
    preset_name: PresetName = "fixture",
    manifest: str | None = None,
    is_fresh: bool = False,
    settings: Settings | None = None,
    implementation: str | None = None,
) -> str:
    """Qualifies the training system and returns the id of the run.

    Args:
        preset_name: The preset the configuration starts from.
        manifest: Path of a corpus manifest on the worker; empty for the fixture corpus.
        is_fresh: Whether every stage is computed again.
        settings: Settings that differ from the preset's; an empty field changes none.
        implementation: Path of somebody's own functions on the worker, a Python file;
            empty for the built-in system.
    """
    config = override(preset(preset_name), overrides_of(settings))
    known_accelerator(config.target.accelerator, config.target.platform)
    corpus = corpus_files(manifest)
    runtime = runtime_fingerprint()
    system = system_of(implementation)
    model, train, interrupt = config.model, config.train, config.interrupt
    subject = Subject(
        flow="qualify",
        config=config,
        corpus=corpus,
        runtime=runtime,
        stages=STAGES,
        beside=proof_stages(),
        system=system,
    )
    about = {"runtime": runtime, "system": system}
    with (
        recorded_run(subject) as run,
        temporary_settings({PREFECT_TASKS_REFRESH_CACHE: is_fresh}),
    ):
        tokens = tokenize_corpus.submit(corpus.path, corpus.sha256, model, **about)
        trained = train_model.submit(tokens, model, train, **about)
        interrupted = interrupt_training.submit(
            tokens, model, train, interrupt, **about
        )
        resumed = resume_training.submit(
            tokens, trained, interrupted, model, train, interrupt, **about
        )
        evaluated = evaluate_heldout.submit(
            tokens, trained, model, train, config.evaluate, **about
        )
        quantized = quantize_cache.submit(tokens, trained, model, config.cache, **about)
        exported = export_endpoints.submit(
            tokens, trained, quantized, model, config.export, **about
        )
        made = (tokens, trained, exported, model, train)
        profiled = profile_runtime.submit(
            *made, config.profile, **about, wait_for=[resumed, evaluated]
        )
        target = qualify_tpu.submit(*made, config.target, **about, wait_for=[profiled])
        before = (tokens, trained, interrupted, resumed, evaluated, quantized, exported)
        return run.follow(*before, profiled, target)
