"""A proof: a target rehearsed on CPUs with as many controllers as one likes.

Everything that the whole run shows with two controllers, then what takes longer: other
numbers of controllers go on from a commit, a notice is heeded, and each way to fail
ends the gang as a whole.
"""

import shutil
import signal
from dataclasses import replace
from pathlib import Path

from model.config import ModelConfig, TrainConfig
from model.limits import require, validate_controllers
from tasks.forked_programs import forking
from tasks.gang import Disturbance, GangRun, Patience, run_until_done
from tasks.gang_endings import FAILED, LEFT, compared, ending_rows
from tasks.program_environment import controller_environment
from tasks.rehearsal import (
    ALONE,
    PROGRAMS,
    RECORDS,
    Plan,
    Rehearsal,
    plan_for,
    training,
)
from tasks.rehearse_sharded import rehearse_sharded
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.store import Execution

# Short enough for a proof; a target waits as long as its slowest update takes.
IMPATIENT = Patience(step_seconds=20.0)
INITIALIZATION_SECONDS = 10
SPLIT_BY = (2, 4)
"""Numbers of processes whose bits have to be those of one, whatever was asked for."""
SECONDS_BETWEEN_UPDATES = 1.0


@stage(programs=PROGRAMS, writes=(Measurement, Comparison, Refusal, *RECORDS))
def rehearse_target(
    work: Work,
    tokens: Execution,
    model: ModelConfig,
    train: TrainConfig,
    controllers: int,
) -> None:
    """Trains, fails and goes on with several controllers, and compares every state.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        model: Shape of the model.
        train: Recipe and seeds.
        controllers: Controllers of a whole gang, 2 or more.
    """
    plan = plan_for(train)
    require(plan is not None, f"train.updates is {train.updates}", "at least 3")
    validate_controllers(controllers, train)
    assert plan is not None
    with forking(controller_environment("cpu")) as fork_server:
        rehearsal = Rehearsal(work, tokens, model, train, plan, fork_server=fork_server)
        for program in ALONE:
            rehearsal.train_alone(program)
        killed = rehearsal.train_and_lose_one(controllers)
        work.record(*ending_rows("killed", killed, FAILED, controllers - 1))
        for count in sorted({*SPLIT_BY} - {controllers}):
            if count <= train.batch_documents:
                rehearsal.train_split(count)
        _restart_all_ways(work, rehearsal, controllers)
        rehearse_sharded(work, rehearsal, controllers)
        _fail_all_ways(work, rehearsal, controllers)
        rehearsal.compare()


def _restart_all_ways(work: Work, rehearsal: Rehearsal, controllers: int) -> None:
    """Goes on with as many, with fewer that get a notice, and then with more."""
    copied = Path(rehearsal.checkpoints).with_name("smaller")
    shutil.copytree(rehearsal.checkpoints, copied)
    rehearsal.record_uncommitted("same")
    rehearsal.restart("same", controllers, rehearsal.checkpoints)

    fewer = controllers // 2
    noticed = rehearsal.plan.committed + 1
    leaving = rehearsal.restart(
        "smaller",
        fewer,
        copied,
        disturbance=_at_update(noticed, fewer - 1, signal.SIGTERM),
        is_preemptible=True,
        seconds_between_updates=SECONDS_BETWEEN_UPDATES,
        checkpoint_every_updates=rehearsal.plan.last,
    )
    work.record(*ending_rows("terminated", leaving, LEFT, fewer - 1))
    saved = _saved_update(leaving, rehearsal.plan)
    rehearsal.record_writers("preempted", leaving)
    rehearsal.restart("preempted", fewer, _copied(copied, "preempted"), saved)
    rehearsal.restart("larger", controllers, _copied(copied, "larger"), saved)


def _copied(folder: Path, name: str) -> Path:
    return Path(shutil.copytree(folder, folder.with_name(name)))


def _saved_update(gang: GangRun, plan: Plan) -> int:
    """Returns the update that controllers saved on their notice; -1 for none."""
    told = {event["update"] for event in gang.events("preempted")}
    is_early = len(told) == 1 and max(told) < plan.last
    return told.pop() if is_early else -1


def _fail_all_ways(work: Work, rehearsal: Rehearsal, controllers: int) -> None:
    """Has the coordinator killed, and others stopped, hung and absent."""
    _kill_the_coordinator(work, rehearsal, controllers)
    last = controllers - 1
    stopped = rehearsal.run(
        "stopped",
        controllers,
        [training("split", "stopped", seconds_between_updates=0.5)],
        patience=IMPATIENT,
        disturbance=_at_update(2, last, signal.SIGSTOP),
    )
    work.record(*ending_rows("stopped", stopped, FAILED, last))
    hung = rehearsal.run(
        "hung",
        controllers,
        [training("split", "hung", hang_after_update=2)],
        patience=IMPATIENT,
        # Nothing is sent to it; the moment is what counts.
        disturbance=replace(_at_update(2, last, 0), event="hanging"),
    )
    work.record(*ending_rows("hung", hung, FAILED, last))
    absent = rehearsal.run(
        "absent",
        controllers,
        [training("split", "absent")],
        absent=last,
        seat={"initialization_seconds": INITIALIZATION_SECONDS},
        is_answered=False,
    )
    work.record(*ending_rows("absent", absent, FAILED, None))


def _kill_the_coordinator(work: Work, rehearsal: Rehearsal, controllers: int) -> None:
    """Kills controller 0 in the middle; a new gang finishes what it began."""
    folder = work.scratch("checkpoints") / "coordinator"
    supervised = training(
        "split",
        "resumed coordinator_killed",
        checkpoints=str(folder),
        checkpoint_every_updates=rehearsal.plan.cadence,
        restore="latest",
        seconds_between_updates=0.1,
    )
    kill = _at_update(rehearsal.plan.committed + 1, 0, signal.SIGKILL)

    def start(attempt: int) -> GangRun:
        name = f"coordinator_killed {attempt}"
        disturbance = kill if attempt == 0 else None
        return rehearsal.run(name, controllers, [supervised], disturbance=disturbance)

    gangs = run_until_done(start, restarts=1)
    work.record(*ending_rows("coordinator_killed", gangs[0], FAILED, 0))
    expected = rehearsal.last_state()
    for number in range(controllers):
        measured = rehearsal.state_after(
            gangs[-1], number, supervised["label"], rehearsal.plan.last
        )
        work.record(
            compared(
                "rehearsed_continuation",
                f"coordinator_killed/controller-{number}",
                expected,
                measured,
                "the split program in one process",
            )
        )


def _at_update(update: int, controller: int, number: int) -> Disturbance:
    """Returns a signal to a controller that has told of an update."""
    return Disturbance(
        event="update",
        update=update,
        teller=controller,
        victim=controller,
        number=number,
    )
