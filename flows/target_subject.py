"""What a result of a target is about: this system, its own settings and its runtime."""

from flows.proofs import proof_stages
from flows.qualify import STAGES
from flows.run_record import Subject
from model.config import RunConfig
from tasks.corpus_files import corpus_files
from tasks.qualify_target import qualify_target
from tasks.target_results import TargetResult


def target_subject(flow: str, result: TargetResult, config: RunConfig) -> Subject:
    """Returns the subject of a run that takes in a result.

    Args:
        flow: Name that the run is recorded under.
        result: The result; its runtime is the subject's.
        config: What was asked for, as it is known here and not as the result says.
    """
    return Subject(
        flow=flow,
        config=config,
        corpus=corpus_files(None),
        runtime=result.runtime,
        stages=(qualify_target,),
        beside=(*STAGES, *proof_stages()),
    )
