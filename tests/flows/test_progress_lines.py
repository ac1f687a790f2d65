"""Each stage says when it starts and ends, and not more than a line now and then."""

import pytest

from flows.progress_lines import ProgressLines
from tasks import progress


@pytest.fixture
def heard(capsys):
    lines = ProgressLines()

    def hear(stage, **event):
        lines.hear(stage, event)
        return capsys.readouterr().err

    return hear


def test_a_stage_says_why_it_runs_and_how_long_it_took(heard):
    assert heard("train_model", event=progress.ENTERED) == ""
    assert "executing: never executed" in heard(
        "train_model", event=progress.STARTED, message="never executed"
    )
    finished = heard(
        "train_model",
        event=progress.FINISHED,
        message="executed",
        duration_ns=2_500_000_000,
    )
    assert "train_model" in finished and "executed in 2.5 s" in finished
    assert "failed after 0.1 s" in heard(
        "train_model", event=progress.FAILED, duration_ns=100_000_000
    )


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"event": "update", "update": 60, "of": 300}, "update 60 of 300"),
        ({"event": "progress", "message": "reading"}, "reading"),
        ({"event": "checkpoint", "checkpoint": 4}, "checkpoint 4"),
        ({"event": "export", "message": "x", "label": "repeated"}, "  repeated: x"),
        ({"event": "compiled"}, "compiled"),
        ({}, ""),
    ],
)
def test_events_of_programs_are_words(event, words, heard):
    assert heard("train_model", **event).rstrip().endswith(words)


def test_many_reasons_are_cut_and_a_digest_is_short(heard):
    digest = "0123456789abcdef" * 4
    message = f"artifact changed: a {digest} -> {digest}; b; c; d"
    line = heard("train_model", event=progress.STARTED, message=message)
    shown = "artifact changed: a 01234567 -> 01234567; b; …; see `harness why`"
    assert line.rstrip().endswith(shown)


def test_a_busy_program_gets_a_line_now_and_then(heard):
    first = heard("train_model", event="update", update=1, of=300)
    second = heard("train_model", event="update", update=2, of=300)
    other = heard("resume_training", event="update", update=1, of=12)
    last = heard("train_model", event="update", update=300, of=300)
    assert first and not second and other and last


def test_listeners_hear_while_they_listen():
    seen = []
    with progress.listening(lambda stage, event: seen.append((stage, event))):
        progress.tell("a", event="x")
    progress.tell("a", event="y")
    assert seen == [("a", {"event": "x"})]
