"""Opens the evidence of a run for the commands that only look.

Nothing here loads JAX or Prefect, so these commands answer in under a second. Every
question is a view of the warehouse; a command shows its rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol

from flows.display import note
from warehouse.errors import WarehouseError

Row = dict[str, Any]
MOST_NAMES = 20
"""Names that are listed at most where one is unknown, the nearest ones."""
ACCEPTED = "accepted"
"""Name that stands for the accepted baseline of a run, as the warehouse knows it."""


class Connection(Protocol):
    """The database with the evidence, as the warehouse opens it."""

    def execute(self, query: str) -> Any:
        """Returns the result of one statement."""


class UnknownName(WarehouseError):
    """A name on the command line is none of those that exist."""


def open_run(
    root: Path,
    run: str | None,
    *,
    has_history: bool = False,
    names: Collection[str] | None = None,
    against: str | None = None,
) -> Any:
    """Returns the warehouse with a run selected, as `open_warehouse` opens it.

    Args:
        root: Folder of the store.
        run: Id of a run, the beginning of one, or "latest"; None where there may be
            no run.
        has_history: Whether the rows of other subjects are read too, which takes
            longer the more runs there are.
        names: The tables and views that will be asked for; None is all of them.
        against: The run that the selected one is compared with, or `ACCEPTED` for its
            baseline; None compares nothing.
    """
    from warehouse.load import open_warehouse

    return open_warehouse(
        root, run, has_history=has_history, names=names, against=against
    )


def view_rows(connection: Connection, view: str, **wanted: Any) -> list[Row]:
    """Returns the rows of a view as dictionaries, in its own order.

    Args:
        connection: The warehouse.
        view: Name of a view or table.
        wanted: Columns and the one value each must have.
    """
    result = connection.execute(f"select * from {view}")  # names are ours
    names = [column[0] for column in result.description or ()]
    rows = [dict(zip(names, values, strict=True)) for values in result.fetchall()]
    return [row for row in rows if all(row[name] == wanted[name] for name in wanted)]


def selected_run(connection: Connection) -> Row:
    """Returns the row of the run that was selected.

    Raises:
        UnknownName: The store has no run yet.
    """
    selection = view_rows(connection, "raw.selection")
    run_id = selection[0]["run_id"] if selection else ""
    if not run_id:
        raise UnknownName("The store has no run yet; `harness run` makes one.")
    return view_rows(connection, "runs", run_id=run_id)[0]


def tell_unless_completed(run: Row) -> None:
    """Says on stderr which run is used when it has not done all of its stages."""
    if run["status"] != "completed":
        note(f"Using run {run['run_id']}, which is {run['status']}: {run['message']}")


def check_known(what: str, name: str, known: list[str]) -> None:
    """Refuses a name that is not known, and says which one may be meant.

    Raises:
        UnknownName: It is not among `known`.
    """
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        shown, others = known, ""
        if len(known) > MOST_NAMES:
            shown = difflib.get_close_matches(name, known, n=MOST_NAMES, cutoff=0)
            others = f", and {len(known) - MOST_NAMES} others"
        raise UnknownName(
            f"{what} {name!r} is unknown.{hint} Known: "
            f"{', '.join(shown) or 'none'}{others}."
        )
