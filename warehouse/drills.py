"""What a drill asks of the warehouse: its rules, and what they read in a trial."""

from __future__ import annotations

import hashlib
from pathlib import Path

from warehouse import contract, view_files
from warehouse.load import open_warehouse
from warehouse.records.drills import DrilledRequirement
from warehouse.schema import record_from

READ_FROM = "tried_requirements"


def rules_sha256() -> str:
    """Returns the digest of the contract and of every view, 64 hexadecimal digits."""
    files = [
        *contract.FOLDER.glob("task_*.toml"),
        *view_files.FOLDER.glob("*/*.sql"),
    ]
    whole = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.name):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        whole.update(f"{file.name} {digest}\n".encode())
    return whole.hexdigest()


def read_requirements(root: Path) -> list[DrilledRequirement]:
    """Returns what each requirement reads about each system of a trial.

    Args:
        root: Folder of the trial's store.
    """
    connection = open_warehouse(root, names=(READ_FROM,))
    try:
        found = connection.execute(f"select * from {READ_FROM}")
        names = [column[0] for column in found.description or ()]
        return [
            record_from(DrilledRequirement, dict(zip(names, row, strict=True)))
            for row in found.fetchall()
        ]
    finally:
        connection.close()
