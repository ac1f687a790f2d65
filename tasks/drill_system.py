"""The drill of the system: every planted fault, held against the whole contract.

A fault runs through the stages whose checks can see it, in a store of its own, beside
the same system without a fault. What the requirements of the contract read there comes
from the views that judge every run; nothing is decided here.
"""

import inspect
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from model.config import RunConfig
from tasks import progress
from tasks.certify_crash import certify_crash
from tasks.certify_recovery import certify_recovery
from tasks.corpus_files import corpus_files
from tasks.drill_recovery import drill_recovery
from tasks.errors import StageError
from tasks.evaluate_heldout import evaluate_heldout
from tasks.export_endpoints import export_endpoints
from tasks.forked_programs import forking
from tasks.interrupt_training import interrupt_training
from tasks.profile_runtime import profile_runtime
from tasks.program_environment import root_of
from tasks.quantize_cache import quantize_cache
from tasks.resume_training import resume_training
from tasks.stage import StageTask, stage
from tasks.tokenize_corpus import tokenize_corpus
from tasks.train_model import train_model
from tasks.trial import Trial, Tried, made_by
from tasks.work import Work
from warehouse.records.drills import DrilledRequirement, PlantedFault
from warehouse.store import Execution

LIST = "model.programs.list_faults"
BUILT_IN = "built-in"
"""Name of the trial of the system without a fault."""
SHOWN = 400
"""Characters that are kept of the sentence with which a stage stopped."""
SIDE_BY_SIDE = 3
"""Trials at a time; of two, each waits often enough to leave a core idle."""

Runs = Mapping[str, Mapping[str, Sequence[str]]]
"""By fault: its `stages`, and the programs of them that are `left_out`."""

STAGES: tuple[StageTask, ...] = (
    tokenize_corpus,
    train_model,
    interrupt_training,
    resume_training,
    evaluate_heldout,
    quantize_cache,
    export_endpoints,
    profile_runtime,
    certify_recovery,
    drill_recovery,
    certify_crash,
)
"""The stages that can be tried, in the order of the DAG."""
BY_NAME = {stage.definition.name: stage for stage in STAGES}


class DrillFailed(StageError):
    """The system without a fault could not be measured, so no fault can be."""


def _loaded_by_name() -> tuple[str, ...]:
    """Returns the modules of faults, which no syntax tree names."""
    folder = root_of("model") / "model" / "faults"
    return tuple(
        f"model.faults.{path.stem}" for path in sorted(folder.glob("[!_]*.py"))
    )


PROGRAMS = (
    LIST,
    *dict.fromkeys(p for each in STAGES for p in each.definition.programs),
)


@stage(
    programs=(*PROGRAMS, "model.faults", "model.replaced", *_loaded_by_name()),
    writes=(PlantedFault, DrilledRequirement),
    not_in_key=("manifest_path",),
)
def drill_system(
    work: Work,
    manifest_path: str,
    manifest_sha256: str,
    tried: RunConfig,
    faults: list[str],
    rules_sha256: str,
) -> None:
    """Tries the system without a fault and with each, and reads the requirements.

    Args:
        work: The working side of this execution.
        manifest_path: Where the manifest lies; not part of the stage's key.
        manifest_sha256: Digest of the manifest and of every file it lists.
        tried: Configuration of the trials.
        faults: Names of the faults; empty for all.
        rules_sha256: Digest of the contract and views, which read the requirements.
    """
    assert manifest_sha256 and rules_sha256, "they are there for the key"
    listed = work.run(LIST, {"faults": faults})
    runs: Runs = json.loads((listed.out / "runs.json").read_text())

    root = work.scratch("trials")
    corpus = corpus_files(manifest_path)
    # What a smaller system breaks without a fault is no fault's doing, and is told so.
    with forking() as fork_server:
        trial = Trial(
            root,
            tried,
            corpus,
            work.runtime,
            is_declared=True,
            is_heard=False,
            fork_server=fork_server,
        )
        outcomes = _try(trial, runs)

    # DuckDB is loaded where it is asked alone.
    from warehouse.drills import read_requirements

    # In the order of the DAG, so that the first row of a fault is who noticed first.
    rows = read_requirements(root)
    work.record(*sorted(rows, key=lambda row: list(BY_NAME).index(row.drilled_stage)))
    work.record(*(_ended(*each) for each in outcomes.items() if each[1].failure))


def _try(trial: Trial, runs: Runs) -> dict[str, Tried]:
    """Returns what came of each fault, on what the correct system made before it.

    What several stages take, the correct system makes alone and at first. Faults that
    need nothing else are tried beside the rest of what is taken; then what is timed is
    alone again, and the faults that are left follow.
    """
    needed = _needed(run["stages"] for run in runs.values())
    takers = Counter(name for each in needed for name in _takes([each]))
    timed = [each for each in needed if each.definition.measures_time]
    taken = [each for each in needed if takers[made_by(each)] and each not in timed]
    first = [each for each in taken if takers[made_by(each)] > 1]
    chain = [each for each in taken if each not in first]
    others = [each for each in needed if each not in (*taken, *timed)]

    made = dict(_measure_correct(trial, first, {})) if first else {}
    asked = {fault: _asked(runs[fault]) for fault in _longest_first(runs)}
    early = [fault for fault, stages in asked.items() if _takes(stages) <= made.keys()]
    before = [each for each in others if _takes([each]) <= made.keys()]
    tell = _counted(len(runs))
    correct = [chain] * bool(chain) + [[each] for each in reversed(before)]
    tried = _side_by_side(trial, correct, runs, early, made, tell)
    if timed:
        made |= _measure_correct(trial, timed, made)
    correct = [[each] for each in reversed(others) if each not in before]
    late = [fault for fault in asked if fault not in early]
    tried |= _side_by_side(trial, correct, runs, late, made, tell)
    return {fault: tried[fault] for fault in runs}


def _side_by_side(
    trial: Trial,
    correct: Sequence[Sequence[StageTask]],
    runs: Runs,
    faults: Sequence[str],
    made: dict[str, Execution],
    tell: Callable[[str], None],
) -> dict[str, Tried]:
    """Returns what came of faults, and adds to `made` what the correct system made.

    Args:
        trial: Where they are tried.
        correct: Groups of stages that the correct system runs beside them.
        runs: What is run on each fault.
        faults: The faults, in the order in which they begin.
        made: What the correct system has made before.
        tell: Called with each fault that is done.
    """
    given = dict(made)

    def run(fault: str) -> Tried:
        tried = _try_fault(trial, fault, runs[fault], given)
        tell(fault)
        return tried

    with ThreadPoolExecutor(max_workers=SIDE_BY_SIDE) as pool:
        beside = [
            pool.submit(_measure_correct, trial, stages, given) for stages in correct
        ]
        tried = {fault: pool.submit(run, fault) for fault in faults}
        try:
            for each in beside:
                made |= each.result()
            return {fault: each.result() for fault, each in tried.items()}
        finally:
            for waiting in tried.values():
                waiting.cancel()


def _counted(faults: int) -> Callable[[str], None]:
    """Returns what tells of each fault that is done, and how many are."""
    done = itertools.count(1)
    return lambda fault: _tell(f"fault {next(done)} of {faults}: {fault}")


def _measure_correct(
    trial: Trial, stages: Sequence[StageTask], given: Mapping[str, Execution]
) -> Mapping[str, Execution]:
    """Returns what the system without a fault made, with what was given to it."""
    correct = trial.run(BUILT_IN, stages, given=given)
    if correct.failure:
        raise DrillFailed(f"The system without a fault stopped: {correct.failure}")
    names = ", ".join(each.definition.name for each in stages)
    _tell(f"the system without a fault is measured: {names}")
    return correct.executions


def _try_fault(
    trial: Trial,
    fault: str,
    run: Mapping[str, Sequence[str]],
    made: Mapping[str, Execution],
) -> Tried:
    asked = _asked(run)
    own = {made_by(each) for each in asked}
    given = {name: execution for name, execution in made.items() if name not in own}
    system = {"fault": fault}
    return trial.run(fault, asked, system=system, given=given, left_out=run["left_out"])


def _asked(run: Mapping[str, Sequence[str]]) -> list[StageTask]:
    """Returns the stages that are run on a fault, in the order of the DAG."""
    return [BY_NAME[name] for name in BY_NAME if name in run["stages"]]


def _takes(stages: Iterable[StageTask]) -> set[str]:
    """Returns what stages take of others: names that bodies have for executions."""
    every = list(stages)
    named = {name for each in every for name in inspect.signature(each.body).parameters}
    return (named & {made_by(each) for each in STAGES}) - set(map(made_by, every))


def _longest_first(runs: Runs) -> list[str]:
    """Returns the faults, those first whose last stage is the latest of the DAG."""
    place = list(BY_NAME).index
    return sorted(runs, key=lambda fault: -max(map(place, runs[fault]["stages"])))


def _needed(named: Iterable[Sequence[str]]) -> list[StageTask]:
    """Returns the stages that some fault runs, with those whose results they take."""
    wanted = {name for names in named for name in names}
    for later in reversed(STAGES):
        if later.definition.name in wanted:
            taken = inspect.signature(later.body).parameters
            wanted |= {name for name in BY_NAME if made_by(BY_NAME[name]) in taken}
    return [BY_NAME[name] for name in BY_NAME if name in wanted]


def _ended(fault: str, tried: Tried) -> DrilledRequirement:
    stage, _, sentence = tried.failure.partition(": ")
    return DrilledRequirement(
        fault=fault,
        drilled_stage=stage,
        requirement_id=0,
        claim="",
        measure="",
        relation="",
        unit="",
        limit_value=None,
        rows_met=0,
        rows_unmet=0,
        rows_missing=0,
        worst_case="",
        worst_value=None,
        worst_margin=None,
        expected="",
        measured="",
        failure=" ".join(sentence.split())[:SHOWN],
    )


def _tell(message: str) -> None:
    progress.tell("drill_system", event="drill", message=message)
