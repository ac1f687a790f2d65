"""Runs the checks of a review task on somebody's implementation, in a store that goes.

First each function alone, then the stages of the DAG that measure the task. What they
show is a view of the warehouse over the same contract as for every other run.
"""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.progress_lines import ProgressLines
from flows.reading import Row, open_run, view_rows
from flows.runtime_fingerprint import runtime_fingerprint
from model.config import to_dict
from model.presets import override, tried
from model.refusal import ReasonCode, Refused
from model.system import FUNCTIONS, TIME_LIMIT_SECONDS, Function
from tasks import progress
from tasks.corpus_files import corpus_files
from tasks.errors import ProgramRefused
from tasks.evaluate_heldout import evaluate_heldout
from tasks.export_endpoints import export_endpoints
from tasks.forked_programs import forking
from tasks.implementation_files import system_of
from tasks.interrupt_training import interrupt_training
from tasks.profile_runtime import profile_runtime
from tasks.quantize_cache import quantize_cache
from tasks.resume_training import resume_training
from tasks.run_program import ProgramCall, run_program
from tasks.temporary_folders import temporary_folder
from tasks.tokenize_corpus import tokenize_corpus
from tasks.train_model import train_model
from tasks.trial import Trial

PROGRAM = "model.programs.check_implementation"
FOUND = "conformance.json"
BUILT_IN = "builtin"
SETTINGS = (
    "evaluate.batch_sizes=1,5,7,16,32",
    "evaluate.compiled_batch_sizes=1,5,7,16,32",
    "evaluate.batch_size_documents=32",
    "cache.documents=12",
    "profile.processes=3",
)
"""What every case of the contract needs beyond what planted faults are tried on: one
case of a claim finds a fault, and all of them accept the claim."""
STAGES = {
    1: (tokenize_corpus, train_model, evaluate_heldout),
    2: (
        tokenize_corpus,
        train_model,
        interrupt_training,
        resume_training,
        evaluate_heldout,
    ),
    3: (tokenize_corpus, train_model, quantize_cache, export_endpoints),
    4: (
        tokenize_corpus,
        train_model,
        quantize_cache,
        export_endpoints,
        profile_runtime,
    ),
}
"""The stages that measure a review task, and those that they need."""
ORDER = (
    tokenize_corpus,
    train_model,
    interrupt_training,
    resume_training,
    evaluate_heldout,
    quantize_cache,
    export_endpoints,
    profile_runtime,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Conformance:
    """What calling each function alone has shown."""

    held: list[str]
    """Functions of the system that the file defines."""
    found: list[dict[str, str]]
    """`function` and `found`, the sentence of what is wrong, or ""."""
    left_out: list[str]
    """Functions that the wanted checks call and the file does not define."""

    @property
    def wrong(self) -> list[str]:
        """Names of the functions with something wrong."""
        return [row["function"] for row in self.found if row["found"]]


def conformance(
    file: Path, seconds: float, functions: Sequence[Function]
) -> Conformance:
    """Returns what calling each function of a file alone shows.

    Args:
        file: The user's file.
        seconds: Most seconds of one call.
        functions: Functions that the wanted checks call.

    Raises:
        ProgramRefused: The file cannot be loaded.
    """
    names = [each.name for each in functions]
    request = {
        "file": str(file),
        "time_limit_seconds": seconds,
        "model": to_dict(_config().model),
        "functions": names,
    }
    with temporary_folder("conformance") as folder:
        lines = ProgressLines()
        call = ProgramCall(
            program=PROGRAM,
            request=request,
            folder=folder,
            on_event=lambda event: lines.hear("conformance", event),
        )
        try:
            run = run_program(call)
        except ProgramRefused as refused:
            if refused.code != ReasonCode.IMPLEMENTATION_MISBEHAVED:
                raise
            # A function that does not come back ends the process; the rest is unknown.
            found = [{"function": refused.fields[0], "found": str(refused)}]
            return Conformance(held=list(refused.fields), found=found, left_out=[])
        told = json.loads((run.out / FOUND).read_bytes())
    held = told["held"]
    left_out = [name for name in names if name not in held]
    return Conformance(held=held, found=told["found"], left_out=left_out)


def refuse_wrong_functions(implementation: str) -> None:
    """Calls every function of a file alone before a whole run rests on them.

    Raises:
        Refused: The file cannot be read, or a function is not one of the system.
        ProgramRefused: The file cannot be loaded.
    """
    system_of(implementation)
    report = conformance(Path(implementation), TIME_LIMIT_SECONDS, FUNCTIONS)
    sentences = [row["found"] for row in report.found if row["found"]]
    if sentences:
        more = f" ({len(sentences) - 1} more)" if len(sentences) > 1 else ""
        raise Refused(
            ReasonCode.IMPLEMENTATION_MISBEHAVED, sentences[0] + more, report.wrong
        )


def checked_claims(
    file: Path | None, seconds: float, tasks: Sequence[int]
) -> tuple[list[Row], str]:
    """Returns what the stages of these review tasks show of their claims.

    Args:
        file: The user's file; None is the built-in system.
        seconds: Most seconds of one call.
        tasks: Review tasks.

    Returns:
        Rows of `checked_claims`, and why a stage failed, "" if none did.
    """
    wanted = [stage for stage in ORDER if any(stage in STAGES[task] for task in tasks)]
    system = None
    if file is not None:
        system = {"file": str(file), "time_limit_seconds": str(seconds)}
    name = BUILT_IN if file is None else file.name
    with temporary_folder("check") as root, forking() as fork_server:
        trial = Trial(
            root,
            _config(),
            corpus_files(None),
            runtime_fingerprint(),
            # The corpus and recipe are the declared ones; `checked_claims` leaves out
            # what counts whole samples.
            is_declared=True,
            fork_server=fork_server,
        )
        with progress.listening(ProgressLines().hear):
            tried = trial.run(name, wanted, system=system)
        connection = open_run(root, tried.run_id)
        rows = view_rows(connection, "checked_claims")
    return [row for row in rows if row["review_task"] in tasks], tried.failure


def _config() -> Any:
    return override(tried(), SETTINGS)
