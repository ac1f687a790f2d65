"""A database of a made store that gets each view when a query first names it.

To make every view takes half a second, which a test of three of them does not owe. That
a view says the same without those it does not read is shown in test_readme_queries.py,
and test_views.py makes all of them at once.
"""

from __future__ import annotations

from typing import Any

import duckdb

from warehouse.load import known_names
from warehouse.query import names_read
from warehouse.view_files import ViewFile, create_views, needed_views


class OnDemand:
    """The tables of a store, and those of its views that were asked for."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, views: tuple[ViewFile, ...]
    ) -> None:
        """Takes a database that has no view yet, and those that it may get."""
        self._connection = connection
        self._views = views
        self._made: set[str] = set()

    def execute(self, query: str, *parameters: Any) -> duckdb.DuckDBPyConnection:
        """Returns the answer to a query, after it has made the views that it reads."""
        named = names_read(query, known_names())
        views = self._views if named is None else needed_views(self._views, named)
        create_views(
            self._connection, [view for view in views if view.name not in self._made]
        )
        self._made.update(view.name for view in views)
        return self._connection.execute(query, *parameters)

    def close(self) -> None:
        """Ends the database."""
        self._connection.close()
