"""The built-in system with one planted defect each, for checks to be shown to fail.

A fault replaces one function of the built-in system. It has the name under which the
field knows it, a public report of it, and the claim that has to catch it; a check that
no fault can turn is no check.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from model.refusal import ReasonCode, Refused

INITIALIZATIONS = "model.programs.train_initializations"
"""Says how many first seeds were trained, whatever came of them. A fault of what each
of them computes is left out there: it would compile a training to be counted."""
TIMES = "model.programs.time_endpoints"
"""Runs exported functions alone. A fault of the profiler's regions is left out there:
nothing that this program imports, directly or not, has the function."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One defect of a training system that somebody had."""

    name: str
    """The field's name of it, words joined by dashes."""
    group: str
    """What it is a defect of; the module that declares it is named the same."""
    summary: str
    """One sentence: what is computed instead of what."""
    source: str
    """Public report, `owner/repository#number` or an address; or why there is none."""
    claim: str
    """The claim that has to catch it."""
    stages: tuple[str, ...]
    """Stages of the DAG whose checks are run on it, in the order of the DAG."""
    replaces: str
    """The function in whose place it stands, `model.module.function`."""
    replacement: Callable[[Any], Any]
    """Takes the original function and returns the faulty one."""
    left_out: tuple[str, ...] = ()
    """Programs of these stages that cannot tell it, and are not run on it."""
    is_benign: bool = False
    """Whether it is no defect: the checks must stay silent."""


def every_fault() -> tuple[Fault, ...]:
    """Returns the faults of all groups, in the order of groups and declarations."""
    found = []
    for module in pkgutil.iter_modules(__path__):
        found += importlib.import_module(f"{__name__}.{module.name}").FAULTS
    return tuple(found)


def find(name: str) -> Fault:
    """Returns the fault of this name.

    Raises:
        Refused: `request_malformed`, there is none.
    """
    faults = {fault.name: fault for fault in every_fault()}
    if name not in faults:
        raise Refused(
            ReasonCode.REQUEST_MALFORMED,
            f"the fault {name!r} is unknown; known: {', '.join(faults)}.",
        )
    return faults[name]
