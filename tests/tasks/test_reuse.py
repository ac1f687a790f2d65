"""What changed between two keys, or what did not, is told in few words."""

import pytest

from tasks.reuse import (
    explain_difference,
    explain_reuse,
    machine,
    present_run,
    working_for,
)
from warehouse.commits import Commit

BEFORE = {
    "source:model.cache": "1",
    "config:train.updates": "300",
    "artifact:trained/parameters.npz": "a" * 64,
    "runtime:jaxlib": "0.10.1",
}


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ({"source:model.cache": "2"}, "source changed: model.cache"),
        ({"source:model.new": "1"}, "source added: model.new"),
        (
            {"config:train.updates": "10"},
            "config changed: train.updates 300 -> 10",
        ),
        (
            {"artifact:trained/parameters.npz": "b" * 64},
            "artifact changed: trained/parameters.npz aaaaaaaa -> bbbbbbbb",
        ),
        ({"config:cache.new": "1"}, "config changed: cache.new (none) -> 1"),
        (
            {"runtime:jaxlib": "0.10.2", "source:model.cache": "2"},
            "runtime changed: jaxlib 0.10.1 -> 0.10.2; source changed: model.cache",
        ),
    ],
)
def test_each_kind_of_change_has_its_words(now, words):
    assert explain_difference(BEFORE, {**BEFORE, **now}) == words


def test_a_removed_module_is_named_and_many_changes_are_counted():
    assert explain_difference({"source:a": "1"}, {}) == "source removed: a"
    many = {f"source:module_{number}": "1" for number in range(9)}
    assert explain_difference({}, many).endswith("; and 6 more")


@pytest.mark.parametrize(
    ("run_id", "maker"), [("20260102-030405-abcdef",) * 2, ("", "a run on here")]
)
def test_why_an_execution_counts_again_names_it_and_its_maker(run_id, maker):
    """Commit records of before name no run."""
    commit = Commit(
        stage="train_model",
        key="a" * 64,
        nonce="0123456789abcdef",
        components={},
        artifacts=(),
        files=(),
        reason="never executed",
        started_at="2026-01-02T03:04:05.000000006Z",
        finished_at="2026-01-02T03:05:05.000000006Z",
        committed_at="2026-01-02T03:05:06.000000006Z",
        host="here",
        run_id=run_id,
    )
    assert explain_reuse(commit) == (
        "source, settings, inputs and runtime are those of execution 01234567, made by "
        f"{'run ' if run_id else ''}{maker} at 2026-01-02T03:05Z"
    )


def test_stages_work_for_the_run_of_the_block_alone():
    with working_for("outer"):
        with working_for("inner"):
            assert present_run() == "inner"
        assert present_run() == "outer"
    assert present_run() == ""


def test_the_machine_is_described_by_text_alone():
    described = machine()
    assert {"host", "processor", "cores"} <= described.keys()
    assert all(type(value) is str for value in described.values())
