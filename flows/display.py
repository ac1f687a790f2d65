"""Puts rows and words on the terminal: results on stdout, everything else on stderr.

Colour only where a terminal reads it and NO_COLOR does not forbid it; verdicts carry
their word as well as their colour.
"""

import datetime
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

Row = Mapping[str, Any]

_STYLES = {
    "accept": "green",
    "accept (undrilled)": "green",
    "revise": "bold red",
    "not demonstrated": "yellow",
    "completed": "green",
    "running": "green",
    "failed": "bold red",
    "interrupted": "yellow",
    "met": "green",
    "unmet": "bold red",
    "invalid": "bold red",
}
_DIGEST = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{24,56}\b")
_TIME = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d+Z")
# No line is folded where neither a terminal nor COLUMNS says how wide it may be.
PLAIN_WIDTH = 10_000


class _Output(Console):
    """A console that leaves it to the command line what a broken pipe means."""

    def on_broken_pipe(self) -> None:
        """Raises it again; rich would end the process with exit code 1."""
        raise BrokenPipeError


def output() -> Console:
    """Returns the console of results."""
    is_width_known = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = None if is_width_known else PLAIN_WIDTH
    return _Output(width=width, highlight=False, soft_wrap=False)


def note(text: str) -> None:
    """Writes a line for people to stderr; it is no part of the result."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def print_json(document: Any) -> None:
    """Writes one JSON document to stdout and nothing else."""
    text = json.dumps(document, indent=1, default=_json_value, ensure_ascii=False)
    sys.stdout.write(text + "\n")


def print_table(
    rows: Iterable[Row],
    columns: Mapping[str, str],
    *,
    longest: int = 120,
    whole: Sequence[str] = (),
) -> None:
    """Prints rows as a table.

    Args:
        rows: What to print.
        columns: Column of the rows to heading, in order.
        longest: Characters after which a cell is cut, with an ellipsis.
        whole: Columns that are never folded, however narrow the terminal.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    rows = list(rows)
    for name, heading in columns.items():
        numeric = rows and all(_is_number(row[name]) for row in rows)
        table.add_column(
            heading,
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=name in whole,
        )
    for row in rows:
        table.add_row(*(_cell(row[name], longest) for name in columns))
    output().print(table)


def print_lines(lines: Sequence[str]) -> None:
    """Prints text lines to stdout as they are."""
    for line in lines:
        sys.stdout.write(line + "\n")


def seconds(duration_ns: int | None) -> str:
    """Returns a duration in seconds, such as "12.3 s"."""
    return "" if duration_ns is None else f"{duration_ns / 1e9:.1f} s"


def printable(text: str) -> str:
    """Returns text that can do nothing to a terminal but be read; lines stay lines."""
    return "".join(
        sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1]
        for sign in text
    )


def shortened(text: str) -> str:
    """Returns a digest by its beginning and a time to the second, as people compare."""
    text = _DIGEST.sub(r"\1", text)
    return _TIME.sub(r"\1 \2", text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any, longest: int) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    style = _STYLES.get(text)
    # Text comes from evidence: rich must not read markup out of it.
    text = shortened(printable(text))
    text = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return f"[{style}]{escape(text)}[/{style}]" if style else escape(text)


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    return str(value)
