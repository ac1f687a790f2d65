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
from model.limits import require
from tasks.gang import Disturbance, GangRun, Patience, run_until_done
from tasks.rehearsal import (
    PROGRAMS,
    RECORDS,
    Plan,
    Rehearsal,
    plan_for,
    training,
)
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.store import Execution

CLAIM = "5.13"
FAILED, LEFT = "failed as a whole", "left as a whole"
# Short enough for a proof; a target waits as long as its slowest update takes.
IMPATIENT = Patience(step_seconds=20.0)
INITIALIZATION_SECONDS = 10
SECONDS_BETWEEN_UPDATES = 1.0


@stage(programs=PROGRAMS, writes=(Measurement, Comparison, *RECORDS))
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
    require(
        2 <= controllers <= train.batch_documents,
        f"controllers is {controllers}",
        f"2 to {train.batch_documents}, the documents of a batch",
    )
    assert plan is not None
    rehearsal = Rehearsal(work, tokens, model, train, plan)
    rehearsal.train_alone()
    killed = rehearsal.train_and_lose_one(controllers)
    _record_end(work, "killed", killed, FAILED)
    _restart_all_ways(work, rehearsal, controllers)
    _fail_all_ways(work, rehearsal, controllers)
    rehearsal.compare()


def _restart_all_ways(work: Work, rehearsal: Rehearsal, controllers: int) -> None:
    """Goes on with as many, with fewer that get a notice, and then with more."""
    copied = rehearsal.checkpoints.with_name("smaller")
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
    _record_end(work, "terminated", leaving, LEFT)
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
    _record_end(work, "stopped", stopped, FAILED)
    hung = rehearsal.run(
        "hung",
        controllers,
        [training("split", "hung", hang_after_update=2)],
        patience=IMPATIENT,
        # Nothing is sent to it; the moment is what counts.
        disturbance=replace(_at_update(2, last, 0), event="hanging"),
    )
    _record_end(work, "hung", hung, FAILED)
    absent = rehearsal.run(
        "absent",
        controllers,
        [training("split", "absent")],
        absent=last,
        seat={"initialization_seconds": INITIALIZATION_SECONDS},
        is_answered=False,
    )
    _record_end(work, "absent", absent, FAILED)


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
    _record_end(work, "coordinator_killed", gangs[0], FAILED)
    expected = rehearsal.last_state()
    for number in range(controllers):
        measured = rehearsal.state_after(
            gangs[-1], number, supervised["label"], rehearsal.plan.last
        )
        work.record(
            _compared(
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


def _record_end(work: Work, case: str, gang: GangRun, expected: str) -> None:
    """Records how a gang ended after a failure or a notice, and how soon."""
    since = gang.disturbed_at_ns or gang.started_at_ns
    work.record(
        _compared(
            "rehearsed_end",
            case,
            expected,
            _ending(gang),
            "what was done to the gang",
        ),
        Measurement(
            claim=CLAIM,
            measure="rehearsed_end_seconds",
            case_name=case,
            value_real=(gang.ended_at_ns - since) / 1e9,
            unit="s",
            detail=gang.cause,
        ),
        Measurement(
            claim=CLAIM,
            measure="rehearsed_processes_left",
            case_name=case,
            value_count=gang.processes_left,
            unit="processes",
        ),
    )


def _ending(gang: GangRun) -> str:
    codes = [run.return_code for run in gang.runs]
    if gang.is_complete:
        left = {event["process"] for event in gang.events("preempted")}
        return LEFT if len(left) == len(codes) else "completed"
    return FAILED if all(code != 0 for code in codes) else f"ended with {codes}"


def _compared(
    measure: str, case: str, expected: str, measured: str, source: str
) -> Comparison:
    return Comparison(
        claim=CLAIM,
        measure=measure,
        case_name=case,
        expected=expected,
        measured=measured,
        expected_from=source,
        first_difference=""
        if expected == measured
        else f"expected {expected}, found {measured}",
    )
