"""Asks this machine whether it is a target, without a run and without a store."""

import dataclasses
import json
from typing import Any

from flows.reading import Row
from model.config import TargetConfig, to_dict
from tasks.accelerators import Accelerator
from tasks.errors import ProgramRefused
from tasks.run_program import ProgramCall, run_program
from tasks.target_challenge import Challenge
from tasks.target_platforms import STARTS_AS
from tasks.temporary_folders import temporary_folder

PROGRAM = "model.programs.probe_target"
DEADLINE_SECONDS = 300.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probed:
    """What a probe found on this machine."""

    code: str
    """Reason code of the refusal; empty where every sign is there."""
    message: str
    """Why it is no target; empty where it is one."""
    signs: list[Row]
    """Every sign, with what was wanted and what was found."""
    answer: Row
    """What the machine answered to its launcher."""
    devices: list[Row]
    """The devices that JAX listed."""


def probe_here(accelerator: Accelerator, challenge: Challenge) -> Probed:
    """Returns what a probe finds on this machine.

    Args:
        accelerator: What is expected.
        challenge: What the program has to answer.

    Raises:
        StageError: The program could not be run.
    """
    target = TargetConfig(platform=accelerator.platform, accelerator=accelerator.name)
    with temporary_folder("probe") as folder:
        call = ProgramCall(
            program=PROGRAM,
            request={"target": to_dict(target), **dataclasses.asdict(challenge)},
            folder=folder,
            environment={"JAX_PLATFORMS": STARTS_AS[accelerator.platform]},
            deadline_seconds=DEADLINE_SECONDS,
        )
        code, message = "", ""
        try:
            out = run_program(call).out
        except ProgramRefused as refused:
            out, code, message = refused.run.out, refused.code, str(refused)

        def rows(table: str) -> list[dict[str, Any]]:
            file = out / "records" / f"{table}.json"
            return list(json.loads(file.read_bytes())) if file.exists() else []

        answers = rows("target_answers")
        return Probed(
            code=code,
            message=message,
            signs=rows("target_signs"),
            answer=answers[0] if answers else {},
            devices=rows("target_devices"),
        )
