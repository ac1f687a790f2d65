"""Calls each function of a user's file alone, and says what is wrong with it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from model.checks.conformance import Conformance, check_function, check_saved
from model.config import ModelConfig, from_dict
from model.guarded import Guarded
from model.implementation import forget, guarded_functions
from model.programs import entry

FOUND = "conformance.json"


def main(request: dict[str, Any], out: Path) -> None:
    """Writes what was found about each function that is asked about.

    Args:
        request: ``file`` (path), ``time_limit_seconds``, ``model``, ``functions``
            (names that the wanted checks call).
        out: Result folder; gets conformance.json, a list with one object a function.

    Raises:
        Refused: The file cannot be loaded, or one of its functions does not return.
    """
    model = from_dict(ModelConfig, request["model"])
    end = partial(entry.end_refused, out)
    seconds = float(request["time_limit_seconds"])
    file = Path(request["file"])
    held = guarded_functions(file, seconds, end, out)
    # Another load of the same file knows nothing of what this one was asked.
    forget(file)
    fresh = guarded_functions(file, seconds, end, out)
    found = []
    for name in (name for name in request["functions"] if name in held):
        entry.report(event="function", message=f"calling {name}")
        found.append(_check(name, held, fresh, model)._asdict())
    (out / FOUND).write_text(json.dumps({"held": list(held), "found": found}), "utf-8")


def _check(
    name: str,
    held: dict[str, Guarded],
    fresh: dict[str, Guarded],
    model: ModelConfig,
) -> Conformance:
    if name != "restore":
        return check_function(held[name], fresh[name], model)
    if "save" not in held:
        return Conformance(name, "`restore` has no `save` beside it; define both.")
    return check_saved(held["save"], held["restore"], model)


if __name__ == "__main__":
    entry.run(main)
