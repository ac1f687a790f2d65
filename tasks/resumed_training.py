"""Trainings that go on in a fresh process from what a kill has left.

One process may restore several points, one after another; which process restored what
is in the rows. A restore that is refused is a finding and stops no other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.run_program import Event, ProgramRun
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement

TRAIN = "model.programs.train_model"

Request = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Resumption:
    """One restore that is asked for, and what it has to find."""

    case: str
    folder: Path
    committed_update: int
    """The update whose checkpoint was committed last."""
    point: int
    """Update after which the process was killed."""
    killed_process_id: int | None = None
    """The process that was killed; None where none was, as on a full disk."""

    @property
    def label(self) -> str:
        """Name of the training in the evidence."""
        return f"resumed {self.case}"

    def compared(
        self, run: ProgramRun, trace: Path, *, role: str, claim: str, last_update: int
    ) -> dict[str, Any]:
        """Returns what the comparison of the restored training needs to know.

        Args:
            run: The process that restored.
            trace: What it wrote of each update; absent when it refused to restore.
            role: A role of `model.programs.compare_traces`.
            claim: Claim that the rows are judged on.
            last_update: The last update that it had to make.
        """
        found = (
            {"trace": str(trace)}
            if trace.exists()
            else {"refused": _refusal(run, self)}
        )
        return found | {
            "role": role,
            "case": self.case,
            "claim": claim,
            "point": self.point,
            "committed_update": self.committed_update,
            "owed": [self.committed_update + 1, last_update],
        }


def resume_trainings(
    work: Work, request: Request, resumptions: Sequence[Resumption], *, label: str
) -> ProgramRun:
    """Restores and goes on, everything in one fresh process.

    Args:
        work: The working side of the stage.
        request: What every training is asked, with its last update.
        resumptions: What to restore.
        label: Name of the process in the evidence.
    """
    trainings = [
        {
            "label": resumption.label,
            "suffix": f"-{_file_name(resumption.case)}",
            "restore_folder": str(resumption.folder),
        }
        for resumption in resumptions
    ]
    return work.run(TRAIN, request | {"trainings": trainings}, label=label)


def trace_of(run: ProgramRun, case: str) -> Path:
    """Returns the trace of one restored training; absent when it was refused."""
    return run.out / "artifacts" / f"trace-{_file_name(case)}.jsonl"


def record_resumption(
    work: Work, run: ProgramRun, resumption: Resumption, claim: str
) -> None:
    """Records which process restored which update; nothing when it refused to.

    Args:
        work: The working side of the stage.
        run: The process.
        resumption: What was asked of it.
        claim: Claim that the rows are judged on.
    """
    restored = _event(run, resumption, "restored")
    if restored is None:
        return
    if resumption.killed_process_id is not None:
        work.record(_other_process(run, resumption, claim))
    for measure, value, unit in (
        ("resumed_process_id", run.process_id, "process id"),
        ("restored_update", restored["update"], "updates"),
    ):
        work.record(
            Measurement(
                claim=claim,
                measure=measure,
                case_name=resumption.case,
                value_count=value,
                unit=unit,
                detail=resumption.label,
            )
        )


def _other_process(run: ProgramRun, resumption: Resumption, claim: str) -> Comparison:
    """Sets the process that restored beside the one that was killed; they differ."""
    return Comparison(
        claim=claim,
        measure="restoring_process",
        case_name=resumption.case,
        expected=f"process {resumption.killed_process_id}",
        measured=f"process {run.process_id}",
        expected_from="the process that was killed",
        first_difference="",
    )


def _refusal(run: ProgramRun, resumption: Resumption) -> str:
    refused = _event(run, resumption, "refused")
    return f"{refused['code']}: {refused['message']}" if refused else "nothing"


def _event(run: ProgramRun, resumption: Resumption, kind: str) -> Event | None:
    told = (
        event
        for event in run.events
        if event.get("event") == kind and event.get("label") == resumption.label
    )
    return next(told, None)


def _file_name(case: str) -> str:
    return case.replace("/", "-")
