"""Commit records: what one execution made, and the handle that stages pass on."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from warehouse.errors import StoreError
from warehouse.sealed import check_name, unseal

FORMAT = 1
"""Version of the layout of the store and of its documents."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_INTEGER_LIMIT = 2**63


@dataclasses.dataclass(frozen=True, kw_only=True)
class Artifact:
    """A file of the store: what people call it, and what its bytes are."""

    name: str
    """Flat name that the producing stage gave it, such as "parameters.npz"."""
    sha256: str
    """SHA-256 of its bytes in lower-case hexadecimal."""
    bytes: int
    """Size in bytes."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Execution:
    """A committed computation of a stage, as it is handed from stage to stage."""

    stage: str
    """Name of the stage."""
    key: str
    """SHA-256 over everything that decided what was computed."""
    nonce: str
    """Random name of this one computation; never part of a downstream key."""
    artifacts: tuple[Artifact, ...]
    """The files it made, ordered by name."""

    def artifact(self, name: str) -> Artifact:
        """Returns the artifact of that name.

        Raises:
            StoreError: the execution made no such file; the text lists what it made.
        """
        for artifact in self.artifacts:
            if artifact.name == name:
                return artifact
        known = [artifact.name for artifact in self.artifacts]
        raise StoreError(f"{self.stage} made no artifact {name!r}; it made {known}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvidenceFile:
    """One Parquet file of an execution, as its commit record promises it."""

    table: str
    """Name of the table its rows belong to."""
    sha256: str
    """SHA-256 of the file."""
    bytes: int
    """Size in bytes."""
    rows: int
    """Number of rows."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Commit:
    """The whole commit record of an execution."""

    stage: str
    """Name of the stage."""
    key: str
    """Key of the stage."""
    nonce: str
    """Random name of the execution; also its id in every table."""
    components: Mapping[str, str]
    """What the key was made of, by name, so that two keys can be compared."""
    artifacts: tuple[Artifact, ...]
    """Files it made."""
    files: tuple[EvidenceFile, ...]
    """Rows it wrote."""
    reason: str
    """Why it had to be computed."""
    started_at: str
    """UTC time of the start."""
    finished_at: str
    """UTC time of the end of the computation."""
    committed_at: str
    """UTC time at which the commit record was written."""
    host: str
    """Machine it ran on."""
    run_id: str = ""
    """Run that made it; empty outside of a run, and in records of before."""

    @property
    def execution(self) -> Execution:
        """The handle that stages pass on."""
        return Execution(
            stage=self.stage, key=self.key, nonce=self.nonce, artifacts=self.artifacts
        )

    def to_document(self) -> dict[str, Any]:
        """Returns the record as JSON values."""
        return {"format": FORMAT, **dataclasses.asdict(self)}


def read_commit(data: bytes) -> Commit:
    """Returns the commit record that some bytes hold.

    Raises:
        StoreError: the bytes are not exactly a commit record of a known format.
    """
    document = unseal(data)
    if document.pop("format", None) != FORMAT:
        raise StoreError("it has an unknown format version")
    try:
        document["artifacts"] = tuple(
            _typed(Artifact(**each)) for each in document["artifacts"]
        )
        document["files"] = tuple(
            _typed(EvidenceFile(**each)) for each in document["files"]
        )
        commit: Commit = _typed(Commit(**document))
    except (KeyError, TypeError, ValueError):
        raise StoreError("it does not have the fields of a commit record") from None
    _check_names(commit)
    return commit


def _typed(record: Any) -> Any:
    """Returns a record whose every field has its declared type and can be stored."""
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.type == "str":
            _check_texts(value)
        elif field.type == "int":
            if type(value) is not int or not 0 <= value < _INTEGER_LIMIT:
                raise TypeError(field.name)
        elif field.type == "Mapping[str, str]":
            if not isinstance(value, dict):
                raise TypeError(field.name)
            _check_texts(*value.keys(), *value.values())
    return record


def _check_texts(*values: Any) -> None:
    for value in values:
        if not isinstance(value, str):
            raise TypeError(value)
        value.encode()  # a lone surrogate has no UTF-8


def _check_names(commit: Commit) -> None:
    """Refuses a record with a name that could lead out of the store or an export."""
    names = {"stage": commit.stage, "key": commit.key, "nonce": commit.nonce}
    for what, name in names.items():
        check_name(what, name)
    for artifact in commit.artifacts:
        check_name("artifact", artifact.name)
    for file in commit.files:
        check_name("table", file.table)
    digests = [artifact.sha256 for artifact in commit.artifacts]
    digests += [file.sha256 for file in commit.files]
    for digest in digests:
        if not _SHA256.fullmatch(digest):
            raise StoreError(f"it names the digest {digest!r}")
