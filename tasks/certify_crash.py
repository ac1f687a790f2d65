"""The certificate of the checkpoint write: killed at every step, and out of room.

The steps are asked of the code itself: a first process writes a checkpoint and tells
each step it passes, then one process after another is killed at one of them. A step
that is added to the write is thereby certified too.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from model.config import CertifyConfig, ModelConfig, TrainConfig
from model.folders import folder_sha256
from model.limits import UPDATES_BEYOND_A_KILL
from model.refusal import ReasonCode
from tasks.compared_trainings import COMPARE, Compared, compare_trainings
from tasks.errors import ProgramFailed, ProgramRefused
from tasks.killed_training import TRAIN, Request, training_request
from tasks.private_mount import FAULTS, Fault, enter_namespace, faulty_place
from tasks.refused_restores import REFUSE
from tasks.resumed_training import (
    Resumption,
    record_resumption,
    resume_trainings,
    trace_of,
)
from tasks.run_program import Event, ProgramRun
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.training import Update, UpdateDigest
from warehouse.store import Execution

CLAIM = "2.3"
# Programs at a time, each with the two threads its numerics are pinned to.
PROCESSES = 2
# The step from which on a checkpoint exists: its mark carries its name.
COMMITTING_STEP = "COMMITTED/renamed"


@stage(
    programs=(TRAIN, COMPARE, REFUSE),
    writes=(Measurement, Comparison, Refusal, Update, UpdateDigest),
)
def certify_crash(
    work: Work,
    tokens: Execution,
    trained: Execution,
    model: ModelConfig,
    train: TrainConfig,
    certify: CertifyConfig,
) -> None:
    """Kills a training at every step of a checkpoint write, and restores what is left.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        trained: The uninterrupted training, which all traces are compared with.
        model: Shape of the model.
        train: Recipe and seeds.
        certify: The update in whose write a process dies.
    """
    expected = work.fetch(trained, "trace.jsonl")["trace.jsonl"]
    request = training_request(work, tokens, model, train)
    request["stop_after_update"] = certify.written_update + UPDATES_BEYOND_A_KILL

    steps = _steps_of_a_write(work, request, certify)
    with ThreadPoolExecutor(max_workers=PROCESSES) as pool:
        kill = partial(_kill_at, work, request, certify, steps)
        left = list(pool.map(kill, steps))
    left += _fail_to_write(work, request, certify, left[0].folder)

    beside = request | {"compared_trace": expected}
    run = resume_trainings(work, beside, left, label="resumed every write")
    for resumption in left:
        record_resumption(work, run, resumption, CLAIM)
    compare_trainings(work, request, expected, compared_writes(run, request, left))
    work.run(REFUSE, request | {"label": "partial", "partial": _partial(left, certify)})


def compared_writes(
    run: ProgramRun, request: Request, left: Sequence[Resumption]
) -> list[Compared]:
    """Returns what to compare of everything that a killed or failed write left.

    Args:
        run: The process that restored all of it.
        request: What every training was asked, with its last update.
        left: What was left.
    """
    return [
        resumption.compared(
            run,
            trace_of(run, resumption.case),
            role="rewritten",
            claim=CLAIM,
            last_update=request["stop_after_update"],
        )
        for resumption in left
    ]


def _steps_of_a_write(
    work: Work, request: Request, certify: CertifyConfig
) -> list[str]:
    """Returns every step of one checkpoint write, told by the code that writes."""
    watched = {
        "label": "steps of a write",
        "stop_after_update": certify.written_update,
        "checkpoint_folder": str(work.scratch("steps")),
        "watched_write": certify.written_update,
    }
    run = work.run(TRAIN, request | watched, label="steps of a write", gather=False)
    steps = [event["step"] for event in run.events if "step" in event]
    if COMMITTING_STEP not in steps:
        raise ProgramFailed(
            f"The checkpoint write told the steps {steps}; without {COMMITTING_STEP!r}"
            " nobody knows which of them commits it."
        )
    work.record(_count("write_steps", "", len(steps), "steps", ", ".join(steps)))
    return steps


def _kill_at(
    work: Work, request: Request, certify: CertifyConfig, steps: list[str], step: str
) -> Resumption:
    """Kills one training at one step, and says what has to be found afterwards."""
    folder = work.scratch(f"kill-{steps.index(step):02d}")
    run = work.run(
        TRAIN,
        request
        | {
            "label": f"killed at {step}",
            "checkpoint_folder": str(folder),
            "watched_write": certify.written_update,
            "pause_at_step": step,
        },
        label=step,
        kill_when=lambda event: _is_at(event, step),
        gather=False,
    )
    work.record(
        _count("killed_by_signal", step, run.signal, "signal", run.label),
        _count("interrupted_process_id", step, run.process_id, "process id", run.label),
    )
    is_committed = steps.index(step) >= steps.index(COMMITTING_STEP)
    update = certify.written_update - (0 if is_committed else 1)
    return Resumption(
        case=step,
        folder=folder,
        committed_update=update,
        point=certify.written_update,
        killed_process_id=run.process_id,
    )


def _is_at(event: Event, step: str) -> bool:
    return event.get("event") == "write_step" and event.get("step") == step


def _fail_to_write(
    work: Work, request: Request, certify: CertifyConfig, source: Path
) -> list[Resumption]:
    """Trains on from a folder that takes no more bytes; it has to stop and keep it."""
    enter = enter_namespace()
    left = []
    for fault in FAULTS:
        if enter is None:
            work.record(_not_mounted(fault))
            continue
        work.record(_count("faulty_folder_mounted", fault, 1, "folders", "tmpfs"))
        left.append(_write_into(work, request, certify, enter, fault, source))
    return left


def _write_into(
    work: Work,
    request: Request,
    certify: CertifyConfig,
    enter: tuple[str, ...],
    fault: Fault,
    source: Path,
) -> Resumption:
    place = work.scratch(fault)
    kept = work.scratch("kept") / fault
    checkpoints = str(place / "checkpoints")
    folders = {"restore_folder": checkpoints, "checkpoint_folder": checkpoints}
    received, message = None, ""
    try:
        work.run(
            TRAIN,
            request | folders | {"label": fault},
            label=fault,
            prefix=faulty_place(enter, fault, source, place, kept),
            gather=False,
        )
    except ProgramRefused as refused:
        received, message = refused.code, str(refused)
    work.record(
        Refusal(
            claim=CLAIM,
            measure="checkpoint_without_room",
            case_name=fault,
            expected_reason=str(ReasonCode.CHECKPOINT_NOT_WRITTEN),
            received_reason=received,
            message=message,
        )
    )
    work.record(_untouched(fault, folder_sha256(source), folder_sha256(kept)))
    point = certify.written_update
    return Resumption(case=fault, folder=kept, committed_update=point - 1, point=point)


def _untouched(fault: Fault, before: str, after: str) -> Comparison:
    """A write that failed left every name and byte of the folder as it was."""
    return Comparison(
        claim=CLAIM,
        measure="checkpoints_after_failed_write",
        case_name=fault,
        expected=before,
        measured=after,
        expected_from="digest before the write",
        first_difference=""
        if before == after
        else f"expected {before}, measured {after}",
    )


def _not_mounted(fault: str) -> Measurement:
    return Measurement(
        claim=CLAIM,
        measure="faulty_folder_mounted",
        case_name=fault,
        unit="folders",
        reason="not_supported",
        detail="no mount namespace can be made here (unshare --mount); run as root",
    )


def _partial(left: list[Resumption], certify: CertifyConfig) -> list[dict[str, str]]:
    """Every checkpoint that a kill or a full disk left without its mark."""
    name = f"update-{certify.written_update:06d}"
    return [
        {"case": resumption.case, "checkpoint": str(resumption.folder / name)}
        for resumption in left
        if (resumption.folder / name).is_dir()
        and not (resumption.folder / name / "COMMITTED").exists()
    ]


def _count(measure: str, case: str, value: int, unit: str, detail: str) -> Measurement:
    return Measurement(
        claim=CLAIM,
        measure=measure,
        case_name=case,
        value_count=value,
        unit=unit,
        detail=detail,
    )
