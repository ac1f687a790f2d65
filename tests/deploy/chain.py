"""One qualification that dies at one stage after the other, until it is complete."""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from prefect.states import Cancelling

from tests.deploy.site import Site, processes
from tests.processes import PATIENCE, wait_until

TWO_MINUTES = 120.0
TINY = {"preset_name": "fixture", "manifest": None, "is_fresh": False}
ENGINE = "prefect.engine"
SMALL = {
    "train": {"updates": 30},
    "evaluate": {
        "batch_sizes": [1, 5, 7],
        "batch_size_documents": 16,
        "compiled_batch_sizes": [1, 5],
        "future_documents": 1,
        "future_positions": 3,
        "future_tokens": 15,
        "reference_documents": 3,
        "attention_documents": 2,
        "gradient_documents": 2,
        "initializations": 1,
        "initialization_updates": 2,
    },
    "cache": {"documents": 4},
    "export": {"heldout_documents": 4},
    "profile": {"processes": 1},
}
"""Settings of a qualification that computes little: nobody reads its values."""
LINKS = (
    ("tokenize_corpus", ENGINE, signal.SIGKILL, "CRASHED"),
    ("train_model", "model.programs", signal.SIGKILL, "FAILED"),
    ("resume_training", "", None, "CANCELLED"),
    ("export_endpoints", ENGINE, signal.SIGTERM, "CRASHED"),
)


class Chain:
    """One qualification that dies at one stage after the other, until it is done."""

    def __init__(self, site: Site, root: Path) -> None:
        self.site = site
        self.root = root
        self.states: list[str] = []
        self.left: list[list[int]] = []
        self.stages: dict[str, str] = {}
        self.may_lose_server = threading.Event()

    def run(self) -> None:
        """Makes all runs, one after another."""
        for number, (stage, command, sent, _) in enumerate(LINKS):
            marker = f"link-{number}"
            flow_run = self._reach(marker, stage)
            if sent is None:
                self.site.set_state(flow_run, Cancelling())
            else:
                self._kill(marker, command, sent)
            self._end(marker, flow_run)
        assert self.may_lose_server.wait(PATIENCE)
        flow_run = self._reach("last", "profile_runtime")
        for sent in (signal.SIGTERM, signal.SIGKILL):
            self.site.end_server(sent)
            time.sleep(3)
            self.site.start_server()
        self._end("last", flow_run)
        self.stages = self.site.task_states(flow_run)
        env = {"HOW": "behave", "HARNESS_ROOT": str(self.root.with_name("after"))}
        after = self.site.ask("tiny", "shared", "after", TINY, **env)
        self.states.append(self.site.wait_for_end(after).type.value)

    def _kill(self, marker: str, command: str, sent: signal.Signals) -> None:
        """Sends a signal to a process of a run; to the next, where one just ended."""

        def killed() -> bool:
            for process_id in processes(marker, command):
                with suppress(ProcessLookupError):
                    os.kill(process_id, sent)
                    return True
            return False

        wait_until(killed, f"{command} of {marker} is there to be killed")

    def _reach(self, marker: str, stage: str) -> UUID:
        """Starts a run and waits until a program of a stage is at work."""
        env = {"HARNESS_ROOT": str(self.root)}
        parameters = {"preset_name": "fixture", "settings": SMALL}
        flow_run = self.site.ask("default", "shared", marker, parameters, **env)
        wait_until(
            lambda: (
                self.site.task_states(flow_run).get(stage) == "Running"
                and processes(marker, "model.programs")
            ),
            f"{stage} of {marker} runs",
        )
        return flow_run

    def _end(self, marker: str, flow_run: UUID) -> None:
        self.states.append(self.site.wait_for_end(flow_run).type.value)
        deadline = time.monotonic() + TWO_MINUTES
        while processes(marker) and time.monotonic() < deadline:
            time.sleep(0.5)
        self.left.append(processes(marker))
