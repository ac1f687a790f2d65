"""Restores that have to be refused, and trainings that have to stop.

The matrix of single changes is one program; what only another process can show
(another runtime, a loss that leaves the real line) is a process each, whose end is
recorded like any other.
"""

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from model.config import CertifyConfig, OptimizerConfig, TrainConfig, to_dict
from model.folders import folder_sha256
from model.refusal import ReasonCode
from tasks.errors import ProgramRefused
from tasks.killed_training import TRAIN, Request
from tasks.run_program import Event, ProgramRun
from tasks.work import Work
from warehouse.records.claims import Comparison, Refusal
from warehouse.records.refusals import StoppedTraining

CLAIM = "2.4"
REFUSE = "model.programs.refuse_checkpoints"
# What a process really runs under, by field of the numerics fingerprint.
OTHER_RUNTIMES = {
    "nproc": {"NPROC": "3"},
    "xla_flags": {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"},
    "key_implementation": {"JAX_DEFAULT_PRNG_IMPL": "rbg"},
}
RUNTIME = "checkpoint_under_another_runtime"
NON_FINITE = "non_finite_update"
NAMED = "refused_field_named"
UNTOUCHED = "checkpoint_after_refusal"


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """How a training that ought to be refused has ended."""

    run: ProgramRun
    """Its process."""
    code: str | None
    """Reason code, None when nothing was refused."""
    message: str
    fields: tuple[str, ...]
    """What the refusal named."""

    def told(self, event: str) -> list[Event]:
        """Returns what its process told about something, in order."""
        return [each for each in self.run.events if each.get("event") == event]

    @property
    def restored_update(self) -> int | None:
        """Update of the checkpoint that it went on from."""
        return next((event["update"] for event in self.told("restored")), None)

    @property
    def update(self) -> int | None:
        """Update at which it stopped, as the refusal names it."""
        parts = [field.split(".") for field in self.fields]
        named = [part[1] for part in parts if part[0] == "updates"]
        return int(named[0]) if named else None

    @property
    def trace(self) -> Path | None:
        """Path of its trace, None when it was refused before it started."""
        trace = self.run.out / "artifacts" / "trace.jsonl"
        return trace if trace.exists() else None


def refuse_single_changes(work: Work, restore: Request) -> None:
    """Runs the matrix of single changed settings and damaged files.

    Args:
        work: The working side of the stage.
        restore: Request of a training that could be restored as it is.
    """
    work.run(REFUSE, restore)


def refuse_other_runtimes(work: Work, restore: Request) -> None:
    """Restores in processes whose runtime really is another one.

    Args:
        work: The working side of the stage.
        restore: Request of a training that could be restored as it is.
    """

    def attempt(field: str) -> Stopped:
        changes = dict(OTHER_RUNTIMES[field])
        if "XLA_FLAGS" in changes:
            # Beside a user's own flags; without them more than this would change.
            own = os.environ.get("XLA_FLAGS", "")
            changes["XLA_FLAGS"] = f"{own} {changes['XLA_FLAGS']}".strip()
        return _run(work, restore, f"under another {field}", changes)

    folder = Path(restore["restore_folder"])
    before = folder_sha256(folder)
    with ThreadPoolExecutor(max_workers=2) as pool:
        attempts = list(pool.map(attempt, OTHER_RUNTIMES))
    after = folder_sha256(folder)
    for field, stopped in zip(OTHER_RUNTIMES, attempts, strict=True):
        expected = ReasonCode(f"checkpoint_mismatch_{field}")
        work.record(_refusal(RUNTIME, field, expected, stopped))
        _compare_fields(work, f"{RUNTIME}/{field}", f"numerics.{field}", stopped)
        # The processes share the folder, so each row is about all of them.
        _compare_bytes(work, f"{RUNTIME}/{field}", before, after)


def stop_at_non_finite(
    work: Work, request: Request, train: TrainConfig, certify: CertifyConfig
) -> None:
    """Trains until loss or gradient leave the real line, and restores what is left.

    Args:
        work: The working side of the stage.
        request: What every training is asked.
        train: Recipe and seeds.
        certify: Learning rates that make a loss or a gradient overflow.
    """
    for fault in (
        NonFinite(
            case="loss",
            rate=certify.diverging_learning_rate,
            code=ReasonCode.NON_FINITE_LOSS,
        ),
        NonFinite(
            case="gradient",
            rate=certify.overflowing_learning_rate,
            code=ReasonCode.NON_FINITE_GRADIENT,
        ),
    ):
        stop_at(work, request, train, fault)


@dataclass(frozen=True, kw_only=True)
class NonFinite:
    """One way to leave the real line."""

    case: str
    """What overflows first: loss or gradient."""
    rate: float
    """Learning rate that makes it."""
    code: ReasonCode
    """Reason code with which the training has to stop."""


def stop_at(work: Work, request: Request, train: TrainConfig, fault: NonFinite) -> None:
    """Trains until one thing is not finite, keeps what is known, and restores it.

    Args:
        work: The working side of the stage.
        request: What every training is asked.
        train: Recipe and seeds.
        fault: What overflows, and how.
    """
    case = fault.case
    # The plain recipe: a warm-up or a decay would overflow somewhere else.
    optimizer = OptimizerConfig(learning_rate=fault.rate)
    folder = work.scratch(f"non-finite-{case}")
    failing = request | {
        "label": f"non-finite {case}",
        "train": to_dict(replace(train, optimizer=optimizer)),
        "checkpoint_folder": str(folder),
    }
    stopped = _run(work, failing, f"non-finite {case}")
    work.record(_refusal(NON_FINITE, case, fault.code, stopped))
    kept = _keep_stopped(work, case, folder, stopped)
    place = f"updates.{stopped.update}.{'loss' if case == 'loss' else 'gradients'}"
    _compare_fields(work, f"{NON_FINITE}/{case}", place, stopped)
    written, left = kept.committed_sha256, kept.kept_sha256
    _compare_bytes(work, f"{NON_FINITE}/{case}", written, left)

    before = folder_sha256(folder)
    restored = failing | {"restore_folder": str(folder)}
    again = _run(work, restored, f"non-finite {case} again")
    _compare_bytes(work, f"{NON_FINITE}_again/{case}", before, folder_sha256(folder))
    _record_what_stayed(work, case, stopped, again)


def _keep_stopped(
    work: Work, case: str, folder: Path, stopped: Stopped
) -> StoppedTraining:
    """Keeps what is known of a training that stopped, and its trace."""
    committed = stopped.told("checkpoint")
    last = committed[-1] if committed else {}
    traced = 0
    if stopped.trace is not None:
        # The first line is the state that it started from.
        traced = len(stopped.trace.read_text("utf-8").splitlines()) - 1
        work.keep(stopped.trace, f"trace-non-finite-{case}.jsonl")
    row = StoppedTraining(
        case_name=case,
        run_label=stopped.run.label,
        process_id=stopped.run.process_id,
        stopped_at_update=stopped.update,
        stop_reason=stopped.code,
        message=stopped.message,
        traced_updates=traced,
        last_good_update=last.get("update"),
        committed_sha256=last.get("sha256"),
        kept_sha256=folder_sha256(folder / last["folder"]) if last else None,
    )
    work.record(row)
    return row


def _record_what_stayed(
    work: Work, case: str, stopped: Stopped, again: Stopped
) -> None:
    """The last good checkpoint is there, and goes on to the very same end."""
    update = stopped.update
    good = "no update is named" if update is None else f"update {update - 1}"
    restored = f"update {again.restored_update}"
    _compare(
        work,
        "last_good_checkpoint",
        case,
        (good, restored),
        "the update before the one at which the training stopped",
    )
    ends = (f"{end.code}: {end.message}" for end in (stopped, again))
    expected, measured = ends
    source = "the training that stopped"
    _compare(work, "non_finite_update_again", case, (expected, measured), source)


def _run(
    work: Work,
    request: Request,
    label: str,
    environment: Mapping[str, str] | None = None,
) -> Stopped:
    try:
        run = work.run(
            TRAIN, request, label=label, environment=environment, gather=False
        )
    except ProgramRefused as refused:
        return Stopped(
            run=refused.run,
            code=refused.code,
            message=str(refused),
            fields=refused.fields,
        )
    return Stopped(run=run, code=None, message="", fields=())


def _refusal(measure: str, case: str, expected: str, stopped: Stopped) -> Refusal:
    return Refusal(
        claim=CLAIM,
        measure=measure,
        case_name=case,
        expected_reason=str(expected),
        received_reason=stopped.code,
        message=stopped.message,
    )


def _compare_fields(work: Work, case: str, path: str, stopped: Stopped) -> None:
    """What the refusal named is what was changed, and nothing else."""
    found = json.dumps(sorted(stopped.fields)) if stopped.code else "accepted"
    source = "what was changed, and nothing else"
    _compare(work, NAMED, case, (json.dumps([path]), found), source)


def _compare_bytes(
    work: Work, case: str, before: str | None, after: str | None
) -> None:
    """What was refused is what it was before, byte by byte."""
    texts = (before or "a committed checkpoint", after or "no checkpoint")
    _compare(work, UNTOUCHED, case, texts, "digest before the refusal")


def _compare(
    work: Work, measure: str, case: str, texts: tuple[str, str], source: str
) -> None:
    expected, measured = texts
    is_same = expected == measured
    work.record(
        Comparison(
            claim=CLAIM,
            measure=measure,
            case_name=case,
            expected=expected,
            measured=measured,
            expected_from=source,
            first_difference=""
            if is_same
            else f"expected {expected}, measured {measured}",
        )
    )
