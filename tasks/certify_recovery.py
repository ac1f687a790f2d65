"""The certificate of recovery: every interruption point of two epochs, and more.

Each point has a training process of its own that is killed by SIGKILL. One fresh
process then restores all of them, one after another: whatever it keeps in memory from
one restore could only spoil the next, because all a restore is given is a folder.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

from model.config import CertifyConfig, ModelConfig, TrainConfig
from tasks import refused_restores
from tasks.compared_trainings import COMPARE, Compared, compare_trainings
from tasks.killed_training import (
    TRAIN,
    KilledTraining,
    Request,
    kill_training,
    training_request,
)
from tasks.refused_restores import REFUSE
from tasks.resumed_training import (
    Resumption,
    record_resumption,
    resume_trainings,
    trace_of,
)
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.refusals import CheckpointField, RefusedPair, StoppedTraining
from warehouse.records.training import Update, UpdateDigest
from warehouse.store import Execution

CLAIM = "2.2"
# Programs at a time, each with the two threads its numerics are pinned to.
PROCESSES = 2


@stage(
    programs=(TRAIN, COMPARE, REFUSE),
    writes=(
        *(Measurement, Comparison, Refusal, RefusedPair, CheckpointField),
        *(StoppedTraining, Update, UpdateDigest),
    ),
)
def certify_recovery(
    work: Work,
    tokens: Execution,
    trained: Execution,
    model: ModelConfig,
    train: TrainConfig,
    certify: CertifyConfig,
) -> None:
    """Kills, restores and compares at every point; gives a restore what to refuse.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        trained: The uninterrupted training, which all traces are compared with.
        model: Shape of the model.
        train: Recipe and seeds.
        certify: Points, the chain of kills in one training, and the last update.
    """
    expected = work.fetch(trained, "trace.jsonl")["trace.jsonl"]
    request = training_request(work, tokens, model, train)
    request["stop_after_update"] = certify.final_update

    beside = request | {"compared_trace": expected}
    with ThreadPoolExecutor(max_workers=PROCESSES) as pool:
        chain = pool.submit(_kill_in_a_chain, work, beside, certify)
        kill = partial(_kill, work, beside, certify)
        points = list(pool.map(kill, certify.points))
    trainings = _resume(work, beside, points, chain.result())
    compare_trainings(work, request, expected, trainings)

    last = str(points[-1].folder)
    restore = request | {"label": "restore to refuse", "restore_folder": last}
    refused_restores.refuse_single_changes(work, restore)
    refused_restores.refuse_other_runtimes(work, restore)
    refused_restores.stop_at_non_finite(work, request, train, certify)


def _kill(
    work: Work, request: Request, certify: CertifyConfig, point: int
) -> KilledTraining:
    case = f"point-{point:02d}"
    return kill_training(
        work,
        request,
        claim=CLAIM,
        case=case,
        point=point,
        cadence=certify.checkpoint_every_updates,
        folder=work.scratch(case),
    )


def _kill_in_a_chain(
    work: Work, request: Request, certify: CertifyConfig
) -> list[KilledTraining]:
    """Kills one training several times; each process restores what the last left."""
    folder = work.scratch("chain")
    chain: list[KilledTraining] = []
    for point in certify.chain:
        before = chain[-1] if chain else None
        chain.append(
            kill_training(
                work,
                request,
                claim=CLAIM,
                case=f"chain-{point:02d}",
                point=point,
                cadence=certify.chain_checkpoint_every_updates,
                folder=folder,
                restored=before,
                label=_resumption(before).label if before else "",
            )
        )
    return chain


def _resumption(killed: KilledTraining) -> Resumption:
    return Resumption(
        case=killed.case,
        folder=killed.folder,
        committed_update=killed.committed_update,
        point=killed.point,
        killed_process_id=killed.run.process_id,
    )


def _resume(
    work: Work,
    request: Request,
    points: list[KilledTraining],
    chain: list[KilledTraining],
) -> list[Compared]:
    """Restores every point in one fresh process; returns what to compare."""
    once = [*points, chain[-1]]
    resumptions = [_resumption(killed) for killed in once]
    run = resume_trainings(work, request, resumptions, label="resumed every point")
    last = request["stop_after_update"]
    resumed = [(killed, run, trace_of(run, killed.case), last) for killed in once]
    # Within the chain the next process to be killed is the one that restored.
    resumed += [
        (killed, following.run, following.trace, following.point)
        for killed, following in pairwise(chain)
    ]
    compared = [killed.compared(CLAIM) for killed in (*points, chain[0])]
    for killed, process, trace, last_update in resumed:
        resumption = _resumption(killed)
        record_resumption(work, process, resumption, CLAIM)
        compared.append(
            resumption.compared(
                process, trace, role="certified", claim=CLAIM, last_update=last_update
            )
        )
    return compared
