"""What all hosts of a work pool do together, as a rehearsal on CPUs or on a target.

The same order everywhere: each controller is probed, all agree, each runs the endpoints
of the release, they train, and one is lost before a commit; a new gang trains again,
goes on from the last commit, traces, and only then takes times. One that ends otherwise
than it was meant to shows nothing, and its cause is what the stage fails with. What
came of it is a result like that of one host, which the same program judges.
"""

import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.config import ModelConfig, ProfileConfig, TrainConfig, to_dict
from model.limits import require
from model.target_result import GANGS, SLICE_TRAININGS, TRAINED_UPDATES
from tasks.gang import GangRun, Patience
from tasks.gang_endings import require_as_meant
from tasks.rehearsal import Rehearsal, plan_for, training
from tasks.remote_gang import RemoteHosts
from tasks.slice_protocol import Protocol
from tasks.slice_result import SliceResult
from tasks.storage import Storage
from tasks.target_platforms import STARTS_AS
from tasks.work import Work
from warehouse.store import Execution

CONTROLLER = "model.programs.qualify_controller"
STEPS: Mapping[str, Sequence[str]] = {
    "trained": ("agreement", "endpoints", "train"),
    "restarted": ("agreement", "train", "trace", "timings"),
}
"""What each controller of a gang does after its probe, in this order."""
NAMES = {
    "tokens": "tokens.npz",
    "corpus": "corpus.json",
    "parameters": "parameters.npz",
}
"""What a result calls the files that controllers read."""
PATIENCE = Patience(step_seconds=240.0)
"""A step on a target may compile for minutes before it tells of anything."""
DEADLINE_SECONDS = 1800.0
"""A gang compiles everything that a target has to run."""


@dataclass(frozen=True, kw_only=True)
class Occasion:
    """One visit to some hosts: what is asked of whom, and under which nonce."""

    platform: str
    """JAX platform that every device must have; on cpu it is a rehearsal."""
    accelerator: str
    """What the hosts are together, as it is sold."""
    preset: str
    """Name of the preset that is trained."""
    queues: Sequence[str]
    """The queue of each host in the work pool."""
    storage: str
    """URL that all hosts and this process open."""
    nonce: str
    """What the launcher drew for it."""


@contextmanager
def hosts_together(
    work: Work,
    inputs: Mapping[str, str],
    tokens: Execution,
    settings: tuple[ModelConfig, TrainConfig, ProfileConfig],
    occasion: Occasion,
) -> Iterator["HostsTogether"]:
    """Yields the hosts of an occasion, and removes what they left in their storage.

    Where the block fails, inputs and results stay there for whoever looks into it.

    Args:
        work: The working side of a stage.
        inputs: Files that controllers read, field of their request to path.
        tokens: The tokenized corpus.
        settings: Shape of the model, recipe, and what is traced and timed.
        occasion: What is asked of whom.

    Raises:
        Refused: The recipe is too short, or has too few documents for the hosts.
        StageError: A worker, the deployment or the storage is missing.
    """
    model, train, profile = settings
    plan = plan_for(train)
    require(
        plan is not None and plan.last == TRAINED_UPDATES,
        f"train.updates is {train.updates}",
        f"at least {TRAINED_UPDATES}",
    )
    require(
        2 <= len(occasion.queues) <= train.batch_documents,
        f"the number of queues is {len(occasion.queues)}",
        f"2 to {train.batch_documents}, the documents of a batch",
    )
    assert plan is not None
    place = Storage(occasion.storage).within(secrets.token_hex(16))
    hosts = RemoteHosts(occasion.queues, place, inputs, occasion.platform)
    protocol = _protocol(occasion, profile)
    rehearsal = Rehearsal(work, tokens, model, train, plan, hosts, protocol)
    yield HostsTogether(rehearsal, occasion, inputs)
    place.remove()


def _protocol(occasion: Occasion, profile: ProfileConfig) -> Protocol:
    asked = {
        "target": {
            "platform": occasion.platform,
            "accelerator": occasion.accelerator,
        },
        "is_rehearsal": occasion.platform not in STARTS_AS,
        "profile": to_dict(profile),
        "lowered_for": STARTS_AS.get(occasion.platform, occasion.platform),
    }
    return Protocol(
        program=CONTROLLER,
        asked=asked,
        steps=STEPS,
        nonce=occasion.nonce,
        patience=PATIENCE,
        deadline_seconds=DEADLINE_SECONDS,
    )


class HostsTogether:
    """Gangs of hosts, and the result that they leave."""

    def __init__(
        self, rehearsal: Rehearsal, occasion: Occasion, inputs: Mapping[str, str]
    ) -> None:
        """Starts nothing yet."""
        self.rehearsal = rehearsal
        self.occasion = occasion
        self.inputs = inputs
        self.gangs: dict[str, GangRun] = {}
        self.written: dict[str, bool] = {}

    def lose_one(self) -> GangRun:
        """Trains on all hosts and has the last one lost before a commit.

        Raises:
            GangFailed: The gang failed before.
        """
        killed = self.rehearsal.train_and_lose_one(len(self.occasion.queues))
        require_as_meant(killed.disturbed_at_ns is not None, killed)
        self.written = self.rehearsal.hosts.written()
        self.rehearsal.record_uncommitted("same")
        self.gangs[GANGS[0]] = killed
        return killed

    def go_on(self) -> None:
        """Trains once more from the start, then from the last commit to the end.

        Raises:
            GangFailed: The gang did not complete.
        """
        restarted = self.rehearsal.restart(
            "same",
            len(self.occasion.queues),
            self.rehearsal.checkpoints,
            gang_name=GANGS[1],
            before=[training(name, f"repeated {name}") for name in SLICE_TRAININGS],
        )
        require_as_meant(restarted.is_complete, restarted)
        self.gangs[GANGS[1]] = restarted

    def keep_result(self, work: Work) -> None:
        """Keeps the files of all controllers as one artifact, whole and sealed."""
        last = f"update-{TRAINED_UPDATES:06d}/manifest.json"
        result = SliceResult(
            gangs=self.gangs,
            described=self._described(),
            files={
                **{NAMES[field]: Path(path) for field, path in self.inputs.items()},
                "checkpoint.json": self.rehearsal.hosts.read(last),
            },
        )
        folder = work.scratch("result")
        result.write(folder)
        packed = shutil.make_archive(str(work.scratch("packed") / "r"), "tar", folder)
        work.keep(Path(packed), RESULT)

    def _described(self) -> dict[str, Any]:
        occasion, asked = self.occasion, self.rehearsal.asked
        return {
            "platform": occasion.platform,
            "accelerator": occasion.accelerator,
            "is_synthetic": False,
            "is_rehearsal": occasion.platform not in STARTS_AS,
            "nonce": occasion.nonce,
            "code_sha256_demanded": self.rehearsal.code_sha256,
            "code_sha256": self.rehearsal.code_sha256,
            "preset": occasion.preset,
            "model": asked["model"],
            "train": asked["train"],
            "is_release_given": "parameters" in self.inputs,
            "written": self.written,
        }


RESULT = "target_result.tar"
"""Artifact with the result of a slice."""
