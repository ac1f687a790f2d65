"""The numerics fingerprint that a flow starts with.

It is reported by a program, because only a process that holds JAX can say what JAX
would compute with, and the orchestrator never is one.
"""

import functools

from tasks.errors import ProgramFailed
from tasks.run_program import ProgramCall, run_program
from tasks.temporary_folders import temporary_folder

PROGRAM = "model.programs.report_runtime"
DEADLINE_SECONDS = 300.0


@functools.cache
def runtime_fingerprint() -> dict[str, str]:
    """Returns what numbers depend on, name to value; measured once a process.

    Raises:
        StageError: The program did not report it.
    """
    with temporary_folder("runtime") as folder:
        run = run_program(
            ProgramCall(
                program=PROGRAM,
                request={},
                folder=folder,
                deadline_seconds=DEADLINE_SECONDS,
            )
        )
    if not run.runtime:
        raise ProgramFailed(f"{PROGRAM} did not report the runtime.")
    return {name: str(value) for name, value in sorted(run.runtime.items())}
