"""The calibration table: what the drills measured about the checks themselves."""

from __future__ import annotations

import tomllib
from pathlib import Path

from warehouse.contract import FOLDER
from warehouse.errors import ContractError
from warehouse.ledger import Calibration
from warehouse.schema import check_records, record_from


def read_calibration(path: Path = FOLDER / "calibration.toml") -> list[Calibration]:
    """Returns the rows of the calibration table.

    Raises:
        ContractError: the file is malformed, or a row lacks a field.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        if not document.keys() <= {"calibration"}:
            raise ContractError(f"it knows [[calibration]] only, not {list(document)}")
        rows = [
            record_from(Calibration, row) for row in document.get("calibration", [])
        ]
        check_records(Calibration, rows)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ContractError(
            f"The calibration {path.name} is malformed: {error}"
        ) from error
    return rows
