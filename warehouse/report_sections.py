"""What the report's plain tables show: one view each, with its columns in words.

Kept apart from the writing, so that a reader finds which view stands behind a table
and a new question is one entry here and one SQL file.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["", "code", "seconds", "mebibytes", "time"]


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table: its heading, the view's column, how it is printed."""

    heading: str
    name: str
    kind: Kind = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One table of the report and the view it shows."""

    heading: str
    caption: str
    view: str
    columns: tuple[Column, ...]
    is_folded: bool = False


def _columns(*entries: tuple[str, str] | tuple[str, str, Kind]) -> tuple[Column, ...]:
    return tuple(
        Column(heading=entry[0], name=entry[1], kind=entry[2])
        if len(entry) == 3
        else Column(heading=entry[0], name=entry[1])
        for entry in entries
    )


TASK_TITLES = {
    1: "the objective and the information boundary",
    2: "recovery of the experiment",
    3: "the cache and its precision",
    4: "what really executes",
    5: "a target runtime",
}

DAMAGE = Section(
    heading="Damaged evidence",
    caption="These stored files are not the committed ones. No number below comes from "
    "them; `harness run` makes them again.",
    view="damage",
    columns=_columns(
        ("File", "path", "code"), ("What is wrong", "problem"), ("Stage", "stage")
    ),
)

VERDICTS = (
    Section(
        heading="Verdicts of the tasks",
        caption="A task is accepted when all its claims are.",
        view="task_verdicts",
        columns=_columns(
            ("Task", "review_task"),
            ("Verdict", "verdict"),
            ("Claims", "claims"),
            ("Accepted", "accepted"),
            ("To revise", "revised"),
            ("Not demonstrated", "open"),
        ),
    ),
    Section(
        heading="What would change a verdict",
        caption="What is wrong stands before what is missing.",
        view="next_steps",
        columns=_columns(
            ("Claim", "claim"), ("Verdict", "verdict"), ("Next step", "next_step")
        ),
    ),
    Section(
        heading="Verdicts of the claims",
        caption="Undrilled: no planted fault has shown that the check can fail.",
        view="verdicts",
        columns=_columns(
            ("Claim", "claim"),
            ("Verdict", "verdict"),
            ("Rows met", "rows_met"),
            ("Unmet", "rows_unmet"),
            ("Missing", "rows_missing"),
            ("Statement", "statement"),
        ),
    ),
)
"""What the report prints in a form of its own, as plain tables."""

COSTS = Section(
    heading="What a policy saves and costs",
    caption="Experiments are measured and not released; the report has every column.",
    view="policies",
    columns=_columns(
        ("Policy", "policy"),
        ("Kind", "kind"),
        ("Weight bytes", "weight_bytes"),
        ("Cache bytes", "cache_bytes"),
        ("Held-out nats/token", "heldout_nats_per_token"),
        ("Largest logit error", "largest_logit_error"),
    ),
)
"""The precision policies, narrow enough for a column of a page."""

REQUIREMENTS = _columns(
    ("Status", "status"),
    ("Measure and case", "measured_what", "code"),
    ("Value", "value"),
    ("Must be", "required"),
    ("Unit", "unit"),
    ("Margin", "margin"),
    ("Stage and execution (UTC)", "origin"),
    ("Detail", "detail"),
)

SECTIONS = (
    Section(
        heading="What the release writes",
        caption="Greedy generation, successes and failures together, with the reason "
        "where it is known.",
        view="generation_results",
        columns=_columns(
            ("Policy", "release_policy"),
            ("Prompt", "prompt", "code"),
            ("Expected", "expected", "code"),
            ("Generated", "text", "code"),
            ("As expected", "is_expected"),
            ("Tokens", "new_tokens"),
            ("Stopped by", "stop_reason"),
            ("Note", "note"),
        ),
    ),
    Section(
        heading="Beside the published figures",
        caption="Of another run, on its own draw of this kind of corpus and after a "
        "number of updates that is not published: to read against, never the same run.",
        view="published_figures",
        columns=_columns(
            ("Figure", "figure"),
            ("Published", "published"),
            ("Here", "measured"),
            ("Unit", "unit"),
        ),
    ),
    Section(
        heading="Recovery after a kill",
        caption="The killed training and its resumption against the uninterrupted one: "
        "compared as bytes, so every pair must be identical.",
        view="recovery_summary",
        columns=_columns(
            ("Measure", "measure", "code"),
            ("Compared", "compared"),
            ("Identical", "identical"),
            ("First difference", "first_difference"),
        ),
    ),
    Section(
        heading="Certificates of recovery",
        caption="One row for each point at which a process was killed, by `harness run`"
        " and by `harness certify`; from the second kill of one training on, the killed"
        " process is the one that had restored before. A divergence names update,"
        " parameter, index and ulp.",
        view="recovery_certificates",
        columns=_columns(
            ("Proof", "certificate", "code"),
            ("Interrupted at", "case_name", "code"),
            ("Kills of this training", "kills_of_training"),
            ("Killed process", "killed_process_id"),
            ("Restored by", "restored_process_id"),
            ("Restored update", "restored_update"),
            ("Updates compared", "updates_compared"),
            ("First divergence", "first_divergence"),
        ),
    ),
    Section(
        heading="Planted recovery faults",
        caption="A restore that lost one thing, found by its digests; the losses of the"
        " first two updates, against the uninterrupted ones, tell little.",
        view="negative_controls",
        columns=_columns(
            ("Fault", "control", "code"),
            ("Updates found in", "updates_detected"),
            ("First in", "first_kind", "code"),
            ("Parameter", "first_leaf", "code"),
            ("Where", "first_difference"),
            ("First loss, nats apart", "first_loss_change_nats"),
            ("Second loss, nats apart", "second_loss_change_nats"),
        ),
    ),
    Section(
        heading="Processes that trained",
        caption="Return code -9 is a process ended by SIGKILL; the resumption is "
        "another process.",
        view="training_processes",
        columns=_columns(
            ("Stage", "stage"),
            ("Run", "label"),
            ("Process", "process_id"),
            ("Return code", "return_code"),
            ("Started", "started_at", "time"),
            ("Took", "duration_ns", "seconds"),
        ),
    ),
    Section(
        heading="Logit errors of each release policy",
        caption="Logits against the FP32 release on every valid held-out target. A "
        "policy that ends with -cache has FP32 dense layers and that cache alone. A "
        "top token changes where the margin of the two largest FP32 logits is small.",
        view="logit_error_summary",
        columns=_columns(
            ("Policy", "release_policy"),
            ("Targets", "positions"),
            ("Largest", "largest_error"),
            ("Mean", "mean_error"),
            ("Divergence (nats)", "mean_divergence_nats"),
            ("Changed top token", "changed_top_tokens"),
            ("Widest margin bridged", "widest_changed_margin"),
        ),
    ),
    Section(
        heading="Precision policies",
        caption="What each saves and costs. Experiments and formats are measured and "
        "not released. A policy is supported when it runs here and no logit is off by "
        "more than ln(2) / 2; whether this machine multiplies the format or widens it "
        "first is read off the compiled program. Decode times of all but releases were "
        "taken while other stages ran.",
        view="policies",
        columns=_columns(
            ("Policy", "policy"),
            ("Kind", "kind"),
            ("Weights", "weights"),
            ("Activations", "activations"),
            ("Sums", "accumulation"),
            ("Cache", "cache"),
            ("Supported", "is_supported"),
            ("Multiplied as", "compiled_operands", "code"),
            ("That is", "multiplied"),
            ("Weight bytes", "weight_bytes"),
            ("Cache bytes", "cache_bytes"),
            ("Artifact bytes", "artifact_bytes"),
            ("Held-out nats/token", "heldout_nats_per_token"),
            ("Largest logit error", "largest_logit_error"),
            ("Decode of all rows", "decode_ns", "seconds"),
            ("Scales", "scale_granularity"),
            ("Detail", "detail"),
        ),
    ),
    Section(
        heading="Other first seeds",
        caption="The same recipe from other initial parameters, failures too: what one "
        "seed alone cannot say.",
        view="initialization_results",
        columns=_columns(
            ("First seed", "initialization_seed"),
            ("Released", "is_released"),
            ("Updates", "updates"),
            ("Validation nats/token", "validation_nats_per_token"),
            ("Held-out nats/token", "heldout_nats_per_token"),
            ("Accuracy", "heldout_token_accuracy"),
            ("Failed with", "failure_reason", "code"),
        ),
    ),
    Section(
        heading="How long an endpoint takes",
        caption="Synchronised calls on the timing workload. First calls stand apart: "
        "with an empty compilation cache, and with a filled one. Never judged.",
        view="timing_summary",
        columns=_columns(
            ("Endpoint", "endpoint"),
            ("Policy", "release_policy"),
            ("Phase", "phase"),
            ("Processes", "processes"),
            ("Samples", "samples"),
            ("Least", "least_ns", "seconds"),
            ("Median", "median_ns", "seconds"),
            ("95th percentile", "high_ns", "seconds"),
            ("Largest", "largest_ns", "seconds"),
        ),
    ),
    Section(
        heading="Regions of the profiler trace",
        caption="Counted in the trace itself; times are medians.",
        view="trace_summary",
        columns=_columns(
            ("Region", "region", "code"),
            ("Occurrences", "occurrences"),
            ("Host time", "median_host_ns", "seconds"),
            ("Until ready", "median_ready_ns", "seconds"),
            ("Operations, at least", "least_operations"),
            ("Code", "code", "code"),
        ),
    ),
    Section(
        heading="Target runtime: how to demonstrate it",
        caption="Not demonstrated here. These are the commands for the target and the "
        "rows they must give.",
        view="target_plan",
        columns=_columns(
            ("Accelerator", "accelerator"),
            ("Step", "step"),
            ("Command", "command", "code"),
            ("Claim", "claim"),
            ("Expected in", "expected_table", "code"),
            ("Expected row", "expected_row"),
        ),
    ),
    Section(
        heading="Programs: time and memory",
        caption="One child process a row; all processes of the executions that the "
        "verdicts rest on.",
        view="program_memory",
        columns=_columns(
            ("Stage", "stage"),
            ("Program", "program", "code"),
            ("Label", "label"),
            ("Took", "duration_ns", "seconds"),
            ("Peak memory", "peak_memory_bytes", "mebibytes"),
        ),
    ),
    Section(
        heading="Stages of this run",
        caption="A reused stage rests on an earlier execution with the same key.",
        view="stage_durations",
        columns=_columns(
            ("Stage", "stage"),
            ("State", "state"),
            ("Because", "reason"),
            ("Programs (s)", "program_seconds"),
            ("Around them (s)", "around_seconds"),
            ("Execution", "execution_id", "code"),
        ),
    ),
    Section(
        heading="Where the time of this run went",
        caption="Seconds by the clock, each instant in one part. Hashing looks for an "
        "execution and verifies inputs; recording hashes, writes and commits what was "
        "made; Prefect is what is left of a stage. A stage waits for a free thread.",
        view="selected_overhead",
        columns=_columns(
            ("Stage", "stage"),
            ("State", "state"),
            ("Took (s)", "stage_seconds"),
            ("Programs (s)", "program_seconds"),
            ("Recording (s)", "recording_seconds"),
            ("Hashing (s)", "hashing_seconds"),
            ("Key (s)", "key_seconds"),
            ("Prefect (s)", "prefect_seconds"),
            ("Waited before (s)", "waiting_seconds"),
        ),
    ),
    Section(
        heading="Subject",
        caption="What the verdicts are about: digests of system, configuration, data "
        "and runtime. Another digest is another subject.",
        view="subject_components",
        columns=_columns(("Component", "component"), ("Value", "value", "code")),
    ),
    Section(
        heading="Settings, runtime and packages",
        caption="What went into the keys of the stages; together they decide whether a "
        "stage is reused.",
        view="subject_settings",
        is_folded=True,
        columns=_columns(
            ("Kind", "kind"), ("Name", "name", "code"), ("Value", "value", "code")
        ),
    ),
)
