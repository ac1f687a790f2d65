"""The command line `harness`: which commands there are, and how an error reads.

An expected failure is one sentence and exit code 2, a Ctrl-C 130, a SIGTERM 143;
results go to stdout, everything else to stderr. Each command's own module loads what
it needs when it is called, so that looking at evidence never waits for JAX or Prefect.
"""

import importlib.metadata
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cyclopts import App, CycloptsError

from flows.commands_certify import certify
from flows.commands_check import check, starter
from flows.commands_compare import accept, compare
from flows.commands_drill import drill
from flows.commands_look import report, runs, sql, why
from flows.commands_operate import down, up
from flows.commands_rehearse import rehearse as _rehearse  # noqa: F401  registers
from flows.commands_release import export, generate
from flows.commands_review import review
from flows.commands_run import run
from flows.commands_settings import settings
from flows.commands_target import target
from flows.commands_target_run import run as _run_target  # noqa: F401  registers
from flows.display import note
from model.refusal import Refused
from tasks.errors import StageError
from warehouse.errors import WarehouseError

EXPECTED = (Refused, StageError, WarehouseError)
DONE, COULD_NOT_RUN, INTERRUPTED, TERMINATED = 0, 2, 130, 143


class Terminated(BaseException):
    """The process was asked to end by SIGTERM, and ends in order."""


def _version() -> str:
    try:
        return importlib.metadata.version("text-harness")
    except importlib.metadata.PackageNotFoundError:
        return "not installed; run from a folder of source"


app = App(
    name="harness",
    help="Qualify a training system, and look at the evidence.",
    version=_version,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
COMMANDS = (
    *(run, check, starter, certify, drill, settings, review, sql, runs, why, report),
    *(accept, compare, export, generate),
    *(up, down, target),
)
for command in COMMANDS:
    app.command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and ends the process with its exit code."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)
    try:
        with _interrupted_by_queries():
            sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))
    except (KeyboardInterrupt, Terminated) as error:
        note(
            "Interrupted. What was finished is kept; the same command goes on from it."
        )
        sys.exit(INTERRUPTED if isinstance(error, KeyboardInterrupt) else TERMINATED)
    except BrokenPipeError:
        # The reader of our output has left, such as `head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(DONE)


@contextmanager
def _interrupted_by_queries() -> Iterator[None]:
    """DuckDB ends a query at Ctrl-C too, and names it in an error of its own."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from error


def _terminate(number: int, frame: object) -> None:
    raise Terminated


def _run(arguments: list[str]) -> int:
    try:
        code = int(app(arguments, print_error=False, exit_on_error=False) or DONE)
        sys.stdout.flush()
        return code
    except CycloptsError as error:
        note(f"harness: {error}")
    except EXPECTED as error:
        # Behind a failed stage may stand a mistake of ours, which needs its traceback.
        cause = error.__cause__
        if isinstance(error, StageError) and not isinstance(
            cause, (*EXPECTED, OSError, type(None))
        ):
            traceback.print_exception(cause)
        note(f"harness: {error}")
    except BrokenPipeError:
        raise
    except OSError as error:
        what = "A file" if error.filename is None else repr(str(error.filename))
        why = error.strerror or str(error)
        note(f"harness: {what} could not be read or written: {why}.")
        _drop_unwritable_output()
    return COULD_NOT_RUN


def _drop_unwritable_output() -> None:
    """Forgets output that cannot be written; Python would try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
