"""What a flow commits about itself: its subject, and which executions it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from warehouse.sealed import canonical_sha256

StageState = Literal["executed", "reused"]
RunStatus = Literal["completed", "failed", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class RunStart:
    """What is known when a flow starts."""

    run_id: str
    """Name of the run, unique in the store; users may type the beginning of it."""
    flow: str
    """Name of the flow, such as "qualify"."""
    components: Mapping[str, str]
    """Digests the subject is made of: "system", "configuration", "data", "runtime"."""
    preset: str
    """Name of the preset that the configuration started from."""
    is_declared: bool
    """Whether configuration and corpus are exactly the ones the preset declares."""
    configuration: Mapping[str, Any]
    """The whole configuration as a dictionary of JSON values."""
    started_at: str
    """UTC time of the start, from `utc_text`."""
    host: str
    """Name of the machine the flow ran on."""
    process_id: int
    """Process id of the flow on its host."""

    @property
    def subject(self) -> str:
        """The digest of the components: what the verdicts of this run are about."""
        return canonical_sha256(dict(self.components))


@dataclass(frozen=True, kw_only=True)
class StageLink:
    """Which execution a run used for one stage."""

    stage: str
    """Name of the stage."""
    key: str
    """Key of the execution."""
    nonce: str
    """Nonce of the execution."""
    state: StageState
    """Whether this run made the execution or used one that was there."""
    reason: str
    """Why it was executed; empty when it was reused."""
    duration_ns: int
    """Time the stage took in this run, in nanoseconds: from the moment at which what it
    waits for was done and a thread was free, until Prefect gave back its result."""
    waiting_ns: int | None = None
    """Time before that, from the end of the last stage it waits for (or the start of
    the run) until the stage began: for a free thread, and for Prefect."""
    program_ns: int | None = None
    """Time during which at least one of its programs ran."""
    recording_ns: int | None = None
    """Time to hash, encode, write, force to the disk and commit what was made, while no
    program ran."""
    hashing_ns: int | None = None
    """Time to ask the store for an execution and to hash inputs again."""
    key_ns: int | None = None
    """Time to compute the key, each time that it is computed."""


@dataclass(frozen=True, kw_only=True)
class RunFinish:
    """What is known when a flow ends; a run without it was interrupted."""

    run_id: str
    """Name of the run."""
    status: RunStatus
    """How the run ended."""
    message: str
    """One sentence for people; what failed, if anything."""
    finished_at: str
    """UTC time of the end, from `utc_text`."""
    links: tuple[StageLink, ...]
    """The executions of the stages that have one, in the order of the flow."""
    elapsed_ns: int | None = None
    """Time from the start of the process (of the flow, if the process had run one
    before) until this record, in nanoseconds."""
    starting_ns: int | None = None
    """Time of that before the first stage began: Python, Prefect, the report of the
    runtime."""
    ending_ns: int | None = None
    """Time of that after the last stage ended."""


def utc_text(time_ns: int) -> str:
    """Returns nanoseconds since 1970 as ISO 8601 UTC text; text order is time order.

    Args:
        time_ns: nanoseconds since the epoch, as `time.time_ns()` gives them.
    """
    seconds, fraction = divmod(time_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"
