"""What a user's implementation is made of: its file, and what it imports from beside.

Part of the key of every stage that runs it, and of the subject: a changed line in a
helper of theirs is another system. What a file reads while it runs is not seen.
"""

from collections.abc import Mapping
from pathlib import Path

from model.refusal import ReasonCode, Refused
from tasks.identity import KeyComponent
from tasks.source_closure import file_closure, source_closure

System = Mapping[str, str]
FILE = "file"
KIND = "implementation"
# Loaded by name where a file is in place, so no program's closure has them.
PUT_IN_PLACE_BY = (
    "model.replaced",
    "model.implementation",
    "model.text_adapters",
    "model.array_adapters",
)


def system_of(implementation: str | None) -> dict[str, str] | None:
    """Returns the system that programs run for a user's file; None for the built-in.

    Raises:
        Refused: `implementation_unreadable`, there is no such file, or it is no Python.
    """
    if implementation is None:
        return None
    file = Path(implementation).absolute()
    try:
        file_closure(file)
    except OSError as error:
        raise Refused(
            ReasonCode.IMPLEMENTATION_UNREADABLE,
            f"The implementation {implementation!r} cannot be read ({error.strerror});"
            " name a Python file, or let `harness starter` write one.",
        ) from None
    except SyntaxError as error:
        raise Refused(
            ReasonCode.IMPLEMENTATION_UNREADABLE,
            f"The implementation {implementation!r} is no Python: {error.msg} in line"
            f" {error.lineno}.",
        ) from None
    return {FILE: str(file)}


def components_of_system(system: System | None) -> tuple[KeyComponent, ...]:
    """Returns what a result depends on because of the system, beside the stage."""
    if system is None or FILE not in system:
        return ()
    own, imported = file_closure(Path(system[FILE]))
    ours = source_closure(*PUT_IN_PLACE_BY, *imported)
    rows = [KeyComponent(KIND, *pair) for pair in own.modules]
    rows += [KeyComponent("source", *pair) for pair in ours.modules]
    both = own.distributions + ours.distributions
    return (*rows, *(KeyComponent("distribution", *pair) for pair in both))
