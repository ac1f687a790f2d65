"""Trains the model, from the start or from a checkpoint, and says what it did.

The same program is the uninterrupted training, the one that is killed and the one that
resumes; they differ in their request alone. One process may make several trainings, one
after another, each from its own checkpoint.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from model import checkpoint
from model.checkpoint_manifest import MANIFEST, Progress
from model.checks import recovery
from model.checks.draws import measure_alike_tensors
from model.checks.parted_arrays import Watch
from model.checks.rows import Row, comparison, real
from model.checks.shapes import measure_shapes
from model.checks.trained import TrainingChecks
from model.digests import array_sha256
from model.evaluation import FIXED_ROWS, evaluate_split
from model.folders import folder_sha256
from model.parameters import save_parameters
from model.programs import entry
from model.refusal import Refused
from model.restore import restore_training
from model.training import (
    TrainingState,
    initial_state,
    released_parameters,
)
from model.training_loop import CompletedUpdate, initial_progress, run_updates
from model.training_request import TrainingRequest, read_request, training_identity
from model.update_trace import (
    Arrays,
    append_line,
    arrays_of_state,
    arrays_of_update,
    standing_sha256,
    trace_start,
    trace_update,
)

PROGRESS_EVERY_UPDATES = 20


def main(request: dict[str, Any], out: Path) -> None:
    """Trains, and writes parameters, training state, trace and rows.

    Args:
        request: See `model.training_request.read_request`. Optional `trainings` lists
            what differs in each of several trainings, which share nothing but the
            process; one that is refused is told and does not stop the others.
        out: Result folder.

    Raises:
        Refused: Malformed input, a checkpoint that does not belong to this training, or
            a loss or gradient that is not finite.
    """
    trainings = request.get("trainings")
    if trainings is None:
        Training(read_request(request), out).run()
        return
    for changes in trainings:
        try:
            Training(read_request(request | changes), out).run()
        except Refused as refused:
            entry.report(
                event="refused",
                label=changes["label"],
                code=str(refused.code),
                message=refused.message,
            )


class Training:
    """One training in progress: its request, its result folder and its rows."""

    def __init__(self, request: TrainingRequest, out: Path) -> None:
        """Starts with no rows."""
        self.request = request
        self.out = out
        self.identity = training_identity(request)
        self.updates: list[Row] = []
        self.digests: list[Row] = []
        self.evaluations: list[Row] = []
        self.measurements: list[Row] = []
        self.comparisons: list[Row] = []
        self.checks = TrainingChecks(request)
        self.watch = None
        if request.compared_trace is not None:
            kept = entry.artifact(out, f"parted{request.suffix}.npz")
            self.watch = Watch(request.compared_trace, kept)
        if request.is_evaluated:
            self.comparisons += _tokens_before_training(request)

    def run(self) -> None:
        """Makes every update up to the last, then writes rows and artifacts."""
        request = self.request
        state, progress = self._start()
        start = trace_start(state, progress.step)
        self._trace(start, lambda: arrays_of_state(state))
        if request.is_evaluated:
            self.measurements += measure_shapes(
                state.parameters, request.model, request.train.batch_documents
            )
            self.measurements.append(measure_alike_tensors(state.parameters))
        self._evaluate(state, progress)
        self._checkpoint(state, progress)
        self._pause_after(progress.step)
        for completed in run_updates(
            state,
            progress,
            request.corpus.tokens["train"],
            request.model,
            request.train,
            request.final_update,
        ):
            self._record(completed)
            if request.is_evaluated:
                self.checks.see(state, completed, self.updates[-1]["loss_nats"])
            state, progress = completed.state, completed.progress
            self._evaluate(state, progress)
            self._checkpoint(state, progress)
            self._tell(completed)
        if request.is_evaluated:
            self._keep_state(state, progress)
            rates = [row["learning_rate"] for row in self.updates]
            self.checks.finish(rates, request.final_update - len(rates) + 1)
        self._write_rows()

    def _start(self) -> tuple[TrainingState, Progress]:
        request = self.request
        if request.restore_folder is None:
            documents = len(request.corpus.tokens["train"])
            state = initial_state(
                request.model,
                request.train.initialization_seed,
                is_averaged=request.train.optimizer.is_averaged,
            )
            return state, initial_progress(request.train, documents)
        state, progress, latest = restore_training(request)
        entry.report(
            event="restored",
            label=request.label,
            update=progress.step,
            folder=latest.name,
            message=f"restored from the checkpoint of update {progress.step}",
        )
        return state, progress

    def _record(self, completed: CompletedUpdate) -> None:
        request = self.request
        self.updates.append(_update_row(request, completed))
        if completed.update <= request.train.traced_updates:
            ids = request.corpus.document_ids["train"]
            line = trace_update(completed, ids, request.train)
            self._trace(line, lambda: arrays_of_update(completed, ids, request.train))
            labels = {"run_label": request.label, "update": completed.update}
            self.digests += [labels | digest for digest in line["digests"]]

    def _trace(self, line: dict[str, Any], arrays: Callable[[], Arrays]) -> None:
        """Puts a line on the disk, because this process may be killed next."""
        name = f"trace{self.request.suffix}.jsonl"
        append_line(entry.artifact(self.out, name), line)
        if self.watch is not None:
            self.watch.see(line, arrays)

    def _standing(self, state: TrainingState, progress: Progress) -> str:
        request = self.request
        documents = len(request.corpus.tokens["train"])
        return standing_sha256(state, progress, request.train, documents)

    def _evaluate(self, state: TrainingState, progress: Progress) -> None:
        request, update = self.request, progress.step
        is_due = update % request.train.evaluate_every_updates == 0
        if not request.is_evaluated or not (is_due or update == request.final_update):
            return
        before = self._standing(state, progress)
        tokens = request.corpus.tokens["validation"]
        released = released_parameters(state)
        result = evaluate_split(released, tokens, request.model)
        self.checks.evaluated(update, released, result.losses)
        after = self._standing(state, progress)
        self.comparisons.append(recovery.state_comparison(update, before, after))
        mean = result.loss_sum_nats / result.valid_targets
        case = f"update-{update:03d}"
        self.measurements.append(
            real("2.9", "validation_nats_per_token", case, mean, "nats")
        )
        self.evaluations.append(
            {
                "release_policy": "fp32",
                "split": "validation",
                "update": update,
                "batch_documents": FIXED_ROWS,
                "documents": len(tokens),
                "loss_sum_nats": result.loss_sum_nats,
                "valid_targets": result.valid_targets,
                "correct_targets": result.correct_targets,
            }
        )

    def _checkpoint(self, state: TrainingState, progress: Progress) -> None:
        folder = self.request.checkpoint_folder
        if folder is None or progress.step % self.request.checkpoint_every_updates:
            return
        is_watched = progress.step == self.request.watched_write
        written = checkpoint.write_checkpoint(
            folder,
            state,
            progress,
            self.identity,
            self._tell_step if is_watched else checkpoint.pass_by,
        )
        entry.report(
            event="checkpoint",
            update=progress.step,
            folder=written.name,
            sha256=folder_sha256(written),
            message=f"checkpoint of update {progress.step} written",
        )

    def _tell_step(self, step: str) -> None:
        entry.report(event="write_step", step=step, message=f"at {step} of a write")
        if step == self.request.pause_at_step:
            _wait_for_the_kill()

    def _tell(self, completed: CompletedUpdate) -> None:
        update, last = completed.update, self.request.final_update
        if update % PROGRESS_EVERY_UPDATES == 0 or update == last:
            loss = float(completed.outcome.loss)
            message = f"update {update} of {last}, loss {loss:.3f} nats/token"
            entry.report(event="update", update=update, of=last, message=message)
        self._pause_after(update)

    def _pause_after(self, update: int) -> None:
        if update == self.request.pause_after_update:
            message = f"waiting after update {update} to be killed"
            entry.report(event="paused", update=update, message=message)
            _wait_for_the_kill()

    def _keep_state(self, state: TrainingState, progress: Progress) -> None:
        """Keeps released parameters and the whole training state as artifacts."""
        suffix = self.request.suffix
        parameters = entry.artifact(self.out, f"parameters{suffix}.npz")
        save_parameters(parameters, released_parameters(state))
        self.checks.released(parameters, state)
        written = checkpoint.write_checkpoint(
            self.out / "final_state", state, progress, self.identity
        )
        for file, name in (
            (checkpoint.ARRAYS, f"training_state{suffix}.npz"),
            (MANIFEST, f"training_state{suffix}.json"),
        ):
            shutil.copyfile(written / file, entry.artifact(self.out, name))

    def _write_rows(self) -> None:
        measurements = self.measurements + self.checks.measurements
        comparisons = self.comparisons + self.checks.comparisons
        for table, rows in (
            ("updates", self.updates),
            ("update_digests", self.digests),
            ("evaluations", self.evaluations),
            ("measurements", measurements),
            ("comparisons", comparisons),
        ):
            if rows:
                entry.write_rows(self.out, table, rows)


def _wait_for_the_kill() -> None:
    """Waits for the signal that this training is about; it never returns."""
    while True:
        threading.Event().wait()


def _tokens_before_training(request: TrainingRequest) -> list[Row]:
    """Whether every split is the one that was fixed before any update was made."""
    described = request.corpus.description["tokens_sha256"]
    return [
        comparison(
            "1.5",
            "tokens_before_first_update",
            split,
            described[split],
            array_sha256(tokens),
            "tokenize_corpus",
        )
        for split, tokens in request.corpus.tokens.items()
    ]


def _update_row(request: TrainingRequest, completed: CompletedUpdate) -> Row:
    return {
        "run_label": request.label,
        "update": completed.update,
        "epoch": completed.cursor.epoch,
        "cursor": completed.cursor.position,
        # float32 to float: exact
        "loss_nats": float(np.asarray(completed.outcome.loss)),
        "valid_targets": int(completed.outcome.valid_targets),
        "cumulative_valid_targets": completed.progress.cumulative_valid_targets,
        "learning_rate": float(np.asarray(completed.outcome.learning_rate)),
        "duration_ns": completed.duration_ns,
    }


if __name__ == "__main__":
    entry.run(main)
