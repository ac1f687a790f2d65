"""A span is told to whoever listens, also when its block raises."""

import pytest

from tasks import progress
from tasks.clock import KEY, PROGRAMS, spending


def test_a_span_covers_its_block_and_names_stage_and_part():
    heard = []
    with (
        progress.listening(lambda stage, event: heard.append((stage, event))),
        spending("train_model", PROGRAMS),
        spending("train_model", KEY),
    ):
        pass
    (inner, outer) = (event for _, event in heard)
    assert [stage for stage, _ in heard] == ["train_model"] * 2
    assert (inner["part"], outer["part"]) == (KEY, PROGRAMS)
    assert outer["started_ns"] <= inner["started_ns"]
    assert inner["started_ns"] <= inner["ended_ns"] <= outer["ended_ns"]


def test_a_block_that_raises_has_taken_its_time_too():
    heard = []
    with (
        progress.listening(lambda stage, event: heard.append(event["part"])),
        pytest.raises(ValueError, match="as it were"),
        spending("train_model", PROGRAMS),
    ):
        raise ValueError("as it were")
    assert heard == [PROGRAMS]
