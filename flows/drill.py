"""The drill: planted faults that the checks have to find.

Three kinds: faults of the system, each held against the whole contract; faults of
evidence store, workflow and target; and faults of a restore, which claim 2.5 rests on.
"""

from typing import Any

from prefect.futures import PrefectFuture
from prefect.settings import PREFECT_TASKS_REFRESH_CACHE, temporary_settings

from flows.harness_flow import harness_flow
from flows.parameters import PresetName, Settings, overrides_of
from flows.proofs import proof_stages
from flows.qualify import STAGES
from flows.reading import check_known
from flows.run_record import Subject, recorded_run
from flows.runtime_fingerprint import runtime_fingerprint
from model.presets import drillable, tried
from tasks.corpus_files import corpus_files
from tasks.drill_recovery import drill_recovery
from tasks.drill_store import drill_store, is_there
from tasks.drill_system import drill_system
from tasks.fault_names import fault_names
from tasks.stage import StageTask
from tasks.tokenize_corpus import tokenize_corpus
from tasks.train_model import train_model
from warehouse.drills import rules_sha256

OF_OTHERS = (drill_system, drill_store)
"""Stages about systems with a fault, which are not the one that the run is about."""


@harness_flow
def drill(
    preset_name: PresetName = "fixture",
    manifest: str | None = None,
    is_fresh: bool = False,
    faults: str | None = None,
    settings: Settings | None = None,
) -> str:
    """Plants every fault and returns the id of the run.

    Args:
        preset_name: The preset that the drill of a restore starts from; faults of the
            system are tried on a smaller fixture.
        manifest: Path of a corpus manifest on the worker; empty for the fixture corpus.
        is_fresh: Whether the faults are planted again; what they are planted into is
            kept.
        faults: Names of the only faults to plant, joined by commas; empty for all.
        settings: Settings that differ from the preset's; an empty field changes none.
    """
    config = drillable(preset_name, overrides_of(settings))
    asked = faults_by_stage(faults.split(",") if faults else [])
    runtime = runtime_fingerprint()
    restored = () if faults else (tokenize_corpus, train_model, drill_recovery)
    subject = Subject(
        flow="drill",
        config=config,
        corpus=corpus_files(manifest),
        runtime=runtime,
        stages=(*restored, *(stage for stage in OF_OTHERS if stage in asked)),
        beside=(*STAGES, *proof_stages()),
        apart=OF_OTHERS,
    )
    fixture = corpus_files(None)
    rules = {"rules_sha256": rules_sha256(), "runtime": runtime}
    with recorded_run(subject) as run:
        drilled: list[PrefectFuture[Any]] = []
        with temporary_settings({PREFECT_TASKS_REFRESH_CACHE: is_fresh}):
            # Beside each other: the first trials of a system leave a core idle, and
            # what is timed there comes minutes after all else has ended.
            if drill_system in asked:
                trial = (fixture.path, fixture.sha256, tried(), asked[drill_system])
                drilled += [drill_system.submit(*trial, **rules)]
            if drill_store in asked:
                drilled += [drill_store.submit(asked[drill_store], **rules)]
        made = _restored(subject, is_fresh=is_fresh) if restored else []
        return run.follow(*made, *drilled)


def faults_by_stage(names: list[str]) -> dict[StageTask, list[str]]:
    """Returns the stages that plant the faults of some names, each with its own.

    Args:
        names: Names of faults; none are all, which a stage is asked for by none.

    Raises:
        UnknownName: A name is no fault's.
    """
    if not names:
        return {s: [] for s in OF_OTHERS if s is drill_system or is_there()}
    known = fault_names()
    for name in names:
        check_known(
            "The fault", name, [each for some in known.values() for each in some]
        )
    by_stage = {
        stage: [name for name in names if name in known.get(stage.definition.name, ())]
        for stage in OF_OTHERS
    }
    return {stage: own for stage, own in by_stage.items() if own}


def _restored(subject: Subject, *, is_fresh: bool) -> list[PrefectFuture[Any]]:
    """Submits the drill of a restore and what it restores."""
    config, corpus, runtime = subject.config, subject.corpus, subject.runtime
    model, train = config.model, config.train
    tokens = tokenize_corpus.submit(corpus.path, corpus.sha256, model, runtime=runtime)
    trained = train_model.submit(tokens, model, train, runtime=runtime)
    with temporary_settings({PREFECT_TASKS_REFRESH_CACHE: is_fresh}):
        drilled = drill_recovery.submit(
            tokens, trained, model, train, config.drill, runtime=runtime
        )
    return [tokens, trained, drilled]
