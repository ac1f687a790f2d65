"""Which evidence files have to be decoded, and whether they are shaped as declared.

A file is hashed whenever its execution is read, which is quick. To decode it is not,
and what nobody asks for needs no rows: its shape is all that could be wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow

from warehouse.commits import Commit, EvidenceFile
from warehouse.errors import RecordError
from warehouse.evidence import schema_difference


class Shapes:
    """Decides which evidence files are decoded, and checks the shape of those.

    What one version of the source wrote has one shape, so a table that nobody asked for
    is decoded once for each version that wrote it.
    """

    def __init__(self, classes: Mapping[str, type], wanted: Collection[str] | None):
        """Takes every record class by the name of its table, and the tables wanted."""
        self.classes = classes
        self._wanted = wanted
        self._fitting: set[tuple[str, str, str]] = set()

    def needs(self, commit: Commit, table: str) -> bool:
        """Returns whether the file of a table has to be decoded."""
        is_wanted = self._wanted is None or table in self._wanted
        return is_wanted or self._version(commit, table) not in self._fitting

    def check(self, commit: Commit, file: EvidenceFile, table: pyarrow.Table) -> None:
        """Remembers the version that wrote a decoded file.

        Raises:
            RecordError: the file is not shaped as its class and its commit say.
        """
        difference = schema_difference(self.classes[file.table], table)
        if difference or table.num_rows != file.rows:
            raise RecordError(
                difference or f"has {table.num_rows} rows, not {file.rows}"
            )
        version = self._version(commit, file.table)
        if all(version):
            self._fitting.add(version)

    def _version(self, commit: Commit, table: str) -> tuple[str, str, str]:
        kind = self.classes.get(table)
        module = "" if kind is None else kind.__module__
        source = commit.components.get
        schema = source("source:warehouse.schema", "")
        return table, source(f"source:{module}", ""), schema
