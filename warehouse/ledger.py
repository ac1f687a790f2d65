"""Tables that no program writes: the store and the runs, as rows.

The loader fills them from records, so that every question about who computed what is
SQL too. They lie in the schema `raw`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from warehouse.schema import null_when

NOT_TAKEN = "the run record is of a version that did not take it, or the run was killed"


@dataclass(frozen=True, kw_only=True)
class StoredExecution:
    """One committed execution."""

    TABLE: ClassVar[str] = "executions"

    execution_id: str
    """Nonce of the execution."""
    stage: str
    """Name of the stage."""
    key: str
    """Key of the execution."""
    reason: str
    """Why it was computed."""
    host: str
    """Machine it ran on."""
    started_at: str
    """UTC time of the start."""
    finished_at: str
    """UTC time of the end of the computation."""
    committed_at: str
    """UTC time at which it began to count."""
    is_intact: bool
    """Whether every byte that was looked at is the committed one."""
    problem: str
    """What is missing or altered; empty when it is intact."""


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """One evidence file of an execution, as its commit record promises it."""

    TABLE: ClassVar[str] = "execution_files"

    execution_id: str
    """Nonce of the execution."""
    table_name: str
    """Table whose rows the file holds."""
    sha256: str
    """SHA-256 of the file."""
    file_bytes: int
    """Size in bytes."""
    row_count: int
    """Number of rows."""


@dataclass(frozen=True, kw_only=True)
class StoredArtifact:
    """One artifact of an execution."""

    TABLE: ClassVar[str] = "artifacts"

    execution_id: str
    """Nonce of the execution."""
    artifact: str
    """What the producing stage called it."""
    sha256: str
    """SHA-256 of its bytes, and its name in the store."""
    artifact_bytes: int
    """Size in bytes."""


@dataclass(frozen=True, kw_only=True)
class KeyComponent:
    """One part of what decided what an execution computed."""

    TABLE: ClassVar[str] = "key_components"

    execution_id: str
    """Nonce of the execution."""
    component: str
    """Kind and name, such as "source:model.cache" or "config:train.updates"."""
    value: str
    """Digest, version or canonical JSON of the part."""


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """One run of a flow."""

    TABLE: ClassVar[str] = "runs"

    run_id: str
    """Name of the run."""
    flow: str
    """Name of the flow."""
    subject: str
    """Digest of what its verdicts are about."""
    preset: str
    """Preset that the configuration started from."""
    is_declared: bool
    """Whether configuration and corpus are exactly those the preset declares."""
    configuration: str
    """Whole configuration as canonical JSON."""
    host: str
    """Machine it ran on."""
    process_id: int
    """Process id of the flow."""
    started_at: str
    """UTC time of the start."""
    finished_at: Annotated[str | None, null_when("the run did not end by itself")]
    """UTC time of the end."""
    status: Annotated[str | None, null_when("the run did not end by itself")]
    """How it ended: completed, failed or interrupted; or that it is still running."""
    message: str
    """One sentence about the end; empty when there is none."""
    elapsed_ns: Annotated[int | None, null_when(NOT_TAKEN)]
    """Time from the start of the process (of the flow, if the process had run one
    before) until the record of the end, in nanoseconds."""
    starting_ns: Annotated[int | None, null_when(f"{NOT_TAKEN}, or no stage began")]
    """Time of that before the first stage: Python, Prefect, report of the runtime."""
    ending_ns: Annotated[int | None, null_when(f"{NOT_TAKEN}, or no stage ended")]
    """Time of that after the last stage ended."""


@dataclass(frozen=True, kw_only=True)
class SubjectComponent:
    """One digest of those that a subject is made of."""

    TABLE: ClassVar[str] = "subject_digests"

    run_id: str
    """Run that names it."""
    component: str
    """system, configuration, data or runtime."""
    value: str
    """Its digest."""


@dataclass(frozen=True, kw_only=True)
class RunStage:
    """Which execution a run used for a stage."""

    TABLE: ClassVar[str] = "run_links"

    run_id: str
    """Name of the run."""
    stage_number: int
    """Place of the stage in the flow, from 1."""
    stage: str
    """Name of the stage."""
    key: str
    """Key of the execution."""
    execution_id: str
    """Nonce of the execution."""
    state: str
    """Whether this run "executed" it, or it was "reused"."""
    reason: str
    """Why it was executed; empty when reused."""
    duration_ns: int
    """Time the stage took in this run, in nanoseconds."""
    waiting_ns: Annotated[int | None, null_when(NOT_TAKEN)]
    """Time before that for a free thread and for Prefect, after what it waits for."""
    program_ns: Annotated[int | None, null_when(NOT_TAKEN)]
    """Time during which at least one of its programs ran."""
    recording_ns: Annotated[int | None, null_when(NOT_TAKEN)]
    """Time to hash, encode, write, force to the disk and commit what was made."""
    hashing_ns: Annotated[int | None, null_when(NOT_TAKEN)]
    """Time to ask the store for an execution and to hash inputs again."""
    key_ns: Annotated[int | None, null_when(NOT_TAKEN)]
    """Time to compute the key, each time that it is computed."""


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One stored file that is missing, altered, or not what it should be."""

    TABLE: ClassVar[str] = "damage"

    path: str
    """File, relative to the root of the store."""
    kind: str
    """Evidence, artifact, commit record, run record or baseline record."""
    problem: str
    """What is wrong with it."""
    stage: str
    """Stage it belongs to; empty when it belongs to none."""
    execution_id: str
    """Execution it belongs to; empty when it belongs to none."""
    run_id: str
    """Run it belongs to; empty when it belongs to none."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The run that `RUN` named, and the subject that verdicts are shown for."""

    TABLE: ClassVar[str] = "selection"

    run_id: str
    """Name of the run; empty when the store has none yet."""
    subject: str
    """Subject of the run; empty when the store has no run yet."""
    has_history: bool = True
    """Whether rows of executions that the subject does not use were loaded too."""


@dataclass(frozen=True, kw_only=True)
class AcceptedBaseline:
    """One decision that a run is what later runs of its scope are compared with."""

    TABLE: ClassVar[str] = "accepted_baselines"

    baseline_id: str
    """Name of the decision, which begins with its UTC time."""
    run_id: str
    """Run that was accepted."""
    flow: str
    """Flow of the run; with preset, data and system the scope of the baseline."""
    preset: str
    """Preset that the configuration of the run started from."""
    data_sha256: str
    """Digest of the corpus of the run."""
    implementation: str
    """Name of the user's file that the run qualified; "" is the built-in system."""
    accepted_at: str
    """UTC time of the decision."""
    host: str
    """Machine on which it was made."""
    note: str
    """Why, in the words of who accepted it; may be empty."""


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """One of the two runs that the views `comparison...` hold against each other."""

    TABLE: ClassVar[str] = "compared_runs"

    side: str
    """before (the baseline, or the run that was named for it) or after."""
    run_id: str
    """Name of the run."""
    baseline_id: str
    """Decision that made it the baseline; empty where no decision did."""


@dataclass(frozen=True, kw_only=True)
class ReasonMeaning:
    """One reason code of the closed list."""

    TABLE: ClassVar[str] = "reason_codes"

    reason: str
    """The code."""
    meaning: str
    """What it says, one sentence."""


@dataclass(frozen=True, kw_only=True)
class TableMeaning:
    """One table or view, described for users of `harness sql`."""

    TABLE: ClassVar[str] = "table_meanings"

    table_name: str
    """Name to select from."""
    layer: str
    """raw (loaded evidence), staging (the same, for views) or review (questions)."""
    grain: str
    """Columns that name one row."""
    meaning: str
    """What a row is, or what a good result looks like."""


@dataclass(frozen=True, kw_only=True)
class ColumnMeaning:
    """One column of a loaded table, described for users of `harness sql`."""

    TABLE: ClassVar[str] = "column_meanings"

    table_name: str
    """Table the column belongs to."""
    column_name: str
    """Name of the column."""
    kind: str
    """text, integer, real or boolean."""
    null_when: Annotated[str | None, null_when("the column is never null")]
    """Circumstance in which the value is null."""
    meaning: str
    """What a value means, with its unit."""
