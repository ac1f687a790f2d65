"""A function of a user's file, watched: whatever it does wrong becomes one sentence.

A stranger's function may raise, hang, return something else, or write into what it was
given. Each is found here, where the function is called, so that nobody has to read a
traceback of the harness to learn something about their own file.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from model.called import Call
from model.refusal import ReasonCode, Refused
from model.system import (
    ARRAYS,
    BYTES,
    CACHE,
    CACHE_PARTS,
    IDS,
    PARAMETERS,
    TEXT,
    Function,
)
from model.watch import Watch

_ARRAY = re.compile(r"^(\w+) \[([^\]]*)\]")
_LONGEST_MESSAGE = 200
# What JAX raises where a traced array meets NumPy, a Python number or an `if`.
_TRACING_ERRORS = ("Tracer", "Concretization", "UnexpectedTracer", "NonConcrete")
CODES = {"fp32": "float32", "bf16": "bfloat16", "int8": "int8"}

Shapes = dict[str, Any]
"""Size of each letter; "..." stands for several sizes."""


class Guarded:
    """A user's function; calling it checks all that can be seen of one call."""

    def __init__(self, function: Function, call: Any, file: Path, watch: Watch) -> None:
        """Takes the function of a file for one of the system."""
        self.function = function
        self.call = call
        self.file = file
        self.watch = watch
        if not callable(call):
            found = f"is {_one_line(call, repr)}, no function"
            raise self._wrong(found, "define it with `def`")
        self._require_arguments()
        self.options = _accepted(call, function.options)

    def _require_arguments(self) -> None:
        """Refuses a function that cannot be called with the arguments it will get."""
        try:
            signature = inspect.signature(self.call)
        except (TypeError, ValueError):
            return  # It hides them; calling it will show.
        try:
            signature.bind(*self.function.takes)
        except TypeError as error:
            raise self._wrong(
                f"takes other arguments ({error})",
                f"define it as {self.function.signature}",
            ) from None

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Returns what the function returns; several values as a tuple.

        Raises:
            Refused: `implementation_misbehaved`, with what it did.
        """
        before = [_content(each) for each in arguments]
        # Reading what came back may run the function's own code too: a generator's.
        with self.watch.over(Call(self.file, self.function.name)):
            result = self._called(arguments, options)
            for name, given, content in zip(
                self.function.takes, arguments, before, strict=True
            ):
                if _content(given) != content:
                    raise self._wrong(
                        f"changes its argument `{name}`",
                        "return new values and leave arguments as they are",
                    )
            return self._read(result, _bound(self.function, arguments))

    def _called(self, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        try:
            with _usual_promotion():
                return self.call(*arguments, **options)
        except Refused:
            raise
        except NotImplementedError as error:
            raise self._wrong(
                "is not filled in",
                f"it has to return {self.owed}: {self.function.does} Delete it to "
                "leave the built-in one in its place",
                error,
            ) from None
        # Whatever a stranger's code raises, its own line is what they need to see; a
        # call of `exit` would end the stage as if all of it had been measured.
        except BaseException as error:  # noqa: BLE001
            raise self._raised(error) from None

    def _read(self, result: Any, shapes: Shapes) -> Any:
        try:
            return self._checked(result, shapes)
        except Refused:
            raise
        # An object of a class of theirs answers as it likes.
        except BaseException as error:  # noqa: BLE001
            what = f"a {type(result).__name__} that cannot be read"
            raise self._unreadable(what, error) from None

    def cannot_be_compared(self, error: Exception) -> Refused:
        """Returns what is said when a value cannot be held against another one."""
        return self._unreadable("something that cannot be compared", error)

    def _unreadable(self, what: str, error: BaseException) -> Refused:
        told = f"{type(error).__name__}: {first_line(error)}".rstrip(": ")
        advice = f"it has to return {self.owed}"
        return self._wrong(f"returns {what} ({told})", advice, error)

    def _raised(self, error: BaseException) -> Refused:
        kind = type(error).__name__
        text = first_line(error)
        advice = f"it has to return {self.owed}"
        if kind.startswith(_TRACING_ERRORS):
            advice = "it runs inside jax.jit: use jax.numpy, jnp.where and lax.cond"
        found = f"raises {kind}: {text}" if text else f"raises {kind}"
        return self._wrong(found, advice, error)

    @property
    def owed(self) -> str:
        """What it has to return, in words."""
        return ", ".join(self.function.gives)

    def wrong_value(self, found: str, advice: str) -> Refused:
        """Returns what is said about a value that is not as it has to be."""
        return self._wrong(found, advice)

    def _wrong(
        self, found: str, advice: str, error: BaseException | None = None
    ) -> Refused:
        line = ""
        if error is not None:
            line = _line_of_error(self.file, error)
        return Refused(
            ReasonCode.IMPLEMENTATION_MISBEHAVED,
            f"{self.file.name}{line}: `{self.function.name}` {found}; {advice}.",
            [self.function.name],
        )

    def _checked(self, result: Any, shapes: Shapes) -> Any:
        gives = self.function.gives
        if len(gives) == 1:
            return self._value("", result, gives[0], shapes)
        if not isinstance(result, (tuple, list)) or len(result) != len(gives):
            raise self._wrong(
                f"returns {_described(result)}",
                f"it has to return {len(gives)} values: {self.owed}",
            )
        return tuple(
            self._value(f" as value {number}", value, owed, shapes)
            for number, (value, owed) in enumerate(zip(result, gives, strict=True), 1)
        )

    def _value(self, where: str, value: Any, owed: str, shapes: Shapes) -> Any:
        """Returns one value of the result, whose kind, shape and dtype are right."""
        if owed == PARAMETERS:
            return self._tree(where, value, shapes)
        if owed == CACHE:
            return self._cache(where, value, shapes)
        kinds = {BYTES: bytes, TEXT: str, ARRAYS: Mapping}
        if owed in kinds:
            if not isinstance(value, kinds[owed]):
                raise self._other(where, value, owed)
            return value
        if owed == IDS:
            try:
                return tuple(int(token) for token in value)
            except (TypeError, ValueError):
                raise self._other(where, value, "ids, a list of int") from None
        return self._array(where, value, owed, shapes)

    def _other(self, where: str, value: Any, owed: str) -> Refused:
        return self._wrong(
            f"returns {_described(value)}{where}", f"it has to return {owed}"
        )

    def _tree(self, where: str, value: Any, shapes: Shapes) -> Any:
        """Parameters are held against those that came in, or the table of the model."""
        table = shapes[PARAMETERS]
        if not isinstance(value, Mapping):
            raise self._other(where, value, "a dictionary of arrays by name")
        for kind, names in (
            ("lacks", table.keys() - value.keys()),
            ("has the unknown", value.keys() - table.keys()),
        ):
            if names:
                raise self._wrong(
                    f"returns parameters{where} whose dictionary {kind} {min(names)!r}",
                    f"the names are {', '.join(table)}",
                )
        for name, shape in table.items():
            axes = ", ".join(map(str, shape))
            self._array(f"{where} for {name!r}", value[name], f"float32 [{axes}]", {})
        return {name: value[name] for name in table}

    def _cache(self, where: str, value: Any, shapes: Shapes) -> Any:
        if not isinstance(value, (tuple, list)) or len(value) != len(CACHE_PARTS):
            owed = f"a cache of {len(CACHE_PARTS)} arrays: {', '.join(CACHE_PARTS)}"
            raise self._other(where, value, owed)
        for part, (name, owed) in zip(value, CACHE_PARTS.items(), strict=True):
            # Unused slots may hold anything.
            self._array(f"{where} in cache.{name}", part, owed, shapes, finite=False)
        return tuple(value)

    def _array(
        self, where: str, value: Any, owed: str, shapes: Shapes, finite: bool = True
    ) -> Any:
        match = _ARRAY.match(owed)
        assert match is not None, owed
        dtype = shapes["codes"] if match[1] == "codes" else match[1]
        if not hasattr(value, "dtype") or not hasattr(value, "shape"):
            raise self._other(where, value, f"{dtype} [{match[2]}]")
        wanted = _sizes(match[2], shapes, tuple(value.shape))
        if str(value.dtype) != dtype or tuple(value.shape) != wanted:
            has_letters = any(sign.isalpha() or sign == "." for sign in match[2])
            axes = f"[{match[2]}] = " if has_letters else ""
            raise self._wrong(
                f"returns {_described(value)}{where}",
                f"it has to return {dtype} {axes}{list(wanted)}",
            )
        if finite and dtype in ("float32", "bfloat16") and not _is_traced(value):
            wrong = int(np.sum(~np.isfinite(np.asarray(value).astype(np.float32))))
            if wrong:
                raise self._wrong(
                    f"returns {wrong} of {value.size} numbers that are not finite"
                    f"{where}",
                    "look for a division by zero, a log of zero or a row without keys",
                )
        return value


def first_line(error: BaseException) -> str:
    """Returns the first line of what an error says, fit for a terminal."""
    return _one_line(error, str).rstrip(".")


def _one_line(value: Any, told_by: Callable[[Any], str]) -> str:
    try:
        lines = told_by(value).strip().splitlines() or [""]
    except BaseException:  # noqa: BLE001
        return ""  # Its class says it with a method of its own.
    shown = "".join(sign if sign.isprintable() else "?" for sign in lines[0])
    return shown[:_LONGEST_MESSAGE]


def _accepted(call: Any, options: Mapping[str, str]) -> frozenset[str]:
    """Returns which of the optional keywords a function takes."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters):
        return frozenset(options)
    return frozenset(each.name for each in parameters) & options.keys()


def _bound(function: Function, arguments: Sequence[Any]) -> Shapes:
    """Returns what the letters of a signature stand for in one call."""
    shapes: Shapes = {}
    for (name, owed), value in zip(function.takes.items(), arguments, strict=True):
        match = _ARRAY.match(owed)
        if match is not None and hasattr(value, "shape"):
            _sizes(match[2], shapes, tuple(value.shape))
        if match is not None and match[1] == "codes":
            shapes["codes"] = str(value.dtype)
        if name == "data" and "int32 [T]" in function.gives:
            shapes["T"] = len(value)  # one token a byte
        if name == "model":
            shapes |= _of_model(value)
        if name == "policy" and hasattr(value, "cache"):
            shapes["codes"] = CODES[value.cache]
        if name == "cache_policy":
            shapes["codes"] = CODES[value]
        if name == "documents":
            shapes["S"] = int(value)
        if name == PARAMETERS:
            shapes[PARAMETERS] = {key: tuple(x.shape) for key, x in value.items()}
    if PARAMETERS in function.gives and PARAMETERS not in shapes:
        shapes[PARAMETERS] = _of_table(arguments[0])
    return shapes


def _of_table(model: Any) -> dict[str, tuple[int, ...]]:
    """Returns name and shape of every parameter; loaded only where one is made."""
    declared = importlib.import_module("model.parameters").parameter_table(model)
    return {spec.name: spec.shape for spec in declared}


def _of_model(model: Any) -> Shapes:
    sizes = {
        "V": model.vocabulary_tokens,
        "C": model.context_tokens,
        "D": model.width,
        "H": model.heads,
        "K": model.head_width,
        "L": model.blocks,
    }
    return sizes


def _sizes(axes: str, shapes: Shapes, found: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape that letters ask for; a new letter takes the size it meets."""
    letters = axes.replace(",", " ").split()
    known = len([letter for letter in letters if letter != "..."])
    wanted: list[int] = []
    for letter in letters:
        rest = found[len(wanted) :]
        if letter == "...":
            size = shapes.setdefault("...", found[: max(0, len(found) - known)])
            wanted += size
        elif letter.isdecimal():
            wanted.append(int(letter))
        else:
            wanted.append(shapes.setdefault(letter, rest[0] if rest else 1))
    return tuple(wanted)


def _content(value: Any) -> Any:
    """Returns what has to stay the same about an argument."""
    if isinstance(value, np.ndarray):
        return value.tobytes(), value.dtype.str, value.shape
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, SimpleNamespace):
        return _content(vars(value))
    if isinstance(value, dict):
        # Arrays of JAX cannot be written into, but a dictionary of them can.
        return {
            name: _content(each) if isinstance(each, np.ndarray) else id(each)
            for name, each in value.items()
        }
    return None


def _described(value: Any) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} {list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"{len(value)} values"
    return f"a {type(value).__name__}" if value is not None else "None"


def _is_traced(value: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.core.Tracer)


@contextmanager
def _usual_promotion() -> Iterator[None]:
    """The harness runs JAX strictly; a stranger's file need not be written for it."""
    jax = sys.modules.get("jax")
    with ExitStack() as stack:
        if jax is not None:
            stack.enter_context(jax.numpy_dtype_promotion("standard"))
            stack.enter_context(jax.numpy_rank_promotion("allow"))
        yield


def _line_of_error(file: Path, error: BaseException) -> str:
    """Returns ", line 12": the innermost line in the folder of a user's file."""
    own = [
        (Path(frame.filename), frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if file.parent in Path(frame.filename).parents
    ]
    if not own:
        return ""
    name, line = own[-1]
    return f", line {line}" if name == file else f" ({name.name}, line {line})"
