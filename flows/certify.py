"""A long proof about the training system: stages beside those of the whole run.

Training and tokens are those of `harness run` where it has made them. The subject is
the same too, so that a verdict rests on both, whichever was started first.
"""

from collections.abc import Sequence

from prefect.settings import PREFECT_TASKS_REFRESH_CACHE, temporary_settings

from flows.harness_flow import harness_flow
from flows.parameters import PresetName, ProofName, Settings, overrides_of
from flows.proofs import PROOFS, Proof, proof_stages
from flows.qualify import STAGES
from flows.run_record import Subject, recorded_run
from flows.runtime_fingerprint import runtime_fingerprint
from model.config import RunConfig
from model.presets import certifiable
from tasks.corpus_files import corpus_files
from tasks.tokenize_corpus import tokenize_corpus
from tasks.train_model import train_model


@harness_flow
def certify(
    proof: ProofName,
    preset_name: PresetName = "fixture",
    manifest: str | None = None,
    is_fresh: bool = False,
    settings: Settings | None = None,
) -> str:
    """Makes one proof and returns the id of the run.

    Args:
        proof: The proof: every interruption point of two epochs (recovery), or every
            step of a checkpoint write (crash).
        preset_name: The preset the configuration starts from.
        manifest: Path of a corpus manifest on the worker; empty for the fixture corpus.
        is_fresh: Whether the proof is made again; what it is about is kept.
        settings: Settings that differ from the preset's; an empty field changes none.
    """
    config = certifiable(preset_name, overrides_of(settings))
    return prove("certify", PROOFS[proof], config, manifest, is_fresh=is_fresh)


def prove(
    flow_name: str,
    proofs: Sequence[Proof],
    config: RunConfig,
    manifest: str | None,
    *,
    is_fresh: bool,
) -> str:
    """Runs tokens, training and proofs as one recorded run, and returns its id.

    Args:
        flow_name: Name of the flow that the run is recorded under.
        proofs: What is proved, side by side.
        config: The whole configuration.
        manifest: Path of a corpus manifest; None for the fixture corpus.
        is_fresh: Whether the proofs are made again; what they are about is kept.
    """
    corpus = corpus_files(manifest)
    runtime = runtime_fingerprint()
    model, train = config.model, config.train
    subject = Subject(
        flow=flow_name,
        config=config,
        corpus=corpus,
        runtime=runtime,
        stages=(tokenize_corpus, train_model, *(proof.stage for proof in proofs)),
        beside=(*STAGES, *proof_stages()),
    )
    with recorded_run(subject) as run:
        tokens = tokenize_corpus.submit(
            corpus.path, corpus.sha256, model, runtime=runtime
        )
        trained = train_model.submit(tokens, model, train, runtime=runtime)
        with temporary_settings({PREFECT_TASKS_REFRESH_CACHE: is_fresh}):
            proven = [
                proof.stage.submit(
                    tokens,
                    trained,
                    model,
                    train,
                    proof.settings(config),
                    runtime=runtime,
                )
                for proof in proofs
            ]
            return run.follow(tokens, trained, *proven)
