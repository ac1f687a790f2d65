"""A training process that is killed after an update, and what it leaves behind.

The DAG kills at the points a run asks for, the certificate at every point of two
epochs; both come here, so that they prove the same thing.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.config import ModelConfig, TrainConfig, to_dict
from tasks.run_program import Event, ProgramRun
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.store import Execution

TRAIN = "model.programs.train_model"
# The files of a checkpoint, and how their artifacts end.
CHECKPOINT_FILES = {
    "arrays.npz": "npz",
    "manifest.json": "json",
    "COMMITTED": "committed",
}

Request = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class KilledTraining:
    """A killed process, and what it has left: its checkpoints and its trace."""

    case: str
    start: int
    """Update that it started from."""
    point: int
    """Update after which it was killed."""
    cadence: int
    """Updates from one committed checkpoint to the next."""
    folder: Path
    """Folder of its checkpoints."""
    run: ProgramRun

    @property
    def committed_update(self) -> int:
        """The update whose checkpoint has to be the last one that was committed."""
        return max(self.start, self.point - self.point % self.cadence)

    @property
    def checkpoint(self) -> Path:
        """Folder of the last checkpoint that is really there."""
        return max(self.folder.glob("update-*/COMMITTED")).parent

    @property
    def trace(self) -> Path:
        """Path of its trace."""
        return self.run.out / "artifacts" / "trace.jsonl"

    def compared(self, claim: str) -> dict[str, Any]:
        """Returns what the comparison of its updates needs to know."""
        return {
            "role": "interrupted",
            "case": self.case,
            "claim": claim,
            "trace": str(self.trace),
            "owed": [self.start + 1, self.point],
        }


def training_request(
    work: Work, tokens: Execution, model: ModelConfig, train: TrainConfig
) -> Request:
    """Returns what every training of a recovery is asked; none of them evaluates."""
    files = work.fetch(tokens, "tokens.npz", "corpus.json")
    return {
        "tokens": files["tokens.npz"],
        "corpus": files["corpus.json"],
        "model": to_dict(model),
        "train": to_dict(train),
        "evaluate": False,
    }


def kill_training(
    work: Work,
    request: Request,
    *,
    claim: str,
    case: str,
    point: int,
    cadence: int,
    folder: Path,
    restored: "KilledTraining | None" = None,
    label: str = "",
) -> KilledTraining:
    """Trains in a process of its own, kills it by SIGKILL, and records both.

    Args:
        work: The working side of the stage.
        request: What every training is asked.
        claim: Claim that the rows are judged on.
        case: Name of the point.
        point: Update after which the process waits for its end.
        cadence: Updates from one committed checkpoint to the next.
        folder: Where its checkpoints go.
        restored: The killed training whose checkpoint it starts from, none at first.
        label: Name of its restore in the evidence.
    """
    restore = {"label": label, "restore_folder": str(folder)} if restored else {}
    run = work.run(
        TRAIN,
        request
        | {
            "label": f"interrupted {case}",
            "checkpoint_folder": str(folder),
            "checkpoint_every_updates": cadence,
            "pause_after_update": point,
            **restore,
        },
        label=case,
        kill_when=_is_paused,
        gather=False,
    )
    killed = KilledTraining(
        case=case,
        start=restored.committed_update if restored else 0,
        point=point,
        cadence=cadence,
        folder=folder,
        run=run,
    )
    _record_kill(work, killed, claim)
    return killed


def _is_paused(event: Event) -> bool:
    """The process waits after the update: whatever it has in memory is lost now."""
    return event.get("event") == "paused"


def _record_kill(work: Work, killed: KilledTraining, claim: str) -> None:
    run = killed.run
    told = [e["update"] for e in run.events if e.get("event") == "checkpoint"]
    for measure, value, unit in (
        ("killed_by_signal", run.signal, "signal"),
        ("interrupted_process_id", run.process_id, "process id"),
        ("checkpoint_cadence", killed.cadence, "updates"),
        ("last_committed_update", max(told, default=killed.start), "updates"),
    ):
        work.record(
            Measurement(
                claim=claim,
                measure=measure,
                case_name=killed.case,
                value_count=value,
                unit=unit,
                detail=run.label,
            )
        )
    due = [u for u in range(killed.start, killed.point + 1) if u % killed.cadence == 0]
    owed, found = (", ".join(map(str, updates)) or "none" for updates in (due, told))
    work.record(
        Comparison(
            claim=claim,
            measure="committed_checkpoints",
            case_name=killed.case,
            expected=owed,
            measured=found,
            expected_from="the checkpoint cadence and the point of the kill",
            first_difference="" if owed == found else f"expected {owed}, got {found}",
        )
    )
