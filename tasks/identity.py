"""The key of a stage: everything its result may depend on, and nothing else.

The key is the SHA-256 of a list of named components. Each component is kept with
the execution as a row, so "why did this run again?" is a comparison of two lists
and not a guess. What cannot be named stably is refused: a permissive `str(value)`
would give a new key in every process, or the same key to different things.
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tasks.source_closure import source_closure
from warehouse.store import Execution


class Unnameable(TypeError):
    """A stage was given a value that has no stable name."""


class KeyComponent(NamedTuple):
    """One thing a stage's result depends on."""

    kind: str
    name: str
    value: str


@dataclasses.dataclass(frozen=True)
class StageDefinition:
    """What is fixed about a stage when its module is written."""

    name: str
    module: str
    programs: tuple[str, ...]
    writes: tuple[type, ...]
    measures_time: bool = False
    not_in_key: tuple[str, ...] = ()


def key_components(
    stage: StageDefinition,
    inputs: Mapping[str, Any],
    runtime: Mapping[str, str],
    machine: Mapping[str, str],
) -> tuple[KeyComponent, ...]:
    """Returns everything the result of a stage depends on, in a fixed order.

    Args:
        stage: The stage.
        inputs: Argument values by name: configurations (frozen dataclasses),
            executions of earlier stages, plain values.
        runtime: Numerics fingerprint, name to value.
        machine: Description of the machine; counts only where time is measured.

    Raises:
        Unnameable: A value has no stable name (set, object, not-a-number, ...).
    """
    closure = source_closure(stage.module, *stage.programs)
    rows = [KeyComponent("stage", "name", stage.name)]
    rows += [KeyComponent("source", *pair) for pair in closure.modules]
    rows += [KeyComponent("distribution", *pair) for pair in closure.distributions]
    for name, value in inputs.items():
        if name not in stage.not_in_key:
            rows += _input_rows(name, value)
    rows += [KeyComponent("runtime", name, runtime[name]) for name in runtime]
    if stage.measures_time:
        rows += [KeyComponent("machine", name, machine[name]) for name in machine]
    return tuple(sorted(rows))


def key_of(components: tuple[KeyComponent, ...]) -> str:
    """Returns the key as 64 hexadecimal digits; never None."""
    text = json.dumps([list(row) for row in components], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def by_name(components: tuple[KeyComponent, ...]) -> dict[str, str]:
    """Returns components as the commit record keeps them, "kind:name" to value."""
    return {f"{row.kind}:{row.name}": row.value for row in components}


def canonical(value: Any, where: str = "value") -> Any:
    """Returns a value as plain JSON data that is the same in every process.

    Args:
        value: None, bool, int, finite float, str, lists and tuples of these,
            dictionaries with string keys, frozen dataclasses, executions.
        where: How to name the value in an error.

    Raises:
        Unnameable: Anything else.
    """
    if isinstance(value, Execution):
        return {artifact.name: artifact.sha256 for artifact in value.artifacts}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    # Exact types: a subclass may compare or print differently from what it holds.
    if type(value) is dict:
        return {
            _field_name(name, where): canonical(item, f"{where}.{name}")
            for name, item in value.items()
        }
    if type(value) in (list, tuple):
        return [canonical(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if type(value) is float and not math.isfinite(value):
        raise Unnameable(
            f"{where} is {value!r}; a key needs a finite number. Pass None and say why."
        )
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise Unnameable(
        f"{where} is a {type(value).__name__}, which has no stable name; pass a "
        "number, text, a list, a frozen dataclass or an Execution."
    )


def _field_name(name: Any, where: str) -> str:
    if type(name) is not str:
        raise Unnameable(f"{where} has the key {name!r}; only text can be a key.")
    return name


def _input_rows(name: str, value: Any) -> Iterator[KeyComponent]:
    data = canonical(value, name)
    if isinstance(value, Execution):
        for artifact, sha256 in data.items():
            yield KeyComponent("artifact", f"{name}/{artifact}", sha256)
        if not data:
            yield KeyComponent("artifact", name, "none")
        return
    yield from _leaves(name, data)


def _leaves(path: str, data: Any) -> Iterator[KeyComponent]:
    if isinstance(data, dict) and data:
        for name, item in data.items():
            yield from _leaves(_path(path, name), item)
    else:
        yield KeyComponent("config", path, json.dumps(data, sort_keys=True))


def _path(parent: str, name: str) -> str:
    # Two different nestings must never spell the same path.
    return f"{parent}.{name}" if name.isidentifier() else f"{parent}[{name!r}]"
