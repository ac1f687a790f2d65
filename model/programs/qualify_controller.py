"""One controller of a slice: probed, agreed, compared, trained, traced, then timed.

The program of every host of a slice, and of a rehearsal on hosts. It makes its steps
in the order in which they may be believed, all controllers the same ones at once, and
stops at the first that fails: nothing is trained on a host that lacks a sign. Nothing
is judged here beyond that; what comes out is held against the reference at home.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from model.config import ModelConfig, ProfileConfig, TrainConfig, from_dict
from model.controllers import (
    Seat,
    initialise,
    read_seat,
    require_place,
    running_code_sha256,
)
from model.corpus import load_corpus
from model.parameters import initial_parameters, load_parameters, save_parameters
from model.programs import entry
from model.programs.probe_target import require_code, require_signs
from model.programs.run_endpoints import LOGITS
from model.programs.run_target import PLACEMENT, Workload, timed, trace
from model.programs.train_controller import Controller, leaving_together, tell_answer
from model.refusal import ReasonCode, Refused
from model.shared_checkpoint import gathered_digests
from model.target_endpoints import endpoint_logits, loaded_programs
from model.target_observation import observe
from model.target_result import OBSERVED
from model.target_signs import PLATFORMS, signs_of, target_platform
from model.workload_trace import TRACE

AGREED = "agreed.json"
TIMINGS = "timings.json"
PARAMETERS = "parameters.npz"
REHEARSED_AS = "gpu"
"""A CPU is no target: a rehearsal asks it for the signs of one, and keeps them all."""


def main(request: dict[str, Any], out: Path) -> None:
    """Makes the steps that are asked for, and leaves what each found as artifacts.

    Args:
        request: What `model.programs.train_controller` takes, and `target` (platform
            and accelerator), `is_rehearsal`, `steps` (names of methods of `Slice`),
            `profile` (settings), `lowered_for`, and optionally `parameters` (path).
        out: Result folder.

    Raises:
        Refused: This controller is alone and refuses; several leave at once instead.
    """
    seat = read_seat(request)
    with leaving_together(seat, out):
        # before any device is asked for: later, every host would be alone in silence
        initialise(seat)
        probe(request, seat, out)
        require_place(seat)
        tell_answer(seat, out)
        own = Slice(request, seat, out)
        for step in request["steps"]:
            getattr(own, step)()
            own.tell(step)


def probe(request: dict[str, Any], seat: Seat, out: Path) -> None:
    """Asks this host for every sign of the target, and keeps what it answers.

    Raises:
        Refused: Other code, another platform, or a sign is missing; a rehearsal goes on
            where signs are.
    """
    asked, is_rehearsal = request["target"], request["is_rehearsal"]
    platform = target_platform(REHEARSED_AS if is_rehearsal else asked["platform"])
    observed = observe(platform) | {
        "platform": platform.name,
        "accelerator": asked["accelerator"],
        "nonce": seat.nonce,
        "code_sha256_demanded": seat.code_sha256,
        "code_sha256": running_code_sha256(),
    }
    entry.artifact(out, OBSERVED).write_text(json.dumps(observed), "utf-8")
    require_code(seat.code_sha256, observed["code_sha256"])
    if not is_rehearsal:
        require_signs(observed, signs_of(observed, PLATFORMS[platform.name]))


class Slice:
    """The steps of one controller after its probe, by their names."""

    def __init__(self, request: dict[str, Any], seat: Seat, out: Path) -> None:
        """Reads what is asked; computes nothing yet."""
        self.request = request
        self.seat = seat
        self.out = out
        self.model = from_dict(ModelConfig, request["model"])
        self.train_settings = from_dict(TrainConfig, request["train"])
        self.profile = from_dict(ProfileConfig, request["profile"])

    def tell(self, step: str) -> None:
        """Says that a step is done, which is a sign of life too."""
        process = self.seat.process
        message = f"controller {process}: {step}"
        entry.report(event="step", step=step, process=process, message=message)

    def agreement(self) -> None:
        """Has all controllers say what they are about to train; it must be the same.

        Raises:
            Refused: `controllers_apart`.
        """
        about = {
            "model": self.request["model"],
            "train": self.request["train"],
            "tokens": _sha256(Path(self.request["tokens"])),
            "corpus": _sha256(Path(self.request["corpus"])),
            "parameters": _sha256(self.parameters_file),
        }
        digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
        found = gathered_digests(digest)
        apart = [number for number, each in enumerate(found) if each != found[0]]
        told = {"about": about, "digests": found}
        entry.artifact(self.out, AGREED).write_text(json.dumps(told), "utf-8")
        if apart:
            raise Refused(
                ReasonCode.CONTROLLERS_APART,
                f"Controllers {apart} have another configuration or other data than"
                " controller 0; bring the same to all of them.",
                [f"controllers.{number}" for number in apart],
            )

    def endpoints(self) -> None:
        """Runs every endpoint of the release on a device of this controller."""
        logits = endpoint_logits(
            self.programs, self.parameters, self.corpus.tokens["heldout"], self.model
        )
        np.savez(entry.artifact(self.out, LOGITS), allow_pickle=False, **logits)

    def train(self) -> None:
        """Makes the trainings that are asked for, all controllers together."""
        for training in self.request["trainings"]:
            Controller(self.seat, self.request | training, self.out).run()

    def trace(self) -> None:
        """Counts regions and events on the lanes of the devices of this controller."""
        self._keep(PLACEMENT, self.workload.placement())
        kept = entry.artifact(self.out, TRACE).parent
        self._keep(TRACE, trace(self.workload, kept, self.profile.regions))

    def timings(self) -> None:
        """Takes times, last: nothing that went wrong before is hidden by a number."""
        self._keep(TIMINGS, timed(self.workload, self.profile.warm_samples))

    @cached_property
    def corpus(self) -> Any:
        """The tokens of this controller."""
        tokens, described = self.request["tokens"], self.request["corpus"]
        return load_corpus(Path(tokens), Path(described), self.model)

    @cached_property
    def parameters_file(self) -> Path:
        """The released parameters; without any, those that training begins with."""
        if self.request.get("parameters"):
            return Path(self.request["parameters"])
        file = entry.artifact(self.out, PARAMETERS)
        seed = self.train_settings.initialization_seed
        save_parameters(file, initial_parameters(self.model, seed))
        return file

    @cached_property
    def parameters(self) -> Any:
        """The parameters of the release."""
        return load_parameters(self.parameters_file, self.model)

    @cached_property
    def programs(self) -> Any:
        """Everything that a target has to run, lowered for it."""
        lowered_for = self.request["lowered_for"]
        return loaded_programs(self.model, self.train_settings, lowered_for)

    @cached_property
    def workload(self) -> Workload:
        """Training update, prefill and cached decode on a device of this controller."""
        tokens = self.corpus.tokens["train"]
        return Workload(
            self.programs, self.parameters, tokens, self.train_settings, self.profile
        )

    def _keep(self, name: str, value: Any) -> None:
        text = json.dumps(value, indent=1, sort_keys=True)
        entry.artifact(self.out, name).write_text(text, "utf-8")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    entry.run(main)
