"""The rehearsal of a target: what a slice would do, done by several CPU controllers.

The stages that lead to a release and its target, as in `flows.target`, and beside them
the proof with as many controllers as one likes. It says nothing about a target.
"""

from prefect.settings import PREFECT_TASKS_REFRESH_CACHE, temporary_settings

from flows.harness_flow import harness_flow
from flows.parameters import PresetName, Settings, overrides_of
from flows.proofs import proof_stages
from flows.qualify import STAGES
from flows.run_record import Subject, recorded_run
from flows.runtime_fingerprint import runtime_fingerprint
from flows.target import TARGET_STAGES, submit_target_stages
from model.limits import validate_controllers
from model.presets import override, preset
from tasks.corpus_files import corpus_files
from tasks.rehearse_target import rehearse_target


@harness_flow
def rehearse(
    controllers: int = 4,
    preset_name: PresetName = "fixture",
    manifest: str | None = None,
    is_fresh: bool = False,
    settings: Settings | None = None,
) -> str:
    """Rehearses a target by CPU controllers and returns the id of the run.

    Args:
        controllers: Controllers of a whole gang, from 2 to the documents of a batch.
        preset_name: The preset the configuration starts from.
        manifest: Path of a corpus manifest on the worker; empty for the fixture corpus.
        is_fresh: Whether the proof is made again; what it is about is kept.
        settings: Settings that differ from the preset's; an empty field changes none.
    """
    config = override(preset(preset_name), overrides_of(settings))
    # before minutes of stages that lead to the proof
    validate_controllers(controllers, config.train)
    corpus = corpus_files(manifest)
    runtime = runtime_fingerprint()
    subject = Subject(
        flow="rehearse",
        config=config,
        corpus=corpus,
        runtime=runtime,
        stages=(*TARGET_STAGES, rehearse_target),
        beside=(*STAGES, *proof_stages()),
    )
    with recorded_run(subject) as run:
        stages = submit_target_stages(config, corpus, runtime)
        with temporary_settings({PREFECT_TASKS_REFRESH_CACHE: is_fresh}):
            proven = rehearse_target.submit(
                stages[0],
                config.model,
                config.train,
                controllers,
                runtime=runtime,
                # Gangs have deadlines, so nothing else runs beside them.
                wait_for=list(stages),
            )
        return run.follow(*stages, proven)
