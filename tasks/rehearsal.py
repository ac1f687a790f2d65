"""The rehearsal of a target: the target's own program by several processes on CPUs.

One gang trains and loses a controller before a commit; another restores the last commit
and goes on. Both are held against the same training in one process. The whole run and
`harness target rehearse` come through here, so that they show the same thing.
"""

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.config import ModelConfig, TrainConfig, to_dict
from model.folders import source_sha256
from tasks.controller_answers import answer_rows
from tasks.forked_programs import ForkServer
from tasks.gang import Disturbance, GangRun, Patience, seats
from tasks.gang_endings import require_as_meant
from tasks.hosts import Hosts, ThisMachine
from tasks.program_environment import controller_environment, root_of
from tasks.slice_protocol import Protocol
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.records.controllers import (
    ControllerAnswer,
    ControllerArray,
    ControllerTraining,
    ControllerUpdate,
)
from warehouse.store import Execution

CONTROLLER = "model.programs.train_controller"
COMPARE = "model.programs.compare_controllers"
PROGRAMS = (CONTROLLER, COMPARE)
RECORDS = (ControllerAnswer, ControllerUpdate, ControllerTraining, ControllerArray)
RESTART = "5.12"
LAST_UPDATE = 8
LEAST_UPDATES = 3
DEADLINE_SECONDS = 600.0
ALONE = ("whole", "split")
"""Programs that train in one process: the production update, and the split one."""
COMPARED = "compared"
"""Label of the program that sets gangs beside the training in one process."""
NOTHING = "nothing"

Training = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which updates a rehearsal makes, and where it loses a controller."""

    last: int
    """Last update."""
    cadence: int
    """Updates from one commit to the next."""

    @property
    def uncommitted(self) -> int:
        """Update whose checkpoint is written and never committed."""
        return self.last - self.cadence

    @property
    def committed(self) -> int:
        """Update of the last commit before."""
        return self.uncommitted - self.cadence


def plan_for(train: TrainConfig) -> Plan | None:
    """Returns the plan for a recipe; None where it is too short for a restart."""
    last = min(LAST_UPDATE, train.updates)
    if last < LEAST_UPDATES:
        return None
    return Plan(last=last, cadence=max(1, last // 4))


class Rehearsal:
    """Gangs of one stage about one training, and what they wrote."""

    def __init__(
        self,
        work: Work,
        tokens: Execution,
        model: ModelConfig,
        train: TrainConfig,
        plan: Plan,
        hosts: Hosts | None = None,
        protocol: Protocol | None = None,
        fork_server: ForkServer | None = None,
    ) -> None:
        """Fetches the tokens and digests the code that controllers have to run.

        Args:
            work: The working side of a stage.
            tokens: The tokenized corpus.
            model: Shape of the model.
            train: Recipe and seeds.
            plan: Which updates are made.
            hosts: Where gangs run; None for this machine.
            protocol: What controllers do beside their trainings; None for nothing.
            fork_server: What controllers on this machine are forked from.
        """
        files = work.fetch(tokens, "tokens.npz", "corpus.json")
        here = ThisMachine(work.scratch("checkpoints") / "interrupted", fork_server)
        self.here = here
        self.hosts: Hosts = hosts or here
        self.work = work
        self.plan = plan
        self.protocol = protocol
        self.asked = {
            "tokens": files["tokens.npz"],
            "corpus": files["corpus.json"],
            "model": to_dict(model),
            "train": to_dict(train),
            "stop_after_update": plan.last,
            "evaluate": False,
        }
        self.code_sha256 = source_sha256(root_of("model") / "model")
        self.checkpoints = self.hosts.checkpoints
        self.alone: dict[str, Path] = {}
        self.gangs: list[dict[str, Any]] = []

    def train_alone(self, program: str) -> None:
        """Trains in one process, which is what gangs are held against.

        Args:
            program: One of `ALONE`.
        """
        gang = self.run(
            f"alone {program}",
            1,
            [training(program)],
            is_answered=False,
            hosts=self.here,
        )
        self.alone[program] = gang.runs[0].out

    def train_and_lose_one(self, count: int) -> GangRun:
        """Trains by both programs, then a third time and loses a controller there.

        Args:
            count: Controllers; the last one is killed.

        Raises:
            GangFailed: The gang failed before it had trained by both programs, so that
                there is nothing to compare.
        """
        last = count - 1
        interrupted = training(
            "split",
            "interrupted",
            checkpoints=self.checkpoints,
            checkpoint_every_updates=self.plan.cadence,
            pause_before_commit_of=self.plan.uncommitted,
        )
        gang = self.run(
            "trained",
            count,
            [training("split"), training("collective"), interrupted],
            disturbance=Disturbance(
                event="paused",
                update=self.plan.uncommitted,
                teller=last,
                victim=last,
                number=signal.SIGKILL,
            ),
        )
        kept = gang.runs[0].out / "artifacts" / "state-collective.npz"
        require_as_meant(kept.exists(), gang)
        self._compare_later(gang, trained=["split", "collective"])
        self.record_writers("same", gang)
        return gang

    def train_split(self, count: int) -> None:
        """Trains by the split program alone, for its bits.

        Args:
            count: Controllers.
        """
        gang = self.run(f"split by {count}", count, [training("split")])
        self._compare_later(gang, is_split_alone=True)

    def restart(
        self,
        case: str,
        count: int,
        folder: Path | str,
        restored: int | None = None,
        *,
        gang_name: str = "",
        before: Sequence[Training] = (),
        disturbance: Disturbance | None = None,
        **options: Any,
    ) -> GangRun:
        """Restores the last commit of a folder in a new gang, and goes on.

        Args:
            case: Name of the restart in the evidence.
            count: Controllers.
            folder: Path or URL of the folder of the checkpoints.
            restored: Update that has to be restored; None is the plan's.
            gang_name: Name of the gang; empty is the case.
            before: What it trains before it restores anything.
            disturbance: What is done to a controller.
            options: What the training is asked besides.
        """
        resumed = training(
            "split",
            f"resumed {case}",
            checkpoints=str(folder),
            restore="latest",
            **{"checkpoint_every_updates": self.plan.cadence} | options,
        )
        trainings = [*before, resumed]
        gang = self.run(gang_name or case, count, trainings, disturbance=disturbance)
        self._compare_later(gang, restarts={resumed["label"]: case})
        owed = self.plan.committed if restored is None else restored
        self._record_restored(case, count, gang, owed)
        return gang

    def run(
        self,
        name: str,
        count: int,
        trainings: Sequence[Training],
        *,
        disturbance: Disturbance | None = None,
        patience: Patience | None = None,
        absent: int | None = None,
        seat: Mapping[str, Any] | None = None,
        is_answered: bool = True,
        hosts: Hosts | None = None,
    ) -> GangRun:
        """Runs one gang and records what its controllers answered.

        Args:
            name: Name of the gang in the evidence.
            count: Controllers.
            trainings: What they train, one after another.
            disturbance: What is done to a controller.
            patience: How long the gang waits.
            absent: A controller that is never started.
            seat: What every seat has besides.
            is_answered: Whether the answers are evidence of the rehearsal.
            hosts: Where it runs; None for where the rehearsal is about.
        """
        where = hosts or self.hosts
        places = seats(count, where.platform, self.code_sha256)
        asked = {
            **self.asked,
            "gang": name,
            "trainings": list(trainings),
            **(seat or {}),
        }
        present = [place for place in places if place["process"] != absent]
        program, patient = CONTROLLER, patience or Patience()
        deadline = DEADLINE_SECONDS
        if self.protocol is not None and name in self.protocol.steps:
            program, patient = self.protocol.program, self.protocol.patience
            deadline = self.protocol.deadline_seconds
            present = [place | self.protocol.seat(name, place) for place in present]
        gang = self.work.run_together(
            program,
            [asked | place | dict(seat or {}) for place in present],
            lambda calls: where.run(calls, patient, disturbance),
            label=name,
            environment=controller_environment(where.platform),
            deadline_seconds=deadline,
        )
        if is_answered:
            self.work.record(*answer_rows(name, present, gang))
        return gang

    def compare(self) -> None:
        """Sets every gang beside the training in one process."""
        self.work.run(
            COMPARE,
            {
                **self.asked,
                "last_update": self.plan.last,
                "alone": {name: str(out) for name, out in self.alone.items()},
                "gangs": self.gangs,
            },
            label=COMPARED,
            environment=controller_environment(self.here.platform),
            fork_server=self.here.fork_server,
        )

    def _compare_later(
        self,
        gang: GangRun,
        trained: Sequence[str] = (),
        restarts: Mapping[str, str] | None = None,
        *,
        is_split_alone: bool = False,
    ) -> None:
        self.gangs.append(
            {
                "outs": [str(run.out) for run in gang.runs],
                "trained": list(trained),
                "restarts": dict(restarts or {}),
                "is_split_alone": is_split_alone,
            }
        )

    def last_state(self) -> str:
        """Returns the digest of the last state of the split program in one process."""
        state = _state_after(self.alone["split"], "split", self.plan.last)
        # Two trainings that never came there have not ended alike.
        return "" if state == NOTHING else state

    @staticmethod
    def state_after(gang: GangRun, controller: int, label: str, update: int) -> str:
        """Returns the digest of what a controller held after an update."""
        if controller >= len(gang.runs):
            return "no such controller"
        return _state_after(gang.runs[controller].out, label, update)

    def record_uncommitted(self, case: str) -> None:
        """Records how many checkpoints lie there that nobody committed."""
        left = [name for name, is_there in self.hosts.written().items() if not is_there]
        self.work.record(
            Measurement(
                claim=RESTART,
                measure="rehearsed_uncommitted_left",
                case_name=case,
                value_count=len(left),
                unit="checkpoints",
                detail=", ".join(sorted(left)),
            )
        )

    def record_writers(self, case: str, gang: GangRun) -> None:
        """Records how many controllers say that they wrote each checkpoint."""
        writers: dict[int, set[int]] = {}
        for event in gang.events("checkpoint"):
            writers.setdefault(event["update"], set()).add(event["process"])
        for update, processes in sorted(writers.items()):
            self.work.record(
                Measurement(
                    claim=RESTART,
                    measure="rehearsed_checkpoint_writers",
                    case_name=f"{case}/update-{update:02d}",
                    value_count=len(processes),
                    unit="controllers",
                )
            )

    def _record_restored(
        self, case: str, count: int, gang: GangRun, restored: int
    ) -> None:
        found = {event["process"]: event["update"] for event in gang.events("restored")}
        for number in range(count):
            expected = f"update {restored}"
            measured = f"update {found[number]}" if number in found else "nothing"
            self.work.record(
                Comparison(
                    claim=RESTART,
                    measure="rehearsed_restored_update",
                    case_name=f"{case}/controller-{number}",
                    expected=expected,
                    measured=measured,
                    expected_from="the last checkpoint that was committed",
                    first_difference=""
                    if expected == measured
                    else f"expected {expected}, restored {measured}",
                )
            )


def _state_after(out: Path, label: str, update: int) -> str:
    file = out / "records" / "controller_updates.json"
    rows = json.loads(file.read_text()) if file.exists() else []
    for row in rows:
        if (row["label"], row["update"]) == (label, update):
            return str(row["state_sha256"])
    return NOTHING


def training(program: str, label: str = "", **options: Any) -> Training:
    """Returns what a training is asked beside what all of them are.

    Args:
        program: How updates are made.
        label: Its name; empty is that of the program.
        options: What it is asked besides.
    """
    name = label or program
    suffix = f"-{name.replace(' ', '-')}"
    return {"label": name, "program": program, "suffix": suffix, **options}
