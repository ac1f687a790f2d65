"""A write and a look for the last checkpoint, each with what deceives it."""

from pathlib import Path

import pytest

from model import checkpoint
from model.checks import written
from model.faults import find
from tests.judged import OPEN, REVISE, verdict
from tests.model.checks.test_changed_requests import asked

STAGE = "certify_crash"


def test_what_a_write_leaves_depends_on_nothing_before_it(tmp_path: Path) -> None:
    rows = written.measure_written(asked(None))

    assert [row["case_name"] for row in rows] == ["older_is_younger", *written.LEFT]
    assert verdict(tmp_path, STAGE, rows) == OPEN


@pytest.mark.parametrize(
    ("name", "unmet"),
    [
        ("latest-checkpoint-by-date", {"older_is_younger"}),
        ("existing-checkpoint-kept", set(written.LEFT)),
    ],
)
def test_a_write_that_is_deceived_is_revised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, unmet: set[str]
) -> None:
    fault = find(name)
    function = fault.replaces.rpartition(".")[2]
    original = getattr(checkpoint, function)
    monkeypatch.setattr(checkpoint, function, fault.replacement(original))

    rows = written.measure_written(asked(None))

    wrong = {row["case_name"] for row in rows if row["expected"] != row["measured"]}
    assert wrong == unmet
    assert verdict(tmp_path, STAGE, rows) == REVISE
