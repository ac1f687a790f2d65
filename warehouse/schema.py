"""One declaration per table: a frozen dataclass from which all else derives.

A record class is a frozen keyword-only dataclass with `TABLE: ClassVar[str]` and a
sentence under each field. From it derive the Arrow schema, the check of each row
before it is written, the list of values that must never appear, and the description
of the table that users read. Nothing about a column is written down twice.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import math
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import pyarrow

from warehouse.errors import RecordError

Kind = Literal["text", "integer", "real", "boolean"]

_KINDS: Mapping[type, Kind] = {
    str: "text",
    int: "integer",
    float: "real",
    bool: "boolean",
}
_INTEGER_LIMIT = 2**63


@dataclasses.dataclass(frozen=True)
class NullWhen:
    """The mark of a column that may be null, and when."""

    circumstance: str


def null_when(circumstance: str) -> NullWhen:
    """Returns the mark of a field whose type is `Annotated[... | None, ...]`."""
    return NullWhen(circumstance)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """What one field of a record class declares."""

    name: str
    kind: Kind
    null_circumstance: str | None
    meaning: str

    @property
    def is_nullable(self) -> bool:
        """Whether the class names a circumstance in which the value is null."""
        return self.null_circumstance is not None


@functools.cache
def columns(record_class: type) -> tuple[Column, ...]:
    """Returns the declared columns of a record class, in the order of its fields.

    Raises:
        RecordError: the class is no record class, or a field has an unknown type.
    """
    if not dataclasses.is_dataclass(record_class) or not hasattr(record_class, "TABLE"):
        raise RecordError(
            f"{record_class.__name__} is not a record class: it must be a dataclass "
            "with TABLE, the name of its table."
        )
    hints = typing.get_type_hints(record_class, include_extras=True)
    meanings = field_documentation(record_class)
    return tuple(
        _column(record_class, field.name, hints[field.name], meanings)
        for field in dataclasses.fields(record_class)
    )


def _column(
    record_class: type, name: str, hint: Any, meanings: Mapping[str, str]
) -> Column:
    circumstance = None
    if typing.get_origin(hint) is Annotated:
        hint, *marks = typing.get_args(hint)
        circumstance = next(m.circumstance for m in marks if isinstance(m, NullWhen))
    allows_none = isinstance(hint, types.UnionType) or type(None) in typing.get_args(
        hint
    )
    plain = [part for part in typing.get_args(hint) if part is not type(None)]
    value_type = plain[0] if allows_none and plain else hint
    if value_type not in _KINDS or allows_none != (circumstance is not None):
        raise RecordError(
            f"{record_class.__name__}.{name} is declared as {hint!r}; allowed are str, "
            "int, float and bool, and Annotated[... | None, null_when(...)] of these."
        )
    return Column(
        name=name,
        kind=_KINDS[value_type],
        null_circumstance=circumstance,
        meaning=meanings.get(name, ""),
    )


def field_documentation(record_class: type) -> Mapping[str, str]:
    """Returns the sentence that stands under each field of a dataclass, by name."""
    module = inspect.getmodule(record_class)
    body = _class_bodies(module).get(record_class.__qualname__, []) if module else []
    sentences = {}
    for statement, following in itertools.pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        ):
            sentences[statement.target.id] = " ".join(following.value.value.split())
    return sentences


@functools.cache
def _class_bodies(module: types.ModuleType) -> Mapping[str, list[ast.stmt]]:
    tree = ast.parse(inspect.getsource(module))
    return {
        node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)
    }


@functools.cache
def arrow_schema(record_class: type) -> pyarrow.Schema:
    """Returns the Arrow schema of a record class: int64, float64, string or bool."""
    arrow_types = {
        "text": pyarrow.string(),
        "integer": pyarrow.int64(),
        "real": pyarrow.float64(),
        "boolean": pyarrow.bool_(),
    }
    return pyarrow.schema(
        pyarrow.field(column.name, arrow_types[column.kind], column.is_nullable)
        for column in columns(record_class)
    )


def record_from(record_class: type, values: Mapping[str, Any]) -> Any:
    """Returns a record built from named values, for rows that a program wrote.

    Fields with a default may be left out. The values themselves are checked when they
    are written (`check_records`).

    Raises:
        RecordError: a field is unknown, or one without a default is missing.
    """
    known, required = _field_names(record_class)
    if values.keys() <= known and required <= values.keys():
        return record_class(**values)
    raise RecordError(
        f"A row for {record_class.__name__} has the unknown fields "
        f"{sorted(values.keys() - known)} and lacks "
        f"{sorted(required - values.keys())}; its fields are {sorted(known)}."
    )


@functools.cache
def _field_names(record_class: type) -> tuple[frozenset[str], frozenset[str]]:
    known = [column.name for column in columns(record_class)]
    required = [
        field.name
        for field in dataclasses.fields(record_class)
        if field.default is dataclasses.MISSING
    ]
    return frozenset(known), frozenset(required)


def check_records(record_class: type, records: Sequence[Any]) -> None:
    """Checks every value of every record against the declaration of its column.

    Raises:
        RecordError: a value has another type, is null without being allowed to, is NaN
            or infinite, or does not fit 64 bits; the text names row and column.
    """
    for column in columns(record_class):
        values = [getattr(record, column.name) for record in records]
        if _may_hold_problem(column, values):
            _raise_first_problem(record_class, column, values)


def _may_hold_problem(column: Column, values: Sequence[Any]) -> bool:
    # Types are few, so a column of plain integers or booleans is settled without
    # looking at each value twice; the slow path decides about all others.
    kinds = set(map(type, values))
    if column.is_nullable:
        kinds.discard(type(None))
    if column.kind == "real" and kinds == {float}:
        return not all(map(math.isfinite, filter(None, values)))
    if column.kind == "text" and kinds == {str}:
        return not all(map(str.isascii, filter(None, values)))
    if column.kind == "integer" and kinds == {int}:
        whole = [value for value in values if value is not None]
        return max(whole) >= _INTEGER_LIMIT or min(whole) < -_INTEGER_LIMIT
    return bool(kinds) and not (column.kind == "boolean" and kinds == {bool})


def _raise_first_problem(
    record_class: type, column: Column, values: Sequence[Any]
) -> None:
    for row, value in enumerate(values):
        problem = _problem(column, value)
        if problem:
            raise RecordError(
                f"{record_class.__name__}.{column.name} of row {row} is {value!r}, "
                f"which {problem}; the column means: {column.meaning}"
            )


def _problem(column: Column, value: Any) -> str | None:
    if value is None:
        return None if column.is_nullable else "is null where null is never allowed"
    is_of_kind = {
        "text": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "real": isinstance(value, int | float) and not isinstance(value, bool),
        "boolean": isinstance(value, bool),
    }[column.kind]
    if not is_of_kind:
        return f"is {type(value).__name__} where {column.kind} is declared"
    if column.kind == "integer" and not -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        return "does not fit a signed 64-bit integer (store seeds and digests as text)"
    if column.kind == "real" and not math.isfinite(value):
        return "is not finite (store null and a reason instead)"
    if column.kind == "text" and any("\ud800" <= sign <= "\udfff" for sign in value):
        return "holds a lone surrogate, which UTF-8 cannot store"
    return None
