"""Which stages a drill runs, and that its key holds what is loaded by name."""

from pathlib import Path

from model.faults import every_fault
from tasks.drill_system import BY_NAME, _needed, drill_system
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
