"""Gangs of real controllers on this machine, for tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model.config import to_dict
from model.folders import source_sha256
from model.presets import fixture
from tasks.gang import (
    Disturbance,
    GangRun,
    Patience,
    run_gang,
    seats,
)
from tasks.run_program import ProgramCall
from tests.token_maker import write_token_files

PROGRAM = "model.programs.train_controller"
PROJECT = Path(__file__).resolve().parent.parent.parent
CODE_SHA256 = source_sha256(PROJECT / "model")
# One device a controller; the rest of the suite asks for four.
ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}


class Gangs:
    """Starts gangs on the fixture corpus; each has a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = fixture()
        self.environment = dict(ENVIRONMENT)
        tokens, corpus = write_token_files(folder, self.config.model)
        self.asked = {
            "model": to_dict(self.config.model),
            "train": to_dict(self.config.train),
            "tokens": str(tokens),
            "corpus": str(corpus),
            "stop_after_update": 4,
        }

    def run(
        self,
        name: str,
        count: int,
        *trainings: Mapping[str, Any],
        changes: Mapping[int, Mapping[str, Any]] | None = None,
        program: str = PROGRAM,
        environment: Mapping[str, str] | None = None,
        patience: Patience | None = None,
        disturbance: Disturbance | None = None,
        absent: int | None = None,
    ) -> GangRun:
        """Runs one gang.

        Args:
            name: Name of its folder.
            count: Controllers.
            trainings: What each training is asked beside what all are.
            changes: What a controller is asked otherwise, by its number.
            program: What every controller runs.
            environment: Further variables.
            patience: How long the gang waits.
            disturbance: What is done to a controller.
            absent: A controller that is never started.
        """
        requests = [
            {**self.asked, **seat, "trainings": list(trainings)}
            | dict((changes or {}).get(seat["process"], {}))
            for seat in seats(count, "cpu", CODE_SHA256)
        ]
        folders = [self.folder / name / f"controller-{i}" for i in range(count)]
        for folder in folders:
            folder.mkdir(parents=True)
        calls = [
            ProgramCall(
                program=program,
                request={**request, "gang": name},
                folder=folder,
                label=name,
                module_root=PROJECT,
                environment={**self.environment, **(environment or {})},
                deadline_seconds=200,
            )
            for request, folder in zip(requests, folders, strict=True)
        ]
        if absent is not None:
            del calls[absent]
        return run_gang(calls, patience or Patience(), disturbance)
