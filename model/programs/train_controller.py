"""One controller of a training by several: joins, answers, trains, and tells each step.

The same program on CPU, GPU and TPU hosts; it needs JAX and NumPy alone. It makes
several trainings one after another in one gang, each from its own request. When another
controller is lost it leaves at once: the end of the JAX runtime would wait for the one
that is gone.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from model.checkpoint import state_arrays
from model.checkpoint_manifest import Progress
from model.collectives import normalisation
from model.controllers import Seat, answer, join, read_seat, require_demands
from model.digests import array_sha256, tree_sha256
from model.programs import entry
from model.refusal import ReasonCode, Refused
from model.sharded_checkpoint import ShardedCheckpoints
from model.shared_checkpoint import SharedCheckpoints
from model.tokenizer import PAD
from model.training import TrainingState, initial_state
from model.training_loop import CompletedUpdate, initial_progress, run_updates
from model.training_request import TrainingRequest, read_request, training_identity
from model.update_programs import PROGRAMS

EXIT_LOST = 17
RESTORES = ("never", "latest")
ANSWER = "answer.json"
"""Artifact that holds the answer to the launcher."""


def main(request: dict[str, Any], out: Path) -> None:
    """Writes the answer to the challenge and, for each training, what it computed.

    Args:
        request: What `model.controllers.read_seat` takes, `gang` (its name) and
            `trainings`: each what `model.training_request.read_request` takes,
            `program` (of `model.update_programs`) and optionally `checkpoints` (path or
            URL), `restore` (never or latest), `is_preemptible`,
            `seconds_between_updates`, `pause_before_commit_of`, `hang_after_update`.
        out: Result folder.

    Raises:
        Refused: This controller is alone and refuses; several leave at once instead.
    """
    seat = read_seat(request)
    with leaving_together(seat, out):
        join(seat)
        tell_answer(seat, out)
        for training in request["trainings"]:
            Controller(seat, request | training, out).run()


def tell_answer(seat: Seat, out: Path) -> None:
    """Keeps the answer to the launcher, and refuses what it does not allow.

    Raises:
        Refused: As `require_demands`.
    """
    entry.artifact(out, ANSWER).write_text(json.dumps(answer(seat)))
    entry.report(event="answered", message=f"controller {seat.process} is there")
    require_demands(seat)


@contextmanager
def leaving_together(seat: Seat, out: Path) -> Iterator[None]:
    """Ends this process at once when the block refuses or loses another controller.

    Raises:
        Refused: This controller is alone.
    """
    try:
        yield
    except Refused as refused:
        if seat.processes == 1:
            raise
        entry.report(event="refused", code=str(refused.code), message=refused.message)
        entry.tell_refusal(out, refused)
        os._exit(entry.EXIT_REFUSED)
    except jax.errors.JaxRuntimeError as error:
        if seat.processes == 1:
            raise
        text = str(error).splitlines()[0]
        entry.report(event="lost", message=f"controller {seat.process}: {text}")
        os._exit(EXIT_LOST)


class Controller:
    """One training as one controller makes it."""

    def __init__(self, seat: Seat, request: dict[str, Any], out: Path) -> None:
        """Reads the request; makes no update yet."""
        self.seat = seat
        self.out = out
        self.training: TrainingRequest = read_request(request)
        self.gang: str = request.get("gang", "")
        self.program: str = request["program"]
        self.is_preemptible: bool = request.get("is_preemptible", False)
        self.seconds_between_updates = request.get("seconds_between_updates", 0.0)
        self.pause_before_commit_of = request.get("pause_before_commit_of")
        self.hang_after_update = request.get("hang_after_update")
        self.restore: str = request.get("restore", "never")
        if self.program not in PROGRAMS or self.restore not in RESTORES:
            raise Refused(
                ReasonCode.REQUEST_MALFORMED,
                f"Program {self.program!r} or restore {self.restore!r} is unknown;"
                f" known are {', '.join((*PROGRAMS, *RESTORES))}.",
            )
        self.make_update = PROGRAMS[self.program](
            self.training.model, self.training.train
        )
        self.identity = _identity(self.training, self.program)
        self.checkpoints = self._checkpoints(request.get("checkpoints"))

    def _checkpoints(
        self, place: str | None
    ) -> SharedCheckpoints | ShardedCheckpoints | None:
        """Returns where the training commits: a state in parts asks for more."""
        if not place:
            return None
        if self.program == "sharded":
            return ShardedCheckpoints(place, self.make_update.template())
        return SharedCheckpoints(place, self.out / f"checkpoints{self.training.suffix}")

    def run(self) -> None:
        """Makes every update up to the last, or up to a notice that the host goes."""
        training = self.training
        state, progress = self._start()
        completed = None
        for completed in run_updates(
            self.make_update.place(state),
            progress,
            training.corpus.tokens["train"],
            training.model,
            training.train,
            training.final_update,
            self.make_update,
        ):
            is_leaving = self._is_leaving(completed.update)
            self._record(completed)
            if is_leaving or self._is_due(completed.update):
                self._save(completed.state, completed.progress)
            if is_leaving:
                self._tell("preempted", completed.update)
                break
            if completed.update == self.hang_after_update:
                self._tell("hanging", completed.update)
                _wait_for_the_kill()
            time.sleep(self.seconds_between_updates)
        if completed is not None:
            self._keep(completed.state)

    def _start(self) -> tuple[TrainingState, Progress]:
        training = self.training
        if self.restore == "latest" and self.checkpoints is not None:
            restored = self.checkpoints.restore(training.model, self.identity)
            if restored is not None:
                state, progress, controllers = restored
                self._tell("restored", progress.step, by=controllers["count"])
                return state, progress
        state = initial_state(
            training.model,
            training.train.initialization_seed,
            is_averaged=training.train.optimizer.is_averaged,
        )
        documents = len(training.corpus.tokens["train"])
        return state, initial_progress(training.train, documents)

    def _is_due(self, update: int) -> bool:
        every = self.training.checkpoint_every_updates
        return self.checkpoints is not None and update % every == 0

    def _is_leaving(self, update: int) -> bool:
        """Whether a host was told to go; all controllers hear of it at one update."""
        if not self.is_preemptible:
            return False
        return bool(multihost_utils.reached_preemption_sync_point(update))

    def _save(self, state: TrainingState, progress: Progress) -> None:
        if self.checkpoints is None:
            return
        written = self.checkpoints.save(
            state, progress, self.identity, lambda: self._pause_before_commit(progress)
        )
        if written is not None:
            self._tell("checkpoint", progress.step, folder=written)

    def _pause_before_commit(self, progress: Progress) -> None:
        if progress.step == self.pause_before_commit_of:
            self._tell("paused", progress.step)
            _wait_for_the_kill()

    def _record(self, completed: CompletedUpdate) -> None:
        entry.write_rows(self.out, "controller_updates", [self._row(completed)])
        self._tell("update", completed.update, of=self.training.final_update)

    def _row(self, completed: CompletedUpdate) -> dict[str, Any]:
        ids = self.training.corpus.document_ids["train"]
        tokens = self.training.corpus.tokens["train"]
        places = [p for p in self.make_update.places if p < len(completed.rows)]
        own = [int(completed.rows[place]) for place in places]
        state = self.make_update.whole(completed.state)
        return {
            "gang": self.gang,
            "label": self.training.label,
            "program": self.program,
            "process_index": jax.process_index(),
            "process_count": jax.process_count(),
            "nonce": self.seat.nonce,
            "update": completed.update,
            # float32 to float: exact
            "loss_sum_nats": float(np.asarray(completed.outcome.loss_sum)),
            "valid_targets": int(completed.outcome.valid_targets),
            "parameters_sha256": tree_sha256(state.parameters),
            "state_sha256": tree_sha256(state_arrays(state)),
            "documents": json.dumps([ids[row] for row in own]),
            "targets_sha256": array_sha256(tokens[own, 1:] != PAD),
            "global_documents": len(completed.rows),
            "device_documents": json.dumps(self.make_update.places_of_devices),
            "duration_ns": completed.duration_ns,
        }

    def _keep(self, state: TrainingState) -> None:
        """Keeps what was trained, where it lay, and what the program divides by."""
        described = self.make_update.description(state)
        label = {
            "gang": self.gang,
            "label": self.training.label,
            "program": self.program,
            "process_index": jax.process_index(),
        }
        entry.write_rows(
            self.out, "controller_arrays", [label | row for row in described["arrays"]]
        )
        lowered, compiled = described["lowered"], described["compiled"]
        corpus = self.training.corpus
        told = label | {
            "normalisation": normalisation(lowered, compiled),
            "tokenizer": json.dumps(corpus.description["tokenizer"], sort_keys=True),
            "split_sha256": corpus.split_sha256,
            "tokens_sha256": corpus.description["tokens_sha256"]["train"],
        }
        entry.write_rows(self.out, "controller_trainings", [told])
        whole = self.make_update.whole(state)
        if jax.process_index() == 0:
            kept = entry.artifact(self.out, f"state{self.training.suffix}.npz")
            # Not in the format of checkpoints, which may be that of another system.
            np.savez(kept, **state_arrays(whole))  # type: ignore[arg-type]

    def _tell(self, event: str, update: int, **more: Any) -> None:
        entry.report(
            event=event,
            label=self.training.label,
            process=jax.process_index(),
            update=update,
            message=f"{self.training.label}: {event} at update {update}",
            **more,
        )


def _identity(training: TrainingRequest, program: str) -> dict[str, Any]:
    """Returns what the training is: not how many devices go on with it."""
    identity = training_identity(training)
    del identity["numerics"]["device_count"]
    # Other masks than those of a training whose key belongs to the place in a batch.
    identity["dropout_seed"] = f"{training.train.dropout_seed} by document"
    identity["precision"] = identity["precision"] | {"sums": program}
    return identity


def _wait_for_the_kill() -> None:
    """Waits for the signal that this training is about; it never returns."""
    while True:
        threading.Event().wait()


if __name__ == "__main__":
    entry.run(main)
