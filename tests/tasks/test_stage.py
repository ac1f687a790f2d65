"""A stage runs when its result could differ, says why, and otherwise does not run."""

import shutil

import pytest

from tasks import progress


def test_a_second_run_is_served_from_the_commit_record(tiny, run_both):
    first = run_both()
    second = run_both()
    assert first == {
        "scale_number": "Executed: never executed",
        "add_one": "Executed: never executed",
    }
    assert [state.split(":")[0] for state in second.values()] == ["Reused", "Reused"]


def test_a_changed_constant_runs_its_importers_again_and_a_comment_none(tiny, run_both):
    run_both()
    tiny.replace("tiny/scale.py", "FACTOR = 2", "# two\nFACTOR  =  2  # still two")
    commented = run_both()
    assert all(state.startswith("Reused") for state in commented.values()), commented
    tiny.replace("tiny/other.py", "1", "2")
    unrelated = run_both()
    assert all(state.startswith("Reused") for state in unrelated.values()), unrelated
    tiny.replace("tiny/scale.py", "FACTOR  =  2", "FACTOR = 1 + 1")
    rewritten = run_both()
    # The same number comes out, so the stage after it has nothing new to compute.
    assert rewritten["scale_number"] == "Executed: source changed: tiny.scale"
    assert rewritten["add_one"].startswith("Reused")
    tiny.replace("tiny/scale.py", "1 + 1", "5")
    changed = run_both()
    assert changed["scale_number"] == "Executed: source changed: tiny.scale"
    assert changed["add_one"].startswith(
        "Executed: artifact changed: scaled/number.txt"
    )


def test_a_changed_setting_or_runtime_is_named_as_the_reason(tiny, run_both):
    run_both(number=3)
    assert run_both(number=4)["scale_number"] == (
        "Executed: config changed: number 3 -> 4"
    )
    again = run_both(number=4, runtime={"jax": "0.1"})
    assert again["scale_number"] == "Executed: runtime changed: jax 0.0 -> 0.1"


def test_a_flipped_byte_makes_its_stage_run_again_and_heals(tiny, run_both):
    run_both()
    damaged = next(
        file
        for file in (tiny.root / "artifacts").rglob("*")
        if file.is_file() and file.read_bytes() == b"6"
    )
    damaged.write_bytes(b"7")
    states = run_both()
    assert states["scale_number"].startswith("Executed: ")
    assert "number.txt" in states["scale_number"]
    assert "altered" in states["scale_number"]
    assert states["add_one"].startswith("Reused")
    assert damaged.read_bytes() == b"6"


def test_a_flipped_byte_of_evidence_makes_its_stage_run_again(tiny, run_both):
    run_both()
    for file in (tiny.root / "records").rglob("*.parquet"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    states = run_both()
    assert all("Executed" in state for state in states.values()), states
    assert all("altered" in state for state in states.values()), states


def test_recomputing_on_request_says_so(tiny, run_both):
    run_both()
    states = run_both(is_fresh=True)
    assert states["scale_number"] == "Executed: asked to recompute"
    assert states["add_one"].startswith("Reused")


def test_a_reused_stage_names_the_execution_and_the_run_that_made_it(tiny, run_both):
    from tasks.reuse import working_for
    from warehouse.store import Store

    with working_for("20260102-030405-abcdef"):
        run_both()
    with working_for("20260102-030406-fedcba"):
        states = run_both()
    for commit in Store(tiny.root).commits():
        assert commit.run_id == "20260102-030405-abcdef"
        assert states[commit.stage] == (
            f"Reused: source, settings, inputs and runtime are those of execution "
            f"{commit.nonce[:8]}, made by run 20260102-030405-abcdef at "
            f"{commit.finished_at[:16]}Z"
        )


@pytest.mark.parametrize("is_in_store", [True, False])
def test_nothing_but_our_store_decides_and_prefect_keeps_no_results(
    is_in_store, tiny, run_both
):
    """Even where all of Prefect's tasks are to keep theirs."""
    from prefect.settings import (
        PREFECT_LOCAL_STORAGE_PATH,
        PREFECT_RESULTS_PERSIST_BY_DEFAULT,
        temporary_settings,
    )

    results = tiny.folder / "results"
    settings = {
        PREFECT_LOCAL_STORAGE_PATH: results,
        PREFECT_RESULTS_PERSIST_BY_DEFAULT: True,
    }
    with temporary_settings(settings):
        run_both()
        if not is_in_store:
            shutil.rmtree(tiny.root)
        states = run_both()
    assert [f for f in results.rglob("*") if "number" in f.read_text()] == []
    expected = "Reused" if is_in_store else "Executed"
    assert all(state.startswith(expected) for state in states.values()), states


def test_a_stage_says_when_it_begins_and_what_it_waited_for(tiny, run_both):
    heard = []
    with progress.listening(lambda stage, event: heard.append((stage, event))):
        run_both()
    entered = {s: e for s, e in heard if e["event"] == progress.ENTERED}
    assert entered["scale_number"]["after"] == set()
    first = entered["scale_number"]["task_run_id"]
    assert entered["add_one"]["after"] == {first}
    assert first != entered["add_one"]["task_run_id"]


def test_a_value_without_a_name_fails_the_stage(tiny, prefect_server):
    from prefect import flow

    @flow
    def unnameable():
        stage = tiny.stages.scale_number
        state = stage({3}, runtime={"jax": "0.0"}, return_state=True)
        return f"{state.name}: {state.message}"

    message = unnameable()
    assert message.startswith("Failed: ")
    assert "number is a set, which has no stable name" in message
    assert not (tiny.root / "executions").exists()


def test_source_that_changes_while_a_stage_runs_keeps_nothing(
    tiny, run_both, monkeypatch
):
    """Otherwise one key would hold what two sources computed."""
    from tasks import work
    from tasks.errors import InputChanged
    from warehouse.store import Store

    run_program = work.run_program

    def run_and_edit(call):
        done = run_program(call)
        tiny.replace("tiny/scale.py", "FACTOR = 2", "FACTOR = 3")
        return done

    monkeypatch.setattr(work, "run_program", run_and_edit)
    with pytest.raises(InputChanged, match=r"source changed: tiny\.scale while"):
        run_both()
    assert Store(tiny.root).commits() == []
