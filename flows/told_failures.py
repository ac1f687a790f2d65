"""Failures whose text is the one sentence that a user needs: no traceback beside it.

Prefect logs a traceback of its own engine and of ours for every task that fails. What a
user's function did wrong, or what a store lacks, stands in the sentence; where it came
from in this project helps nobody. A failure of another kind is a defect of ours, and
keeps its traceback.
"""

import logging

from model.refusal import Refused
from tasks.errors import StageError
from warehouse.errors import WarehouseError

TOLD = (Refused, StageError, WarehouseError)
"""Errors whose text is the one sentence that a user needs."""
LOGGERS = ("prefect.task_runs", "prefect.flow_runs")


def without_traceback(record: logging.LogRecord) -> bool:
    """Takes the traceback of a failure that is told in a sentence off its line."""
    if record.exc_info and isinstance(record.exc_info[1], TOLD):
        record.exc_info, record.exc_text = None, None
    return True


def hide_tracebacks_of_told_failures() -> None:
    """Has Prefect log the sentence alone; a second call changes nothing."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(without_traceback)
