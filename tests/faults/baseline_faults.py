"""Faults of what is compared with a baseline, and of what becomes one."""

from __future__ import annotations

from functools import partial

from tests.faults import NO_REPORT
from tests.faults.declaring import of_view

_view = partial(of_view, "workflow")

NOTHING_COMPARED = ("when agreeing_values = 0 then 'nothing comparable'", "")

FAULTS = (
    _view(
        "baseline-compared-with-itself",
        "compared_with_itself",
        "baseline",
        "comparison",
        "A run that is its own baseline agrees with it.",
        NO_REPORT,
        ("when before_run_id = after_run_id then 'itself'", ""),
        ("when recomputed_stages = 0 then 'not recomputed'", ""),
        NOTHING_COMPARED,
    ),
    _view(
        "empty-comparison-passes",
        "compared_without_a_row",
        "baseline",
        "comparison",
        "Two runs without a value in common agree.",
        NO_REPORT,
        NOTHING_COMPARED,
    ),
    _view(
        "missing-baseline-passes",
        "compared_without_a_baseline",
        "baseline",
        "comparison",
        "A run that has no baseline agrees with it.",
        NO_REPORT,
        (
            "when before_run_id is null then 'no baseline'",
            "when before_run_id is null then 'agrees'",
        ),
    ),
    _view(
        "reused-execution-agrees",
        "compared_on_the_same_executions",
        "baseline",
        "comparison",
        "A run agrees with the one whose executions it has taken over.",
        NO_REPORT,
        (
            "when recomputed_stages = 0 then 'not recomputed'",
            "when recomputed_stages = 0 then 'agrees'",
        ),
    ),
    _view(
        "regression-tolerated",
        "compared_with_a_better_one",
        "baseline",
        "comparison",
        "An exact value that differs is no finding.",
        NO_REPORT,
        ("when findings > 0 then 'worse'", ""),
    ),
    _view(
        "half-finished-run-reported",
        "accepted_unfinished",
        "baseline",
        "acceptance",
        "A run that never came to its end becomes a baseline.",
        "huggingface/transformers#35782",
        ("when status <> 'completed'", "when false"),
        ("when stage_count = 0", "when false"),
    ),
    _view(
        "refuted-run-accepted",
        "accepted_refuted",
        "baseline",
        "acceptance",
        "A run with a claim to revise becomes a baseline.",
        NO_REPORT,
        ("when revision is not null", "when false"),
    ),
    _view(
        "damaged-run-accepted",
        "accepted_damaged",
        "baseline",
        "acceptance",
        "A run of which a file was altered becomes a baseline.",
        "restic/restic#3239",
        ("when damage is not null", "when false"),
    ),
)
