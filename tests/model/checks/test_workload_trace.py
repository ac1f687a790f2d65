"""A result of a target whose summary of its trace was edited and sealed anew."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.programs import judge_target
from model.refusal import Refused
from model.workload_trace import RAW, TRACE, summary_of_raw
from tests.target_results import changing, dressed, reseal

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def result(rehearsed: Path, tmp_path: Path) -> Path:
    """A result that would be accepted if it were not synthetic."""
    return dressed(rehearsed, tmp_path / "dressed")


def configure(folder: Path, file: str, **changes: Any) -> None:
    with changing(folder / file) as value:
        value |= changes


def _without_raw(folder: Path) -> None:
    (folder / "executed" / RAW).unlink()


def _another_raw(folder: Path) -> None:
    (folder / "executed" / RAW).write_bytes(gzip.compress(b"no trace at all"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda f: configure(f, "executed/trace.json", regions={"text-prefill": 5}),
            "says regions",
        ),
        (
            lambda f: configure(
                f, "executed/trace.json", planes={"/device:GPU:0": {"Stream #1": 9}}
            ),
            "says planes",
        ),
        (_without_raw, "without its raw trace"),
        (_another_raw, "is no trace"),
    ],
)
def test_a_summary_that_its_raw_trace_does_not_bear_out_is_refused(
    change: Callable[[Path], None], told: str, result: Path
) -> None:
    """It was sealed again, so every digest is right."""
    change(result)
    reseal(result)
    with pytest.raises(Refused, match=told):
        judge_target.main({"folder": str(result)}, result.parent)


def test_the_summary_of_a_rehearsal_is_what_its_raw_trace_holds(rehearsed) -> None:
    folder = rehearsed / "executed"
    told = json.loads((folder / TRACE).read_text())
    assert summary_of_raw(folder) == told
    assert set(told["regions"].values()) == {5}
