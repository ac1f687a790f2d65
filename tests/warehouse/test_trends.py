"""Views over many runs: what moved, what was reused, what failed, what fills the disk.

Each case would be counted twice, or not at all, by a join that is a little wrong.
"""

import pytest

from tests.store_maker import SECOND_NS
from tests.warehouse.counted import errors
from warehouse.records.inference import Timing


def times(*durations_ns: int) -> list[Timing]:
    return [
        Timing(
            endpoint="decode",
            release_policy="fp32",
            process=1,
            process_id=1,
            sample=sample,
            phase="warm",
            duration_ns=duration_ns,
            timer="made up",
        )
        for sample, duration_ns in enumerate(durations_ns, 1)
    ]


# --- claims ---


def test_a_claim_moves_between_executions_and_rests_while_one_is_reused(made, ask):
    """Three runs of one execution give one row each, and no second measurement."""
    made.execute("train_model", [errors(5)], key="a")
    made.run("run-1")
    made.run("run-2", state="reused")
    made.execute("train_model", [errors(7)], key="b")
    made.run("run-3", system="system-2")
    found = ask(
        "run_id, status, value, previous_value, change, previous_run_id, is_recomputed",
        "claim_trends",
    )
    assert found == [
        ("run-1", "unmet", 5, None, None, None, True),
        ("run-2", "unmet", 5, 5, 0, "run-1", False),
        ("run-3", "unmet", 7, 5, 2, "run-2", True),
    ]


def test_only_runs_of_the_same_preset_data_and_settings_are_a_history(made, ask):
    """A run with another corpus or changed settings is no step of the trend."""
    made.execute("train_model", [errors(1)], key="a")
    made.run("run-1")
    made.execute("train_model", [errors(2)], key="b")
    made.run("run-2", preset="prose")
    made.run("run-3", data="other")
    made.run("run-4", is_declared=False)
    made.execute("train_model", [errors(4)], key="c")
    made.run("run-5", flow="certify")
    found = ask("run_id, previous_run_id, change", "claim_trends")
    assert found == [
        ("run-1", None, None),
        ("run-2", None, None),
        ("run-3", None, None),
        ("run-4", None, None),
        ("run-5", "run-1", 3),
    ]


def test_a_requirement_holds_a_run_only_in_its_preset_and_scope(made, ask, requirement):
    made.execute("train_model", [errors(0)], key="a")
    made.run("run-1")
    made.run("run-2", preset="prose")
    made.run("run-3", is_declared=False)
    rules = (
        requirement(presets=("prose",)),
        requirement(scope="declared", limit=1, relation="at_most"),
    )
    found = ask("run_id, relation", "claim_trends", *rules)
    assert found == [
        ("run-1", "at_most"),
        ("run-2", "at_most"),
        ("run-2", "equal"),
    ]


def test_rows_of_one_case_are_paired_in_their_order_and_never_crossed(made, ask):
    """Two rows against two rows would be four pairs."""
    made.execute("train_model", [errors(1, "c"), errors(10, "c")], key="a")
    made.run("run-1")
    made.execute("train_model", [errors(3, "c"), errors(30, "c")], key="b")
    made.run("run-2")
    found = ask("run_id, value, previous_value", "claim_trends")
    assert found == [
        ("run-1", 1, None), ("run-1", 10, None), ("run-2", 3, 1), ("run-2", 30, 10)
    ]  # fmt: skip


def test_what_is_damaged_or_missing_is_no_value(made, ask):
    """A null is a row without a value; an altered file is no row at all."""
    made.execute("train_model", [errors(None, reason="not_measured")], key="a")
    made.run("run-1")
    made.execute("train_model", [errors(2)], key="b")
    made.run("run-2")
    damaged = made.executions["train_model"]
    made.execute("train_model", [errors(3)], key="c")
    made.run("run-3")
    path = made.store.evidence_file(damaged.nonce, "measurements")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    found = ask("run_id, status, value, change", "claim_trends")
    assert found == [("run-1", "missing", None, None), ("run-3", "unmet", 3, None)]


# --- times ---


def test_a_median_is_held_against_the_one_before_on_the_same_host(made, ask):
    for number, (host, durations) in enumerate(
        [("a", (10, 20, 30)), ("b", (100, 200, 300)), ("a", (20, 40, 60))], 1
    ):
        made.execute("profile_runtime", times(*durations), key=f"{number}", host=host)
        made.run(f"run-{number}")
    made.run("run-4", state="reused")
    found = ask(
        "run_id, samples, median_ns, previous_median_ns, ratio, spread, is_recomputed",
        "timing_trends",
    )
    assert found == [
        ("run-1", 3, 20, None, None, 1.0, True),
        ("run-2", 3, 200, None, None, 1.0, True),
        ("run-3", 3, 40, 20, 2.0, 1.0, True),
        ("run-4", 3, 40, 40, 1.0, 1.0, False),
    ]


def test_the_trend_of_a_stage_leaves_out_the_runs_that_reused_it(made, ask):
    made.execute("train_model", [], key="a")
    made.run("run-1", parts={"program_ns": SECOND_NS // 2})
    made.run("run-2", state="reused")
    made.execute("train_model", [], key="b")
    made.run("run-3")
    found = ask(
        "run_id, stage_seconds, program_seconds, previous_seconds, ratio",
        "stage_trends",
    )
    assert found == [("run-1", 1, 0.5, None, None), ("run-3", 1, None, 1, 1)]


def test_the_parts_of_a_stage_make_up_the_whole(made, ask):
    """Each part is another number, so that none can stand for another."""
    parts = {
        "waiting_ns": 50_000_000,
        "program_ns": 800_000_000,
        "recording_ns": 80_000_000,
        "hashing_ns": 12_000_000,
        "key_ns": 8_000_000,
    }
    made.execute("train_model", [], key="a")
    made.execute("tokenize_corpus", [], key="a")
    whole = {"elapsed_ns": 4 * SECOND_NS, "starting_ns": SECOND_NS, "ending_ns": 1000}
    made.run("run-1", parts=parts, times=whole)
    made.run("run-2", state="reused")
    columns = "program_seconds, recording_seconds, hashing_seconds, key_seconds"
    found = ask(
        f"run_id, stage, {columns}, prefect_seconds, waiting_seconds, "
        "share_of_programs, null_reason",
        "overhead",
    )
    expected = (0.8, 0.08, 0.012, 0.008, 0.1, 0.05, pytest.approx(0.125), "")
    unknown = (*[None] * 7, "recorded by a version without parts")
    assert found == [
        ("run-1", "tokenize_corpus", *expected),
        ("run-1", "train_model", *expected),
        ("run-2", "tokenize_corpus", *unknown),
        ("run-2", "train_model", *unknown),
    ]
    (first, second) = ask(
        f"run_seconds, starting_seconds, {columns}, evidence_share, sentence",
        "run_overhead",
        order="started_at",
    )
    assert first[:6] == (4, 1, 1.6, 0.16, pytest.approx(0.024), pytest.approx(0.016))
    assert first[6] == pytest.approx(0.05)
    assert first[7].endswith("recording, hashing and keys are 5.0 % of the run.")
    assert second[7] == "The run did not record where its time went."


def test_every_run_has_one_row_of_overhead_also_one_without_stages(made, ask):
    made.run("run-1", status="failed", times={"elapsed_ns": SECOND_NS})
    made.run("run-2", is_finished=False)
    found = ask("run_id, sentence", "run_overhead")
    assert found == [
        ("run-1", "No stage was done."),
        ("run-2", "The run did not record where its time went."),
    ]


# --- what ran and what was reused ---


def test_reuse_counts_links_and_saves_what_the_execution_had_taken(made, ask):
    """The execution took one second by its commit record, each link one second."""
    made.execute("train_model", [], key="a")
    made.run("run-1")
    made.run("run-2", state="reused")
    made.run("run-3", state="reused")
    made.execute("tokenize_corpus", [], key="a")
    made.run("run-4", flow="certify", state="reused")
    found = ask(
        "flow, stage, runs, reused, executed, round(reused_share, 3), seconds, "
        "saved_seconds",
        "reuse_rates",
    )
    assert found == [
        ("certify", "tokenize_corpus", 1, 1, 0, 1.0, 1, 0),
        ("certify", "train_model", 1, 1, 0, 1.0, 1, 0),
        ("qualify", "train_model", 3, 2, 1, 0.667, 3, 0),
    ]


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("source changed: model.cache", "source changed"),
        (
            "config changed: train.updates 3 -> 4; source added: model.new; and 2 more",
            "config, source changed",
        ),
        (
            "runtime changed: jax 1 -> 2; runtime changed: numpy 1 -> 2",
            "runtime changed",
        ),
        ("train_model must be computed again: the artifact x is missing.", "damaged"),
        ("asked to recompute", "asked to recompute"),
        ("never executed", "never executed"),
    ],
)
def test_a_rerun_has_the_kinds_of_change_as_its_cause(made, ask, reason, cause):
    made.execute("train_model", [], reason=reason)
    made.run("run-1", reason=reason)
    made.run("run-2", state="reused")
    assert ask("run_id, cause, reason", "reruns") == [("run-1", cause, reason)]


def test_days_count_each_run_once_by_how_it_ended(made, ask):
    made.execute("train_model", [])
    made.run("run-1")
    made.run("run-2", state="reused")
    made.run("run-3", status="failed", message="train_model failed: no.")
    made.run("run-4", is_finished=False)
    made.run("run-5", status="interrupted", flow="certify")
    found = ask(
        "flow, runs, completed, failed, interrupted, running, fully_reused", "run_days"
    )
    assert found == [("certify", 1, 0, 0, 1, 0, 0), ("qualify", 4, 2, 1, 1, 0, 1)]


# --- failures ---


def test_failures_that_differ_in_names_and_numbers_alone_are_one_cause(made, ask):
    for number, message in enumerate(
        [
            "train_model failed: /folder/a/b ended with signal 9: 'loss' is 1.5e3",
            "train_model failed: /folder/c/d ended with signal 11: 'rate' is 2.5e4",
            "tokenize_corpus failed: /folder/c/d ended with signal 11: 'rate' is 2.5e4",
            "artifact 0123456789abcdef0123 is missing\nmore lines",
            "artifact fedcba98765432100123 is missing",
        ]
    ):
        made.run(f"run-{number}", status="failed", message=message)
    made.run("run-5", status="interrupted", message="The run was interrupted.")
    made.run("run-6", is_finished=False)
    made.run("run-7", is_finished=False)
    made.run("run-8")
    found = ask(
        "ending, stage, cause, runs, newest_run_id",
        "failures_by_cause",
        order="runs, ending, stage",
    )
    signal = "/… ended with signal N: '…' is NeN"
    assert found == [
        ("failed", "tokenize_corpus", signal, 1, "run-2"),
        ("interrupted", "", "The run was interrupted.", 1, "run-5"),
        ("failed", "", "artifact # is missing", 2, "run-4"),
        ("failed", "train_model", signal, 2, "run-1"),
        ("killed", "", "No end is recorded.", 2, "run-7"),
    ]
