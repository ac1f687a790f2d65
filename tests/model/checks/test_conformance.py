"""Every function of the system, doing wrong whatever a function can do wrong.

A made-up function returns values of the very form that its signature names, and spoils
one thing; so a check that is missing for one of them shows here, and not in somebody's
training. What one function is found for is what its sentence names.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from model.checks.conformance import check_function, check_saved
from model.guarded import _ARRAY, Guarded, _bound, _sizes
from model.presets import fixture
from model.refusal import Refused
from model.system import (
    ARRAYS,
    BY_NAME,
    BYTES,
    CACHE,
    CACHE_PARTS,
    FUNCTIONS,
    IDS,
    PARAMETERS,
    TEXT,
    Function,
)
from model.watch import Watch

FILE = Path(__file__)
WATCH = Watch(600.0, lambda refused: None)
MODEL = fixture().model


def formed(function: Function, arguments: tuple[Any, ...], fill: int = 0) -> Any:
    """Returns what a function has to return, filled with one number."""
    shapes = _bound(function, arguments)

    def array(owed: str) -> Any:
        match = _ARRAY.match(owed)
        assert match is not None
        dtype = shapes["codes"] if match[1] == "codes" else match[1]
        return jnp.full(_sizes(match[2], shapes, ()), fill, dtype)

    made: dict[str, Callable[[], Any]] = {
        PARAMETERS: lambda: {
            name: jnp.full(shape, fill, jnp.float32)
            for name, shape in shapes[PARAMETERS].items()
        },
        CACHE: lambda: tuple(array(owed) for owed in CACHE_PARTS.values()),
        ARRAYS: lambda: {"a": np.asarray(fill, np.int32)},
        BYTES: lambda: str(fill).encode(),
        TEXT: lambda: str(fill),
        IDS: lambda: [fill],
    }
    values = tuple(
        made[owed]() if owed in made else array(owed) for owed in function.gives
    )
    return values if len(values) > 1 else values[0]


def with_first(value: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a value whose first array, or itself, is changed."""
    if isinstance(value, tuple):
        return (with_first(value[0], change), *value[1:])
    if isinstance(value, dict):
        name = next(iter(value))
        return {**value, name: change(value[name])}
    return change(value)


def raises(*arguments: Any) -> Any:
    raise ValueError("no such thing\nand a second line")


def exits(*arguments: Any) -> Any:
    sys.exit(0)


def spoiled(function: Function, kind: str) -> Callable[..., Any]:
    """Returns a function of a user that does one thing wrong."""
    calls = itertools.count()

    def call(*arguments: Any) -> Any:
        if kind == "hidden state":
            return formed(function, arguments, next(calls))
        value = formed(function, arguments)
        if kind == "shape":
            return with_first(value, lambda x: jnp.zeros((1, *np.shape(x)), x.dtype))
        if kind == "dtype":
            return with_first(value, lambda x: x.astype(jnp.float16))
        if kind == "not finite":
            return with_first(value, lambda x: jnp.full(x.shape, jnp.inf, x.dtype))
        assert kind == "mutates"
        for given in arguments:
            if isinstance(given, dict):
                given.pop(next(iter(given)))
            elif isinstance(given, list):
                given.append(0)
        return value

    whole = {
        "raises": raises,
        "exits": exits,
        "nothing": lambda *arguments: None,
        "arguments": lambda: None,
    }
    return whole.get(kind, call)


OF_ARRAYS = [each for each in FUNCTIONS if each.name not in ("save", "restore")]
FIRST = {each.name: each.gives[0] for each in FUNCTIONS}
FLOATS = ("float32", PARAMETERS, "codes")
CASES = {
    "raises": (FUNCTIONS, "raises ValueError: no such thing;"),
    "exits": (FUNCTIONS, "raises SystemExit: 0;"),
    "nothing": (FUNCTIONS, "returns None; it has to return"),
    "arguments": (FUNCTIONS, "takes other arguments"),
    "shape": (
        [each for each in OF_ARRAYS if FIRST[each.name] not in (BYTES, IDS)],
        "returns ",
    ),
    "dtype": (
        [each for each in OF_ARRAYS if FIRST[each.name] not in (BYTES, IDS)],
        "returns float16 ",
    ),
    "not finite": (
        [each for each in OF_ARRAYS if FIRST[each.name].startswith(FLOATS)],
        "numbers that are not finite",
    ),
    "mutates": (
        [
            each
            for each in FUNCTIONS
            if each.name in ("decode", "save") or PARAMETERS in each.takes
        ],
        "changes its argument",
    ),
    "hidden state": (FUNCTIONS, "returns something else when it is called again"),
}
"""What each function may do wrong, those that can, and what is then said."""


@pytest.mark.parametrize("kind", list(CASES))
def test_every_function_is_found_doing_wrong(kind: str) -> None:
    functions, part = CASES[kind]
    for function in functions:
        try:
            guarded = Guarded(function, spoiled(function, kind), FILE, WATCH)
            found = found_of(guarded)
        except Refused as refused:
            found = refused.message
        assert f"`{function.name}` " in found, function.name
        assert part in found, function.name
        assert "\n" not in found


def found_of(guarded: Guarded) -> str:
    if guarded.function.name != "restore":
        # Its state is in the function itself, so that it is as good as fresh.
        return check_function(guarded, guarded, MODEL).found
    save = Guarded(BY_NAME["save"], lambda arrays: b"saved", FILE, WATCH)
    return check_saved(save, guarded, MODEL).found


def test_a_function_may_take_more_if_it_need_not() -> None:
    call: Callable[..., Any] = lambda data, table=None: np.frombuffer(  # noqa: E731
        data, np.uint8
    ).astype(np.int32)
    assert found_of(Guarded(BY_NAME["encode"], call, FILE, WATCH)) == ""


def test_a_token_more_than_bytes_is_found() -> None:
    call: Callable[..., Any] = lambda data: np.zeros(len(data) + 1, np.int32)  # noqa: E731
    found = found_of(Guarded(BY_NAME["encode"], call, FILE, WATCH))
    assert "returns int32 [6]; it has to return int32 [T] = [5]" in found
