"""The drill of evidence store, workflow and target, whose faults lie with the tests.

They replace a file or a component of ours and not a function of the system, so they
need the tests' own tools. An installation without the tests has no such stage to run.
"""

from pathlib import Path

from tasks.program_environment import root_of
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.drills import DrilledRequirement, PlantedFault

PROGRAM = "tests.faults"


def folder_of_tests() -> Path:
    """Returns the folder from which the tests are imported, where there are any."""
    return root_of("tasks")


def is_there() -> bool:
    """Returns whether this installation has the faults."""
    return (folder_of_tests() / "tests" / "faults" / "__main__.py").is_file()


@stage(programs=(PROGRAM,), writes=(PlantedFault, DrilledRequirement))
def drill_store(work: Work, faults: list[str], rules_sha256: str) -> None:
    """Plants every fault of the store, the workflow and the target.

    Args:
        work: The working side of this execution.
        faults: Names of the faults; empty for all.
        rules_sha256: Digest of the contract and views, which some of them alter.
    """
    assert rules_sha256, "it is there for the key"
    work.run(PROGRAM, {"faults": faults}, module_root=folder_of_tests())
