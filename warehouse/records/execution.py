"""What ran: one row per child process of an execution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from warehouse.schema import null_when


@dataclass(frozen=True, kw_only=True)
class ProgramExecution:
    """One program that a stage started, with the process it really was."""

    TABLE: ClassVar[str] = "program_executions"

    program: str
    """Module that ran, such as "model.programs.train_model"."""
    label: str
    """Which of several starts of the program this was; empty when there is one."""
    process_id: int
    """Process id on its host, so that "another process" is more than a word."""
    host: str
    """Name of the machine the process ran on."""
    started_at: str
    """UTC time at which the process was started, ISO 8601 with nanoseconds."""
    duration_ns: int
    """Time from start to end of the process, as its parent saw it, in nanoseconds."""
    peak_memory_bytes: Annotated[
        int | None, null_when("the process was killed before it could report")
    ]
    """Largest resident memory of the process in bytes."""
    return_code: int
    """Exit status; negative for the signal that ended the process (-9 for SIGKILL)."""
