"""A failure that has its sentence is logged without a traceback, another with one."""

import logging

import pytest

from flows.told_failures import LOGGERS, hide_tracebacks_of_told_failures
from model.refusal import ReasonCode, Refused
from tasks.errors import ProgramRefused
from warehouse.errors import StoreError


class Kept(logging.Handler):
    """Keeps the records that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.mark.parametrize("name", LOGGERS)
@pytest.mark.parametrize(
    ("error", "is_told"),
    [
        (ProgramRefused("implementation_misbehaved", "`encode` raises"), True),
        (Refused(ReasonCode.REQUEST_MALFORMED, "no such fault"), True),
        (StoreError("the store is full"), True),
        (ValueError("a defect of ours"), False),
    ],
)
def test_only_a_failure_without_a_sentence_shows_where_it_came_from(
    name: str, error: Exception, is_told: bool
) -> None:
    for _ in range(2):
        hide_tracebacks_of_told_failures()
    logger, kept = logging.getLogger(name), Kept()
    logger.addHandler(kept)
    try:
        raise error
    except Exception as raised:
        logger.error(f"Task run failed with exception: {raised!r}", exc_info=True)
    finally:
        logger.removeHandler(kept)
    (record,) = kept.records
    assert str(error) in record.getMessage()
    assert (record.exc_info is None) == is_told
