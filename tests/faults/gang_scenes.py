"""Scenes about controllers that train as one, and about their launcher."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from model.refusal import Refused
from tasks import controller_answers, gang, gang_endings
from tasks.gang import GangRun, Patience
from tasks.run_program import ProgramCall, ProgramRun
from tests.faults import Scene, Stage

CODE = "c" * 64
STUB = Path(__file__).parent.parent / "data" / "stub_controller"
STAGE = "rehearse_target"


def as_gang(outs: list[Path], events: list[Any] | None = None) -> GangRun:
    """Returns a gang of controllers that completed, by what they left."""
    runs = tuple(
        ProgramRun(
            program="model.programs.train_controller",
            label=f"controller {number}",
            process_id=100 + number,
            return_code=0,
            duration_ns=1,
            peak_memory_bytes=None,
            out=out,
            events=[each for each in events or () if each["process"] == number],
            runtime=None,
            started_at_ns=1,
        )
        for number, out in enumerate(outs)
    )
    return GangRun(
        runs=runs,
        failed=None,
        cause="",
        disturbed_at_ns=None,
        started_at_ns=1,
        ended_at_ns=2,
        processes_left=0,
    )


def answers(stage: Stage) -> None:
    """Two controllers that answered their launcher, as files of theirs say."""
    for row in answered(stage):
        stage.record(STAGE, row.TABLE, asdict(row))


def answered(stage: Stage) -> list[Any]:
    """Returns the records about two controllers that answered their launcher."""
    seats = [
        {"process": n, "processes": 2, "nonce": f"n{n}", "code_sha256": CODE}
        | {"platform": "cpu"}
        for n in range(2)
    ]
    outs = []
    for number, seat in enumerate(seats):
        out = stage.folder / f"controller-{number}"
        (out / "artifacts").mkdir(parents=True)
        (out / "records").mkdir()
        answer = {
            "process_index": number,
            "process_count": 2,
            "nonce": seat["nonce"],
            "code_sha256": CODE,
            "process_id": 100 + number,
            "host": f"host-{number}",
            "platform": "cpu",
            "device_kind": "cpu",
            "local_devices": "[]",
            "local_device_count": 1,
            "global_device_count": 2,
            "versions": "{}",
            "environment": "{}",
        }
        (out / "artifacts" / "answer.json").write_text(json.dumps(answer))
        updates = [{"nonce": seat["nonce"], "update": 1}]
        rows = out / "records" / "controller_updates.json"
        rows.write_text(json.dumps(updates))
        outs.append(out)
    stage.spoil(outs)
    return controller_answers.answer_rows("trained", seats, as_gang(outs))


class Trained:
    """Two hosts that train one vector on a batch of four documents, in NumPy.

    Each document has a gradient and as many valid targets as it has; what a gang writes
    about its updates comes of it, for the checks of the rehearsal.
    """

    TARGETS = np.array([8, 8, 3, 3])
    RATE = 0.1

    def __init__(self) -> None:
        draw = np.random.Generator(np.random.PCG64(7))
        self.gradients = draw.normal(size=(4, 6))
        self.losses = np.array([9.0, 11.0, 5.0, 7.0])
        self.begin = draw.normal(size=6)
        self.hosts = [[0, 1], [2, 3]]
        self.has_mean_of_means = False
        self.batch_of_each = False

    def update(self) -> tuple[dict[str, np.ndarray], float, int]:
        """Returns state, loss sum and valid targets after one update."""
        places = [place for host in self.hosts for place in host]
        targets = int(self.TARGETS[places].sum())
        gradient = self.gradients[places].sum(axis=0) / targets
        loss = float(self.losses[places].sum())
        if self.has_mean_of_means:
            means = [
                self.gradients[own].sum(axis=0) / self.TARGETS[own].sum()
                for own in self.hosts
            ]
            gradient = np.mean(means, axis=0)
            shares = [
                self.losses[own].sum() / self.TARGETS[own].sum() for own in self.hosts
            ]
            loss = float(np.mean(shares)) * targets
        state = {
            "parameters/a": self.begin - self.RATE * gradient,
            "first_moment/a": gradient,
        }
        return state, loss, targets


def controllers(stage: Stage) -> None:
    """A gang's update of one batch beside that of one process."""
    for row in updated(stage, "split"):
        record_row(stage, "qualify_tpu", row)


def record_row(stage: Stage, of: str, row: dict[str, Any]) -> None:
    """Adds a row of a check to the table that it belongs to."""
    stage.record(of, "comparisons" if "expected" in row else "measurements", row)


def updated(stage: Stage, program: str) -> list[dict[str, Any]]:
    """Returns the rows about a gang's update of one batch, made by a program."""
    from model.checks import controllers as checks
    from model.digests import tree_sha256

    alone, together = Trained(), Trained()
    stage.spoil(together)

    def told(trained: Trained, number: int) -> dict[str, Any]:
        state, loss, targets = trained.update()
        names = [f"d{place}" for place in trained.hosts[number]]
        return {
            "update": 1,
            "loss_sum_nats": loss,
            "valid_targets": targets,
            "state_sha256": tree_sha256(state),
            "documents": json.dumps(names),
        }

    whole = told(alone, 0)
    gang_rows = [[told(together, number)] for number in range(2)]
    trained = checks.Trained(
        program=program, updates=gang_rows, trainings=[], arrays=[], devices=2
    )
    ends = alone.update()[0], together.update()[0]
    rows = checks.agreement(program, [whole], trained, ends, {"a": alone.begin})
    if program == "split":
        rows += checks.split_states([whole], gang_rows)
    declared = SimpleNamespace(
        corpus=SimpleNamespace(document_ids={"train": [f"d{n}" for n in range(4)]}),
        batches=lambda: iter([np.arange(4)]),
    )
    # Without rows of trainings it is about the documents alone.
    rows += checks.configuration(program, declared, trained)  # type: ignore[arg-type]
    return rows


def checkpoints(stage: Stage) -> None:
    """A folder with a commit and, later, a checkpoint that nobody committed."""
    from model.shared_checkpoint import SharedCheckpoints
    from tasks.rehearsal import Rehearsal

    folder = stage.folder / "checkpoints"
    for update, is_committed in ((2, True), (4, True), (6, False)):
        place = folder / f"update-{update:06d}"
        place.mkdir(parents=True)
        if is_committed:
            (place / "COMMITTED").write_text("0" * 64)
    chosen = SharedCheckpoints(str(folder), stage.folder)._latest_update()
    events = [{"event": "checkpoint", "update": 4, "process": 0}]
    events += [{"event": "restored", "update": chosen, "process": n} for n in range(2)]
    stage.spoil(events)
    kept: list[Any] = []
    rehearsal = Rehearsal.__new__(Rehearsal)
    rehearsal.work = SimpleNamespace(record=kept.append)  # type: ignore[assignment]
    run = as_gang([stage.folder, stage.folder], events)
    rehearsal.record_writers("same", run)
    rehearsal._record_restored("same", 2, run, 4)
    for row in kept:
        stage.record(STAGE, row.TABLE, asdict(row))


def controller_joins(stage: Stage) -> None:
    """A controller whose runtime sees a world of its own, asked to train."""
    from model import controllers as own
    from model.programs import train_controller

    seat = own.Seat(
        process=1,
        processes=2,
        coordinator=None,
        platform="gpu",
        nonce="n1",
        code_sha256="0" * 64,
        initialization_seconds=1,
        heartbeat_seconds=1,
    )

    def told(attempt: Any) -> str:
        try:
            attempt(seat)
        except Refused as refused:
            return str(refused.code)
        return "trains"

    del train_controller
    stage.promise(
        "9.6",
        "controller_joins",
        alone=("controllers_apart", told(own.join)),
        on_a_cpu=("platform_mismatch", told(own.require_demands)),
    )


def gangs(stage: Stage) -> None:
    """Stub controllers: one that hangs, and one that crashes beside a hung one."""

    def run(name: str, *acts: str) -> str:
        calls = [
            ProgramCall(
                program="stub_controller",
                request={"process": number, "act": act},
                folder=_made(stage.folder / name / str(number)),
                module_root=STUB,
                deadline_seconds=6.0,
            )
            for number, act in enumerate(acts)
        ]
        patience = Patience(step_seconds=2.0, follow_seconds=0.2)
        found = gang.run_gang(calls, patience)
        return f"{found.failed}: {found.cause.partition(': ')[0]}"

    stage.promise(
        "9.6",
        "gangs",
        silent=("1: controller 1 was silent for 2 s", run("silent", "go", "hang")),
        crashed=("1: controller 1", run("crashed", "hang", "crash")),
    )


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def gang_ends(stage: Stage) -> None:
    """Stub controllers that hang; the one that is killed leaves a child."""
    calls = [
        ProgramCall(
            program="stub_controller",
            request={"process": number, "act": act},
            folder=_made(stage.folder / str(number)),
            module_root=STUB,
            deadline_seconds=20.0,
        )
        for number, act in enumerate(("hang", "hang with a child"))
    ]
    kill = gang.Disturbance(
        event="hanging", update=3, teller=1, victim=1, number=signal.SIGKILL
    )
    found = gang.run_gang(calls, Patience(step_seconds=5.0, follow_seconds=0.2), kill)
    for row in gang_endings.ending_rows("killed", found, gang_endings.FAILED, 1):
        stage.record(STAGE, row.TABLE, asdict(row))


SCENES = tuple(
    Scene(name=play.__name__, play=play)
    for play in (answers, controllers, checkpoints, controller_joins, gangs, gang_ends)
)
