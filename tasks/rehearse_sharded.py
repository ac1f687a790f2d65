"""A state in parts, rehearsed: committed by Orbax, restored by other controllers.

It belongs to the proof with as many controllers as one likes. One gang trains without
an interruption, then again and loses a controller before a commit; others go on from
the last commit with as many controllers, with fewer that get a notice, and with more.
As many continue bit by bit; other numbers agree within the limit of their sums.
"""

import importlib.util
import json
import shutil
import signal
from pathlib import Path

from model.refusal import ReasonCode
from tasks.gang import Disturbance, GangRun
from tasks.rehearsal import Rehearsal, training
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement, Refusal

CLAIM, PROGRAM = "5.15", "sharded"
INSTALL = "pip install 'text-harness[sharded]'"
SECONDS_BETWEEN_UPDATES = 1.0
UNWRITABLE = "s3://bucket/checkpoints"


def rehearse_sharded(work: Work, rehearsal: Rehearsal, controllers: int) -> None:
    """Trains with a state in parts, loses a controller, and restores all ways.

    Args:
        work: The working side of a stage.
        rehearsal: Has trained in one process already.
        controllers: Controllers of a whole gang, 2 or more.
    """
    if not has_orbax():
        work.record(
            Measurement(
                claim=CLAIM,
                measure="rehearsed_parts_undigested",
                case_name="same",
                unit="controllers",
                reason="orbax_absent",
                detail=INSTALL,
            )
        )
        return
    plan, folder = rehearsal.plan, work.scratch("checkpoints") / PROGRAM
    interrupted = training(
        PROGRAM,
        "interrupted in parts",
        checkpoints=str(folder),
        checkpoint_every_updates=plan.cadence,
        pause_before_commit_of=plan.uncommitted,
    )
    last = controllers - 1
    kill = _signal("paused", plan.uncommitted, last, signal.SIGKILL)
    trained = rehearsal.run(
        "trained in parts",
        controllers,
        [training(PROGRAM), interrupted],
        disturbance=kill,
    )
    rehearsal.gangs.append(_outs(trained) | {"trained": [PROGRAM]})
    _record_commit(work, "same", folder, plan.committed, controllers)
    _record_uncommitted(work, folder)
    _restart_all_ways(work, rehearsal, folder, controllers, trained)
    _refuse_a_place(work, rehearsal)


def has_orbax() -> bool:
    """Whether Orbax is installed."""
    return importlib.util.find_spec("orbax") is not None


def _restart_all_ways(
    work: Work,
    rehearsal: Rehearsal,
    folder: Path,
    controllers: int,
    trained: GangRun,
) -> None:
    plan, fewer = rehearsal.plan, controllers // 2
    copied = Path(shutil.copytree(folder, folder.with_name("sharded-smaller")))
    _restart(work, rehearsal, "same", controllers, folder, plan.committed, trained)
    noticed = plan.committed + 1
    leaving = _restart(
        work,
        rehearsal,
        "smaller",
        fewer,
        copied,
        plan.committed,
        disturbance=_signal("update", noticed, fewer - 1, signal.SIGTERM),
        is_preemptible=True,
        seconds_between_updates=SECONDS_BETWEEN_UPDATES,
        checkpoint_every_updates=plan.last,
    )
    saved = {event["update"] for event in leaving.events("preempted")}
    left = {event["process"] for event in leaving.events("preempted")}
    is_early = len(saved) == 1 and max(saved) < plan.last
    work.record(
        _compared(
            "rehearsed_notice",
            "smaller",
            f"saved by {fewer} before the last update, exit codes {[0] * fewer}",
            f"saved by {len(left)} {'before' if is_early else 'at'} the last update,"
            f" exit codes {[run.return_code for run in leaving.runs]}",
            "what was done to the gang",
        )
    )
    restored = saved.pop() if is_early else -1
    _record_commit(work, "smaller", copied, restored, fewer)
    _restart(work, rehearsal, "larger", controllers, copied, restored, trained)


def _restart(
    work: Work,
    rehearsal: Rehearsal,
    case: str,
    count: int,
    folder: Path,
    restored: int,
    trained: GangRun | None = None,
    *,
    disturbance: Disturbance | None = None,
    **options: object,
) -> GangRun:
    """Goes on from the last commit; compared later where the end was reached."""
    resumed = training(
        PROGRAM,
        f"resumed {case} in parts",
        checkpoints=str(folder),
        restore="latest",
        **{"checkpoint_every_updates": rehearsal.plan.cadence} | options,
    )
    gang = rehearsal.run(f"{case} in parts", count, [resumed], disturbance=disturbance)
    if trained is not None:
        of = {"label": PROGRAM, "out": str(trained.runs[0].out)}
        # The larger gang goes on from what a smaller one added up.
        resumptions = {
            resumed["label"]: {"case": case, "is_exact": case == "same", **of}
        }
        rehearsal.gangs.append(_outs(gang) | {"resumed": resumptions})
    found = {event["process"]: event["update"] for event in gang.events("restored")}
    for number in range(count):
        work.record(
            _compared(
                "rehearsed_restored_update",
                f"{case}/controller-{number}",
                f"update {restored}",
                f"update {found[number]}" if number in found else "nothing",
                "the last checkpoint that was committed",
            )
        )
    return gang


def _outs(gang: GangRun) -> dict[str, object]:
    return {"outs": [str(run.out) for run in gang.runs], "trained": [], "restarts": {}}


def _record_commit(
    work: Work, case: str, folder: Path, update: int, controllers: int
) -> None:
    """Records how many controllers are without a digest of their parts in a commit."""
    manifest = folder / f"update-{update:06d}" / "manifest.json"
    work.record(
        Measurement(
            claim=CLAIM,
            measure="rehearsed_parts_undigested",
            case_name=case,
            value_count=parts_undigested(manifest, controllers),
            unit="controllers",
            detail=f"update {update}",
        )
    )


def parts_undigested(manifest: Path, controllers: int) -> int:
    """Returns how many controllers have no digest of their own parts in a commit.

    Args:
        manifest: Of the checkpoint; all count where there is none.
        controllers: Controllers of the gang that committed it.
    """
    if not manifest.exists():
        return controllers
    parts = json.loads(manifest.read_text())["controllers"]["parts"]
    return controllers - len(set(parts))


def _record_uncommitted(work: Work, folder: Path) -> None:
    left = [
        each.name
        for each in folder.glob("update-*")
        if not (each / "COMMITTED").exists()
    ]
    work.record(
        Measurement(
            claim=CLAIM,
            measure="rehearsed_uncommitted_left",
            case_name="same",
            value_count=len(left),
            unit="checkpoints",
            detail=", ".join(sorted(left)),
        )
    )


def _refuse_a_place(work: Work, rehearsal: Rehearsal) -> None:
    """Asks for a commit where Orbax cannot write, which is refused before it tries."""
    asked = training(PROGRAM, "elsewhere", checkpoints=UNWRITABLE)
    gang = rehearsal.run("elsewhere", 1, [asked], is_answered=False)
    told = gang.runs[0].out / "refused.json"
    refused = json.loads(told.read_text()) if told.exists() else {}
    work.record(
        Refusal(
            claim=CLAIM,
            measure="rehearsed_place_refused",
            case_name="object_store",
            expected_reason=str(ReasonCode.SETTING_INVALID),
            received_reason=refused.get("code"),
            message=str(refused.get("message", "")),
        )
    )


def _signal(event: str, update: int, controller: int, number: int) -> Disturbance:
    return Disturbance(
        event=event,
        update=update,
        teller=controller,
        victim=controller,
        number=number,
    )


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
