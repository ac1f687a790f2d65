"""What a report shows of one run: each view is asked once, each picture drawn once.

The page and the parts that are published beside it show the same rows.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import duckdb

from warehouse.report_pictures import Picture, draw_pictures

Row = dict[str, Any]

# Name in the template or in a picture -> the view it shows, in the view's own order.
VIEWS: Mapping[str, str] = {
    "tasks": "task_verdicts",
    "claims": "verdicts",
    "requirements": "nearest_rows",
    "curve": "learning_curve",
    "levels": "loss_levels",
    "attention": "attention_head",
    "caches": "cache_bytes",
    "errors": "logit_error_summary",
    "stages": "stage_durations",
    "drills": "drills",
    "kills": "kill_matrix",
}


class ReportRows:
    """The rows and pictures of the selected run, asked for when they are needed."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Asks nothing yet.

        Args:
            connection: What `warehouse.load.open_warehouse` returned for the run.
        """
        self._connection = connection
        self._rows: dict[str, list[Row]] = {}

    def of(self, view: str) -> list[Row]:
        """Returns the rows of a view by column, in its own order."""
        if view not in self._rows:
            result = self._connection.execute(f"select * from {view}")  # ours
            names = [column[0] for column in result.description or ()]
            self._rows[view] = [
                dict(zip(names, values, strict=True)) for values in result.fetchall()
            ]
        return self._rows[view]

    @cached_property
    def pictures(self) -> list[Picture]:
        """The pictures whose rows exist."""
        return draw_pictures({name: self.of(view) for name, view in VIEWS.items()})
