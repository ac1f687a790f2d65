"""Training says how far it is now and then, and a dead server stops nothing."""

import pytest

from flows import progress_pages
from flows.progress_pages import ProgressPages, progress_shown
from tasks import progress


class Pages:
    """Stands in for Prefect's artifacts and log."""

    def __init__(self, monkeypatch):
        self.made, self.updated, self.lines = [], [], []
        self.now = 100.0
        self.is_dead = False
        monkeypatch.setattr(progress_pages, "create_progress_artifact", self.create)
        monkeypatch.setattr(progress_pages, "update_progress_artifact", self.update)
        monkeypatch.setattr(progress_pages, "get_run_logger", lambda: self)
        monkeypatch.setattr(progress_pages.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(progress_pages.TaskRunContext, "get", lambda: object())

    def create(self, share, *, key, description):
        if self.is_dead:
            raise RuntimeError("Failed to reach API")
        self.made.append((key, share, description))
        return key

    def update(self, artifact, share, *, description):
        self.updated.append((artifact, share))

    def info(self, text, *values):
        self.lines.append(text % values)

    warning = info


@pytest.fixture
def pages(monkeypatch):
    return Pages(monkeypatch)


def update(number, label=""):
    message = f"update {number} of 300, loss 1.000 nats/token"
    return {
        "event": "update", "update": number, "of": 300,
        "message": message, "label": label,
    }  # fmt: skip


def test_updates_become_one_artifact_a_stage_that_is_changed_now_and_then(pages):
    shown = ProgressPages("fixture_tuned")
    for number in range(10, 301, 10):
        shown.hear("train_model", update(number))
        pages.now += 1.0
    ((key, share, words),) = pages.made
    assert key == "fixture-tuned-train-model-progress"
    assert share == pytest.approx(100 * 10 / 300)
    assert words == "train_model: update 10 of 300, loss 1.000 nats/token"
    assert len(pages.updated) == 10, "one in three seconds, and the last"
    assert pages.updated[-1] == (key, 100.0)


def test_stages_side_by_side_have_an_artifact_each(pages):
    shown = ProgressPages("fixture")
    shown.hear("train_model", update(10))
    shown.hear("interrupt_training", update(10, "point-05"))
    assert [key for key, _, _ in pages.made] == [
        "fixture-train-model-progress",
        "fixture-interrupt-training-progress",
    ]
    assert pages.made[1][2].startswith("interrupt_training: point-05: update 10")


def test_other_words_of_programs_are_lines_of_the_log(pages):
    shown = ProgressPages("fixture")
    shown.hear("quantize_cache", {"event": "policy", "message": "cache policy bf16"})
    shown.hear("train_model", {"event": "checkpoint", "message": "written"})
    shown.hear("train_model", {"event": progress.STARTED, "message": "never executed"})
    assert pages.lines == ["cache policy bf16"]
    assert pages.made == []


def test_a_flow_inside_another_is_shown_once(pages):
    with progress_shown("fixture"), progress_shown("fixture"):
        progress.tell("train_model", **update(10))
    with progress_shown("fixture"):
        progress.tell("train_model", **update(10))
    assert len(pages.made) == 2
    progress.tell("train_model", **update(300))
    assert pages.updated == []


def test_a_server_that_takes_nothing_is_told_once_and_then_left_alone(pages):
    pages.is_dead = True
    shown = ProgressPages("fixture")
    shown.hear("train_model", update(10))
    shown.hear("train_model", update(300))
    assert pages.lines == ["Progress is no longer published: Failed to reach API"]
