"""The views: one SQL file each, whose header is executed and not only read.

    -- grain: stage, execution_id      columns that name one row; uniqueness is tested
    -- reads: raw.updates              what it reads; decides the order, and is tested
    -- review: one sentence            what a good result looks like (review views)
    -- kept: all                       computed once, when the store is opened
    -- about: the selected subject     rows of other subjects change nothing in it

The name of the file is the name of the view; a header line may be continued by another.
"""

from __future__ import annotations

import dataclasses
import functools
import graphlib
from collections.abc import Collection, Iterable
from pathlib import Path

import duckdb

from warehouse.errors import ViewError

FOLDER = Path(__file__).parent / "views"
"""Where the views lie, in one folder a layer."""

_HEADERS = ("grain", "reads", "review", "kept", "about")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ViewFile:
    """One view: what its file says about it, and its SQL."""

    name: str
    """Name of the file and of the view."""
    layer: str
    """Name of the folder: staging or review."""
    grain: tuple[str, ...]
    """Columns that name one row."""
    reads: tuple[str, ...]
    """Tables ("raw.x") and views that it selects from."""
    review: str
    """One sentence for its reader."""
    is_kept: bool
    """Whether it is computed once and kept, because many others read it."""
    is_selected: bool
    """Whether it is about the selected subject, so that it needs no history."""
    sql: str
    """The whole text of the file."""


@functools.cache
def read_views(folder: Path = FOLDER) -> tuple[ViewFile, ...]:
    """Returns every view, each after those that it reads.

    Raises:
        ViewError: a header is missing, two files have one name, or views read each
            other in a circle.
    """
    views: dict[str, ViewFile] = {}
    for path in sorted(folder.glob("*/*.sql")):
        if path.stem in views:
            raise ViewError(f"Two files are named {path.name}; a view has one file.")
        views[path.stem] = read_view(path)
    graph = {
        name: [read for read in view.reads if read in views]
        for name, view in views.items()
    }
    try:
        order = list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        raise ViewError(
            f"Views read each other in a circle: {error.args[1]}."
        ) from error
    return tuple(views[name] for name in order)


def needed_views(
    views: tuple[ViewFile, ...], names: Collection[str]
) -> tuple[ViewFile, ...]:
    """Returns those views, in their order, that answering from some names needs.

    Args:
        views: all views, each after those that it reads.
        names: tables ("raw.x") and views.
    """
    wanted = set(names)
    for view in reversed(views):
        if view.name in wanted:
            wanted |= set(view.reads)
    return tuple(view for view in views if view.name in wanted)


def read_view(path: Path) -> ViewFile:
    """Returns the view of one file.

    Raises:
        ViewError: the header does not open the file, or says nothing.
    """
    sql = path.read_text(encoding="utf-8")
    values: dict[str, str] = {}
    for line in sql.splitlines():
        name, colon, value = line.removeprefix("-- ").partition(":")
        if not line.startswith("-- ") or not colon or name not in _HEADERS:
            break
        values[name] = ", ".join(filter(None, [values.get(name), value.strip()]))
    # A staging view only renames and casts, so there is no result to judge.
    needed = {"grain", "reads"} | (
        {"review"} if path.parent.name == "review" else set()
    )
    empty = sorted(name for name in needed if not values.get(name))
    if empty:
        raise ViewError(
            f"{path.name} must open with -- grain:, -- reads: and -- review:; "
            f"it lacks {empty}."
        )
    return ViewFile(
        name=path.stem,
        layer=path.parent.name,
        grain=_names(values["grain"]),
        reads=_names(values["reads"]),
        review=values.get("review", ""),
        is_kept="kept" in values,
        is_selected="about" in values,
        sql=sql,
    )


def create_views(
    connection: duckdb.DuckDBPyConnection, views: Iterable[ViewFile]
) -> None:
    """Creates the views in the order given.

    Raises:
        ViewError: a view does not bind, or reads something its header does not name.
    """
    for view in views:
        try:
            kind = "table" if view.is_kept else "view"
            connection.execute(f"create {kind} {view.name} as\n{view.sql}")
        except duckdb.Error as error:
            first = str(error).splitlines()[0]
            raise ViewError(f"The view {view.name} cannot be made: {first}") from error


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
