"""What every program shares: its request, its result folder and its end.

A program must die with the stage that started it, must say in one sentence what it
refuses, and must leave rows that are complete or absent. That is the same for all of
them, so it stands here once.
"""

import atexit
import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from model.refusal import ReasonCode, Refused

EXIT_REFUSED = 2
EXIT_PARENT_DIED = 3
WATCHES_PARENT = "HARNESS_WATCHES_PARENT"

_progress: TextIO = sys.stdout


def run(main: Callable[[dict[str, Any], Path], None]) -> None:
    """Runs a program on the request named on the command line, and ends the process.

    Exits 0 when done, 2 when an input was refused (``refused.json`` says why), 1 for
    any other failure (Python's traceback on stderr), 3 when the starting process died.

    Args:
        main: Takes the request and the result folder.
    """
    _die_with_parent()
    _keep_stdout_for_progress()
    started_ns = time.perf_counter_ns()
    out: Path | None = None
    ended: list[int] = []
    # Registered first, so it runs last, when no thread is waited for any more.
    atexit.register(_leave, ended)
    try:
        request = _read_request(sys.argv[1:])
        out = Path(request["out"])
        _install_system(request, out)
        main(request, out)
        _write_json(out / "program.json", _describe_process(started_ns))
        ended.append(0)
    except Refused as refused:
        tell_refusal(out, refused)
        ended.append(EXIT_REFUSED)
        sys.exit(EXIT_REFUSED)


def _leave(ended: list[int]) -> None:
    """Ends a program that has said how it ended, before Python takes itself apart.

    A thread of XLA that wants Python's lock meanwhile would abort the whole process
    ("exception not rethrown"), after everything was done and written. A controller has
    to take leave of the others first, which JAX does after this.
    """
    jax = sys.modules.get("jax")
    if ended and not (jax and jax.distributed.is_initialized()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended[0])


def tell_refusal(out: Path | None, refused: Refused) -> None:
    """Writes ``refused.json`` where there is a result folder, and the sentence."""
    if out is not None:
        _write_json(
            out / "refused.json",
            {
                "code": str(refused.code),
                "message": refused.message,
                "fields": list(refused.fields),
            },
        )
    sys.stderr.write(f"{refused.message}\n")
    sys.stderr.flush()


def report(**event: Any) -> None:
    """Prints one progress event as a JSON line on stdout, at once.

    Args:
        event: Plain JSON values, for instance ``event="update", update=60, of=300``.
    """
    _progress.write(json.dumps(event, allow_nan=False) + "\n")
    _progress.flush()


def write_rows(out: Path, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Adds rows to ``out/records/<table>.json``, complete or not at all.

    Args:
        out: The result folder.
        table: Name of the record's table.
        rows: Plain JSON values by field name; a number that is not finite is refused
            by the encoder: write None and a reason.

    Raises:
        ValueError: A row holds NaN or an infinity.
    """
    path = out / "records" / f"{table}.json"
    earlier = json.loads(path.read_text("utf-8")) if path.exists() else []
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_json(path, [*earlier, *(dict(row) for row in rows)])


def artifact(out: Path, name: str) -> Path:
    """Returns the path at which the artifact ``name`` is to be written."""
    folder = out / "artifacts"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def end_refused(out: Path | None, refused: Refused) -> None:
    """Ends the process with a refusal from whichever thread this is called in."""
    tell_refusal(out, refused)
    # The main thread does not come back, so nothing can be unwound.
    os._exit(EXIT_REFUSED)


def _install_system(request: Mapping[str, Any], out: Path) -> None:
    """Puts another system in the place of the built-in one, where one is asked for.

    By name, so that no stage's key holds the code of systems that it does not run.
    """
    if request.get("system"):
        install = importlib.import_module("model.replaced").install
        install(request["system"], partial(end_refused, out), out)


def _read_request(arguments: Sequence[str]) -> dict[str, Any]:
    if len(arguments) != 1:
        raise Refused(
            ReasonCode.REQUEST_MALFORMED,
            f"the program got {len(arguments)} arguments; give it one: REQUEST.json",
        )
    path = Path(arguments[0])
    try:
        request = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise Refused(
            ReasonCode.REQUEST_MALFORMED,
            f"request {str(path)!r} cannot be read as JSON: {error}",
        ) from error
    if not isinstance(request, dict) or not isinstance(request.get("out"), str):
        raise Refused(
            ReasonCode.REQUEST_MALFORMED,
            f"request {str(path)!r} lacks 'out', the result folder",
        )
    return request


def _describe_process(started_ns: int) -> dict[str, Any]:
    """Returns process id, duration, peak memory and, after JAX, the runtime."""
    runtime = None
    if "jax" in sys.modules:
        # by name, so that a program without JAX does not hold it in its key
        runtime = importlib.import_module("model.runtime").describe()
    return {
        "process_id": os.getpid(),
        "duration_ns": time.perf_counter_ns() - started_ns,
        "peak_memory_bytes": _peak_memory_bytes(),
        "runtime": runtime,
    }


def _peak_memory_bytes() -> int:
    """Returns the most resident memory this process has had, in bytes."""
    try:
        # ru_maxrss is inherited over exec from the process that forked this one
        for line in Path("/proc/self/status").read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # no Linux: the portable figure below
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _write_json(path: Path, value: Any) -> None:
    """Writes JSON under a temporary name and renames it, so a kill leaves no half."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(value, allow_nan=False), "utf-8")
    temporary.replace(path)


def _keep_stdout_for_progress() -> None:
    """Gives stdout to progress lines alone; whatever else prints goes to stderr."""
    global _progress
    sys.stdout.flush()
    _progress = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)


def _die_with_parent() -> None:
    """Ends this process when the pipe on stdin closes: its parent is gone.

    Only where the parent asks for it: started by hand over ssh, stdin is at its end.
    """
    if os.environ.get(WATCHES_PARENT) == "1":
        threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    while os.read(0, 4096):
        pass  # the parent sends nothing; only the end counts
    if os.getsid(0) == os.getpid():
        # The session is this program's own: what it started ends with it.
        os.killpg(0, signal.SIGKILL)
    os._exit(EXIT_PARENT_DIED)
