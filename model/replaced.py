"""Puts other functions in the place of the built-in system's, in this process.

A user's implementation and a planted fault are the same thing to the checks: a few
functions of the built-in system with others in their place. So a program measures them
exactly as it measures the built-in system, and no check knows which one it has.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from model.refusal import ReasonCode, Refused

FAULT, FILE = "fault", "file"
# The reference must stay independent, and the faults must find the originals.
KEPT = ("model.reference", "model.faults", "model.replaced")


def end_process(refused: Refused) -> None:
    """Says what is refused and ends the process, from whichever thread it is."""
    sys.stderr.write(f"{refused.message}\n")
    sys.stderr.flush()
    os._exit(2)


def install(
    system: Mapping[str, str],
    end: Callable[[Refused], None] = end_process,
    out: Path | None = None,
) -> None:
    """Makes this process qualify another system than the built-in one.

    Args:
        system: `{"fault": NAME}`, a planted fault of `model.faults`, or
            `{"file": PATH}`, a user's implementation; a file may have
            `time_limit_seconds`.
        end: Says why a file's function is given up and ends the process; it is called
            from another thread, because the function does not come back.
        out: Result folder of the program.

    Raises:
        Refused: `request_malformed`, neither is named or the fault is unknown;
            `implementation_unreadable`, the file cannot be used.
    """
    if list(system) == [FAULT]:
        planted = importlib.import_module("model.faults").find(system[FAULT])
        replace(planted.replaces, planted.replacement)
        return
    if FILE in system:
        importlib.import_module("model.implementation").install(system, end, out)
        return
    raise Refused(
        ReasonCode.REQUEST_MALFORMED,
        f"the system {dict(system)!r} is neither a {FAULT!r} nor a {FILE!r}.",
    )


def replace(name: str, replacement: Any) -> None:
    """Replaces a function wherever a module of the system holds it.

    Args:
        name: Where it is defined, as in `model.transformer.attention_mask`.
        replacement: Takes the original and returns what stands in its place.

    Raises:
        Refused: `request_malformed`, the system has no such function.
    """
    module_name, _, function_name = name.rpartition(".")
    if not is_within_reach(module_name):
        return  # The program reopens a release, where most of the system is absent.
    module = _module(module_name)
    original = getattr(module, function_name, None)
    if original is None:
        raise Refused(
            ReasonCode.REQUEST_MALFORMED, f"{name} is no function of the system."
        )
    other = replacement(original)
    for held in _system_modules():
        # Modules hold what they import under names of their own.
        for own_name, value in list(vars(held).items()):
            if value is original:
                setattr(held, own_name, other)


def is_within_reach(module_name: str) -> bool:
    """Whether the folder that this process runs from has the module.

    Its own folder is asked, because an installed project would answer for others.
    """
    package = importlib.import_module(module_name.rpartition(".")[0])
    find = importlib.machinery.PathFinder.find_spec
    return find(module_name, package.__path__) is not None


def _module(name: str) -> Any:
    """Returns a module; the program itself runs under another name than its own."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == name:
        return main
    return importlib.import_module(name)


def _system_modules() -> list[Any]:
    return [
        module
        for name, module in list(sys.modules.items())
        if name == "__main__"
        or (
            name.startswith("model.")
            and not any(name == kept or name.startswith(f"{kept}.") for kept in KEPT)
        )
    ]
