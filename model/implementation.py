"""Loads a user's file and puts its functions in the place of the built-in ones.

Everything a program of the harness then computes, it computes with the user's system.
The adapters between the two signatures are loaded by name, so that a program which must
not have the training code, such as the one that reopens a release, loads few of them.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from model.called import Call
from model.guarded import Guarded, first_line
from model.refusal import ReasonCode, Refused
from model.replaced import is_within_reach, replace
from model.system import BY_NAME, TIME_LIMIT_SECONDS, Function, held_by
from model.watch import Watch

ADAPTERS = {
    "model.text_adapters": ("encode", "decode", "generate", "batch_order"),
    "model.array_adapters": tuple(
        name
        for name in BY_NAME
        if name not in ("encode", "decode", "generate", "batch_order")
    ),
}
"""Which module holds the adapter of a function, called like the function."""
LOADED_AS = "implementation_under_qualification"


def install(
    system: Mapping[str, str],
    end: Callable[[Refused], None],
    out: Path | None = None,
) -> None:
    """Makes this process run a user's functions.

    Args:
        system: `file`, the path, and maybe `time_limit_seconds` of one call.
        end: Says what is wrong and ends the process, from another thread.
        out: Result folder of the program.

    Raises:
        Refused: `implementation_unreadable`, the file cannot be loaded or holds no
            function of the system.
    """
    seconds = float(system.get("time_limit_seconds", TIME_LIMIT_SECONDS))
    held = guarded_functions(Path(system["file"]), seconds, end, out)
    for name, guarded in held.items():
        adapter = _adapter(guarded.function)
        if adapter is not None:
            replace(BY_NAME[name].home, adapter(guarded))


def guarded_functions(
    file: Path,
    seconds: float,
    end: Callable[[Refused], None],
    out: Path | None = None,
) -> dict[str, Guarded]:
    """Returns the functions of the system that a file holds, by name, each watched.

    Args:
        file: The user's file.
        seconds: Most seconds of one call, and of loading the file.
        end: Says that a call does not come back, and ends the process.
        out: Result folder of the program, for what is told after its end.

    Raises:
        Refused: As `install`.
    """
    watch = Watch(seconds, end, out)
    with watch.over(Call(file)):
        module = load(file)
    found = held_by(vars(module))
    if not found:
        raise _unreadable(
            f"{file.name} defines no function of the system;{_nearest(module)} "
            f"`harness starter` writes a file with all of them: {', '.join(BY_NAME)}."
        )
    return {
        each.name: Guarded(each, getattr(module, each.name), file, watch)
        for each in found
    }


def forget(file: Path) -> None:
    """Has the next `load` begin anew, with what the file imports from beside it."""
    for name, module in list(sys.modules.items()):
        where = Path(getattr(module, "__file__", None) or os.sep)
        # What is installed below the file is no part of what somebody wrote.
        if file.parent in where.parents and "site-packages" not in where.parts:
            del sys.modules[name]


def load(file: Path) -> ModuleType:
    """Returns a user's file as a module; it may import what lies beside it.

    Raises:
        Refused: `implementation_unreadable`.
    """
    if not file.is_file():
        raise _unreadable(f"There is no file {str(file)!r}; name a Python file.")
    spec = importlib.util.spec_from_file_location(LOADED_AS, file)
    if spec is None or spec.loader is None:
        raise _unreadable(f"{file.name!r} is no Python file; its name ends with .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[LOADED_AS] = module
    if os.fspath(file.parent) not in sys.path:
        sys.path.insert(0, os.fspath(file.parent))
    try:
        spec.loader.exec_module(module)
    # A file that nobody here wrote may raise or exit as it likes.
    except BaseException as error:  # noqa: BLE001
        told = f"{type(error).__name__}: {first_line(error)}".rstrip(": ")
        raise _unreadable(
            f"{file.name}{_line(file, error)} cannot be loaded: {told}."
        ) from None
    return module


def _adapter(function: Function) -> Any:
    """Returns the adapter of a function; None where its home is not at hand."""
    home = function.home.rpartition(".")[0]
    (name,) = [name for name, held in ADAPTERS.items() if function.name in held]
    # A program without the training code has nothing to replace there.
    if not (is_within_reach(home) and is_within_reach(name)):
        return None
    return getattr(importlib.import_module(name), function.name)


def _unreadable(message: str) -> Refused:
    return Refused(ReasonCode.IMPLEMENTATION_UNREADABLE, message)


def _nearest(module: ModuleType) -> str:
    for name, value in vars(module).items():
        close = difflib.get_close_matches(name, BY_NAME, n=1, cutoff=0.75)
        if close and callable(value):
            return f" did you mean {close[0]!r} by {name!r}?"
    return ""


def _line(file: Path, error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.lineno:
        return f", line {error.lineno},"
    own = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == file
    ]
    return f", line {own[-1]}," if own else ""
