"""Which stages a drill runs in which order, and what its key holds by name."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from model.faults import TIMES, every_fault
from model.programs import train_initializations
from tasks.drill_system import (
    BUILT_IN,
    BY_NAME,
    DrillFailed,
    _longest_first,
    _needed,
    _try,
    drill_system,
)
from tasks.source_closure import source_closure
from tasks.trial import made_by
from warehouse.contract import read_contract


def test_a_stage_is_run_with_those_whose_results_it_takes() -> None:
    names = [stage.definition.name for stage in _needed([["export_endpoints"]])]
    assert names == [
        *("tokenize_corpus", "train_model"),
        *("quantize_cache", "export_endpoints"),
    ]
    alone = [stage.definition.name for stage in _needed([["tokenize_corpus"]])]
    assert alone == ["tokenize_corpus"]


def test_every_module_of_faults_is_in_the_key(project: Path) -> None:
    modules = {
        f"model.faults.{path.stem}"
        for path in (project / "model" / "faults").glob("*.py")
        if path.stem != "__init__"
    }
    assert modules
    assert modules <= set(drill_system.definition.programs)


def test_every_fault_runs_stages_that_can_be_tried_and_names_a_claim() -> None:
    claims = {claim.id for claim in read_contract()}
    for fault in every_fault():
        assert set(fault.stages) <= set(BY_NAME)
        assert fault.stages
        assert fault.claim in claims


class TrialOfNames:
    """A trial that runs nothing, and keeps who was asked for what."""

    def __init__(self, failing: str = "") -> None:
        self.runs: list[tuple[str, list[str], set[str], object]] = []
        self.failing = failing
        self._lock = threading.Lock()

    def run(self, name, stages, *, system=None, given=None, left_out=()):
        names = [stage.definition.name for stage in stages]
        with self._lock:
            self.runs.append((name, names, set(given or ()), left_out))
        failure = f"{self.failing}: it broke" if self.failing in names else ""
        made = {**(given or {}), **{made_by(stage): None for stage in stages}}
        return SimpleNamespace(executions=made, failure=failure, run_id=name)


RUNS = {
    "of-words": {"stages": ["tokenize_corpus"], "left_out": []},
    "of-restores": {"stages": ["resume_training"], "left_out": []},
    "of-losses": {"stages": ["evaluate_heldout"], "left_out": ["a.program"]},
    "of-times": {"stages": ["profile_runtime"], "left_out": []},
}


def test_what_several_take_is_made_alone_and_first_and_what_is_timed_alone() -> None:
    """Beside others a time would be theirs too; no core waits for what few take."""
    trial = TrialOfNames()
    tried = _try(trial, RUNS)
    assert list(tried) == list(RUNS)
    (name, alone, *_), *others = trial.runs
    assert name == BUILT_IN
    assert alone == ["tokenize_corpus", "train_model"]
    timed = next(
        place for place, (name, names, *_) in enumerate(others)
        if (name, names) == (BUILT_IN, ["profile_runtime"])
    )  # fmt: skip
    before, after = others[:timed], others[timed + 1 :]
    assert sorted(tuple(names) for name, names, *_ in before if name == BUILT_IN) == [
        ("evaluate_heldout",),
        ("interrupt_training", "quantize_cache", "export_endpoints"),
    ]
    assert {name for name, *_ in before} == {BUILT_IN, "of-words", "of-losses"}
    assert [names for name, names, *_ in after if name == BUILT_IN] == [
        ["resume_training"]
    ]
    assert {name for name, *_ in after} == {BUILT_IN, "of-restores", "of-times"}
    left_out = {name: left_out for name, *_, left_out in trial.runs}
    assert left_out["of-losses"] == ["a.program"]
    assert all(given for name, _, given, _ in others)


def test_the_longest_faults_come_first() -> None:
    assert _longest_first(RUNS) == ["of-times", "of-losses", "of-restores", "of-words"]


@pytest.mark.parametrize("failing", ["train_model", "evaluate_heldout"])
def test_no_fault_is_judged_beside_a_system_that_stopped(failing: str) -> None:
    with pytest.raises(DrillFailed, match=f"stopped: {failing}: it broke"):
        _try(TrialOfNames(failing), RUNS)


def test_first_seeds_are_left_out_of_every_fault_but_their_own() -> None:
    """They are counted, and a fault of what each of them computes changes no count."""
    program = train_initializations.__name__
    run_on = [
        fault.name
        for fault in every_fault()
        if "evaluate_heldout" in fault.stages and program not in fault.left_out
    ]
    assert run_on == ["failed-seed-hidden"]
    assert all(set(fault.left_out) <= {program, TIMES} for fault in every_fault())


def test_nothing_that_times_imports_has_a_function_that_it_is_left_out_for() -> None:
    """What it does without the function it does with any other in its place."""
    imported = {name for name, _ in source_closure(TIMES, "model.runtime").modules}
    assert "model.checks.timing" in imported
    left_out = [fault for fault in every_fault() if TIMES in fault.left_out]
    assert len(left_out) == 5
    for fault in left_out:
        assert fault.replaces.rpartition(".")[0] not in imported, fault.name
