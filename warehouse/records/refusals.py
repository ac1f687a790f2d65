"""Refusals beyond a single change: two changes at once, trainings that stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from warehouse.schema import null_when


@dataclass(frozen=True, kw_only=True)
class RefusedPair:
    """An input with two things wrong at once, of which a refusal has to name both."""

    TABLE: ClassVar[str] = "refused_pairs"

    claim: str
    """Id of the claim in the contract, such as "2.4"."""
    measure: str
    """Name of what had to be refused, as for a single change."""
    first_change: str
    """Case of the single change that is looked at first."""
    second_change: str
    """Case of the single change that the first must not hide."""
    expected_reason: str
    """Reason code that the refusal must carry."""
    received_reason: Annotated[str | None, null_when("nothing was refused")]
    """Reason code that the refusal carried; null when the input was accepted."""
    expected_fields: str
    """Paths of everything that is wrong, as a sorted JSON list."""
    received_fields: Annotated[str | None, null_when("nothing was refused")]
    """Paths that the refusal named, as a sorted JSON list."""
    sha256_before: str
    """Digest of every byte that the refusing function was given, before it ran."""
    sha256_after: str
    """The same after it refused."""


@dataclass(frozen=True, kw_only=True)
class CheckpointField:
    """One single thing that a checkpoint is held against when it is restored."""

    TABLE: ClassVar[str] = "checkpoint_fields"

    field: str
    """Its path in the checkpoint's own manifest, such as "optimizer.beta1"."""
    recorded_value: str
    """The value in the manifest, as JSON."""


@dataclass(frozen=True, kw_only=True)
class StoppedTraining:
    """A training that left the real line, as it is kept: where, why, what is left."""

    TABLE: ClassVar[str] = "stopped_trainings"

    case_name: str
    """What was not finite: loss or gradient."""
    run_label: str
    """Name of the training in the evidence of its process."""
    process_id: int
    """Process that stopped."""
    stopped_at_update: Annotated[int | None, null_when("it did not stop by itself")]
    """Update that was not made, because a value in it was not finite."""
    stop_reason: Annotated[str | None, null_when("nothing was refused")]
    """Reason code with which it stopped."""
    message: str
    """Sentence with which it stopped; empty when it did not."""
    traced_updates: int
    """Updates that it made, each with its digests in the kept trace."""
    last_good_update: Annotated[int | None, null_when("it committed no checkpoint")]
    """Updates in its last committed checkpoint."""
    committed_sha256: Annotated[str | None, null_when("it committed no checkpoint")]
    """Digest of the folder of that checkpoint when it was committed."""
    kept_sha256: Annotated[str | None, null_when("it committed no checkpoint")]
    """Digest of the same folder after the training had stopped."""


@dataclass(frozen=True, kw_only=True)
class StatedRow:
    """A row as its program wrote it, for a view that refuses to use it."""

    TABLE: ClassVar[str] = "stated_rows"

    table_name: str
    """Table that the row belongs to."""
    row_name: str
    """Name of the row in that table."""
    sha256: str
    """SHA-256 of its values as text, one a line; the view that refuses has them too."""
