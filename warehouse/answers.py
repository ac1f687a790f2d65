"""The answer to a query, and the three forms in which it is written."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from warehouse.errors import QueryError

Format = Literal["table", "csv", "json"]
FORMATS: tuple[Format, ...] = ("table", "csv", "json")
"""The forms in which an answer can be written."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a query gave."""

    names: tuple[str, ...]
    """Names of the columns."""
    rows: tuple[tuple[Any, ...], ...]
    """Values, row by row."""
    is_cut: bool
    """Whether there were more rows than the limit allows."""


def render(answer: Answer, form: Format) -> str:
    """Returns an answer as text.

    Args:
        answer: what `ask` returned.
        form: "table" for people, "csv", or "json" (a list of objects); null is "–"
            in a table, empty in CSV and null in JSON. A table rounds reals to six
            digits; CSV and JSON hold them exactly.

    Raises:
        QueryError: the format is unknown.
    """
    if form == "json":
        names = _distinct(answer.names)
        rows = [
            {name: _json_value(value) for name, value in zip(names, row, strict=True)}
            for row in answer.rows
        ]
        return json.dumps(rows, ensure_ascii=False, indent=1, allow_nan=False)
    if form == "csv":
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(answer.names)
        writer.writerows(answer.rows)
        return stream.getvalue().rstrip("\n")
    if form == "table":
        return _table(answer)
    raise QueryError(f"The format {form!r} is unknown; allowed are {list(FORMATS)}.")


def _distinct(names: tuple[str, ...]) -> list[str]:
    # Two columns of one name would silently become one in an object.
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return distinct


def _json_value(value: Any) -> Any:
    """Returns a value of DuckDB as JSON has it; NaN and infinity as text."""
    if isinstance(value, Mapping):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)


def _table(answer: Answer) -> str:
    cells = [answer.names, *([_cell(value) for value in row] for row in answer.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    columns = list(zip(*answer.rows, strict=True)) or [()] * len(answer.names)
    marks = [
        f"{'>' if _is_number(values) else '<'}{width}"
        for values, width in zip(columns, widths, strict=True)
    ]
    lines = ["  ".join(map(format, line, marks)).rstrip() for line in cells]
    lines.insert(1, "  ".join("─" * width for width in widths))
    count = len(answer.rows)
    lines.append(f"({count} row{'' if count == 1 else 's'})")
    return "\n".join(lines)


def _is_number(values: tuple[Any, ...]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in present
    )


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        is_whole = value.is_integer() and abs(value) < 2**53
        return str(int(value)) if is_whole else f"{value:.6g}"
    # A control character in evidence must not reach somebody's terminal.
    return "".join(
        sign if sign.isprintable() else repr(sign)[1:-1] for sign in str(value)
    )
