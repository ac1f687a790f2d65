"""The raw trace of a workload on a target, and the summary that is told of it.

Claims rest on counts of the summary. The raw trace goes along, so that whoever takes a
result in counts again with the same code, and believes nobody.
"""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model.checks import tracing as trace_checks
from model.refusal import ReasonCode, Refused
from model.target_observation import traced_file
from model.tracing import REGIONS

RAW = "trace.xplane.pb.gz"
"""File of the raw trace; compressed, or it would be too large to be carried home."""
TRACE = "trace.json"
"""File of its summary."""
COUNTED = ("regions", "planes")
"""What claims rest on; the rest of a summary is text of another JAX."""
LARGEST_RAW_BYTES = 1 << 28
"""More than any trace of fifteen regions, and less than memory."""


def summary(trace: Path) -> dict[str, Any]:
    """Returns how often each region is in a trace, and how many events on each line.

    Args:
        trace: A ``*.xplane.pb`` file.
    """
    found = trace_checks.read_regions(trace)
    planes, metadata = traced_file(trace)
    return {
        "regions": {name: sum(each.name == name for each in found) for name in REGIONS},
        "planes": planes,
        "metadata": metadata,
    }


def keep(trace: Path, folder: Path) -> None:
    """Keeps a raw trace in a folder of a result."""
    (folder / RAW).write_bytes(gzip.compress(trace.read_bytes()))


def summary_of_raw(folder: Path) -> dict[str, Any]:
    """Returns the summary of the raw trace in a folder, counted here.

    Raises:
        Refused: artifact_missing where there is none, artifact_metadata_mismatch where
            it is too large.
    """
    try:
        with gzip.open(folder / RAW) as file:
            content = file.read(LARGEST_RAW_BYTES + 1)
    except FileNotFoundError as error:
        raise Refused(
            ReasonCode.ARTIFACT_MISSING,
            f"{TRACE} lies in this result without its raw trace {RAW}, so nothing it "
            "says can be counted again; let the target write the result again",
        ) from error
    if len(content) > LARGEST_RAW_BYTES:
        raise Refused(
            ReasonCode.ARTIFACT_METADATA_MISMATCH,
            f"{RAW} has more than {LARGEST_RAW_BYTES} bytes",
        )
    with tempfile.TemporaryDirectory() as place:
        trace = Path(place) / "raw.xplane.pb"
        trace.write_bytes(content)
        try:
            return summary(trace)
        except RuntimeError as error:  # JAX has no other name for it
            raise Refused(
                ReasonCode.ARTIFACT_METADATA_MISMATCH, f"{RAW} is no trace: {error}"
            ) from error


def require_as_told(folder: Path, told: Mapping[str, Any]) -> None:
    """Refuses a summary that says another thing than the raw trace beside it.

    Args:
        folder: Where both lie.
        told: The summary.

    Raises:
        Refused: As `summary_of_raw`; artifact_metadata_mismatch where they disagree.
    """
    counted = summary_of_raw(folder)
    for name in COUNTED:
        if counted[name] != told.get(name):
            raise Refused(
                ReasonCode.ARTIFACT_METADATA_MISMATCH,
                f"{TRACE} says {name} {told.get(name)!r:.120}, and the raw trace beside"
                f" it has {counted[name]!r:.120}; a summary that was changed shows"
                " nothing",
                [name],
            )
