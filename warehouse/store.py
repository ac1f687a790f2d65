"""The store: artifacts by content, executions by commit record, runs by their links.

The commit record of an execution is written last, so its presence is the only meaning
of "done". Everything it names is hashed again before it is used: an execution of which
one byte changed counts as absent, and the text says what changed. Any number of
processes may write: every execution has its own nonce, every artifact its own digest.

    artifacts/ab/<sha256>                     bytes, named by what they are
    records/<nonce>/<table>.parquet           rows of one execution
    executions/<stage>/<key>/<nonce>.json     commit record, sealed, written last
    runs/<run_id>/started.json, finished.json sealed
    nonces/<nonce>/drawn.json, answered.json  sealed, see nonces.py
    temporary/                                unfinished files, never read
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from warehouse.commits import (
    FORMAT,
    Artifact,
    Commit,
    EvidenceFile,
    Execution,
    read_commit,
)
from warehouse.durable import (
    DigestMemory,
    copy_file,
    explained,
    hash_file,
    sweep,
    write_file,
)
from warehouse.errors import NeverExecuted, NoExecution, StoreError
from warehouse.evidence import to_parquet
from warehouse.runs import RunFinish, RunStart, utc_text
from warehouse.sealed import check_name, seal

# One for the process: a run opens the store for every stage and reads files twice.
_DIGESTS = DigestMemory()


class Store:
    """A folder that keeps artifacts, evidence, executions and runs."""

    def __init__(self, root: Path, *, is_writable: bool = True) -> None:
        """Opens the store, and makes the folder if it is to be written.

        Args:
            root: folder of the store.
            is_writable: whether the caller wants to write; readers change nothing.

        Raises:
            StoreError: root is a file, does not exist (for a reader), or the system
                refuses to read or to write it; the text says what to do.
        """
        self.root = root.absolute()
        self._digests = _DIGESTS
        if self.root.exists() and not self.root.is_dir():
            raise StoreError(f"The store {str(root)!r} is a file, not a folder.")
        if is_writable:
            self._prove_writable()
            sweep(self.root)
        elif not self.root.is_dir():
            raise StoreError(
                f"There is no store at {str(root)!r}; `harness run` makes one."
            )
        with explained("read", self.root):
            next(self.root.iterdir(), None)

    def _prove_writable(self) -> None:
        probe = self.root / "temporary" / f"{os.getpid()}.{uuid.uuid4().hex}.probe"
        write_file(self.root, probe, b"The store can be written.\n")
        with explained("remove", probe):
            probe.unlink()

    # --- artifacts ---

    def put_artifact(self, path: Path, name: str | None = None) -> Artifact:
        """Stores the content of a file, and heals a stored copy that was damaged.

        Args:
            path: the file to store; it stays where it is.
            name: what the artifact is called; the name of the file by default.

        Raises:
            StoreError: the system refused, or the file changed while it was copied.
        """
        artifact_name = check_name("artifact", name or path.name)
        with explained("read", path):
            digest, size = hash_file(path), path.stat().st_size
        target = self._artifact_file(digest)
        if self._digests.sha256(target) != digest:
            copied = copy_file(self.root, path, target)
            if copied != digest:
                target.unlink(missing_ok=True)
                raise StoreError(f"{str(path)!r} changed while it was being stored.")
        return Artifact(name=artifact_name, sha256=digest, bytes=size)

    def artifact_path(self, artifact: Artifact | str) -> Path:
        """Returns the file of an artifact (or of its digest), hashed again.

        Raises:
            StoreError: the file is missing or its bytes are not those of the digest.
        """
        digest = artifact if isinstance(artifact, str) else artifact.sha256
        name = "" if isinstance(artifact, str) else f"{artifact.name} "
        problem = self._problem(self._artifact_file(digest), digest)
        if problem:
            raise StoreError(f"The artifact {name}{digest[:12]} {problem}.")
        return self._artifact_file(digest)

    def _artifact_file(self, digest: str) -> Path:
        check_name("digest", digest)
        return self.root / "artifacts" / digest[:2] / digest

    # --- executions ---

    def commit(
        self,
        *,
        stage: str,
        key: str,
        components: Mapping[str, str],
        artifacts: Iterable[Artifact],
        records: Sequence[Any],
        reason: str,
        started_at: str,
        finished_at: str,
        host: str,
        run_id: str = "",
    ) -> Execution:
        """Stores the rows of an execution, then the record that makes it count.

        Args:
            stage: name of the stage.
            key: key of the stage.
            components: what the key is made of, by name.
            artifacts: files that `put_artifact` stored, before or while this is
                iterated; that begins when every row is known to be as declared.
            records: record objects of any classes, in the order they shall have.
            reason: why it was executed, one sentence.
            started_at: UTC time of the start, from `utc_text`.
            finished_at: UTC time of the end.
            host: machine it ran on.
            run_id: run that made it; "" outside of one.

        Raises:
            RecordError: a row does not keep what its class declares; nothing counts.
            StoreError: the system refused; nothing counts.
        """
        nonce = uuid.uuid4().hex
        encoded = _encoded(records)
        record = Commit(
            stage=check_name("stage", stage),
            key=check_name("key", key),
            nonce=nonce,
            components=dict(components),
            artifacts=tuple(sorted(artifacts, key=lambda artifact: artifact.name)),
            files=self._write_records(nonce, encoded),
            reason=reason,
            started_at=started_at,
            finished_at=finished_at,
            committed_at=utc_text(time.time_ns()),
            host=host,
            run_id=run_id,
        )
        self._write_document(
            self.root / "executions" / stage / key / f"{nonce}.json",
            record.to_document(),
        )
        return record.execution

    def _write_records(
        self, nonce: str, encoded: Mapping[str, tuple[bytes, int]]
    ) -> tuple[EvidenceFile, ...]:
        files = []
        for table, (data, rows) in encoded.items():
            write_file(self.root, self.evidence_file(nonce, table), data)
            files.append(
                EvidenceFile(
                    table=table,
                    sha256=hashlib.sha256(data).hexdigest(),
                    bytes=len(data),
                    rows=rows,
                )
            )
        return tuple(sorted(files, key=lambda file: file.table))

    def evidence_file(self, nonce: str, table: str) -> Path:
        """Returns where the rows of one table of an execution lie."""
        name = check_name("table", table)
        return self.root / "records" / check_name("nonce", nonce) / f"{name}.parquet"

    def find(self, key: str, stage: str) -> Execution:
        """Returns the newest execution of a key of which every byte is still there.

        Raises:
            NoExecution: there is none; the text says what is missing or altered.
        """
        folder = self.root / "executions" / check_name("stage", stage)
        problems = []
        commits = []
        for path in sorted((folder / check_name("key", key)).glob("*.json")):
            try:
                commits.append(self.read_commit(path))
            except StoreError as error:
                problems.append(str(error))
        for record in sorted(commits, key=_age, reverse=True):
            problem = self.commit_problem(record)
            if not problem:
                return record.execution
            problems.append(problem)
        if problems:
            raise NoExecution(f"{stage} must be computed again: {'; '.join(problems)}.")
        raise NeverExecuted(f"{stage} was never executed with the key {key[:12]}.")

    def newest(self, stage: str) -> Commit | None:
        """Returns the newest readable commit of a stage under any key, if any."""
        check_name("stage", stage)
        return max(self.commits(stage), key=_age, default=None)

    def commits(self, stage: str = "*") -> list[Commit]:
        """Returns every readable commit record, of one stage or all, oldest first."""
        commits = []
        for path in (self.root / "executions").glob(f"{stage}/*/*.json"):
            with contextlib.suppress(StoreError):
                commits.append(self.read_commit(path))
        return sorted(commits, key=_age)

    def read_commit(self, path: Path) -> Commit:
        """Returns the commit record of a file, checked against its own place and seal.

        Raises:
            StoreError: it cannot be read, was altered, or lies in the wrong place.
        """
        place = path.relative_to(self.root)
        with explained("read", path):
            data = path.read_bytes()
        try:
            record = read_commit(data)
        except StoreError as error:
            raise StoreError(
                f"the commit record {place} was altered: {error}"
            ) from None
        if (record.stage, record.key, f"{record.nonce}.json") != place.parts[1:]:
            raise StoreError(f"the commit record {place} lies in the wrong place")
        return record

    def commit_of(self, execution: Execution) -> Commit:
        """Returns the commit record of an execution.

        Raises:
            StoreError: it is gone or was altered.
        """
        place = Path(execution.stage, execution.key, f"{execution.nonce}.json")
        return self.read_commit(self.root / "executions" / place)

    def commit_problem(self, record: Commit) -> str:
        """Returns what is missing or altered of an execution; "" when nothing is."""
        for artifact in record.artifacts:
            problem = self._problem(
                self._artifact_file(artifact.sha256), artifact.sha256
            )
            if problem:
                return f"the artifact {artifact.name} {artifact.sha256[:12]} {problem}"
        for file in record.files:
            path = self.evidence_file(record.nonce, file.table)
            problem = self._problem(path, file.sha256)
            if problem:
                return f"the evidence file {file.table} {problem}"
        return ""

    def _problem(self, path: Path, expected_sha256: str) -> str:
        found = self._digests.sha256(path)
        if found == expected_sha256:
            return ""
        return "is missing" if found is None else "was altered"

    # --- runs ---

    def start_run(self, start: RunStart) -> None:
        """Writes what is known of a run when it starts.

        Raises:
            StoreError: the run exists already, or the system refused.
        """
        path = self.root / "runs" / check_name("run", start.run_id) / "started.json"
        if path.exists():
            raise StoreError(f"The run {start.run_id!r} exists already in this store.")
        document = {**dataclasses.asdict(start), "subject": start.subject}
        self._write_document(path, {"format": FORMAT, **document})

    def finish_run(self, finish: RunFinish) -> None:
        """Writes how a run ended and which executions it rests on.

        Raises:
            StoreError: the run was never started, or the system refused.
        """
        folder = self.root / "runs" / check_name("run", finish.run_id)
        if not (folder / "started.json").is_file():
            raise StoreError(f"The run {finish.run_id!r} was never started here.")
        document = {"format": FORMAT, **dataclasses.asdict(finish)}
        self._write_document(folder / "finished.json", document)

    def _write_document(self, path: Path, document: Mapping[str, Any]) -> None:
        write_file(self.root, path, seal(document))


def _encoded(records: Sequence[Any]) -> dict[str, tuple[bytes, int]]:
    """Returns the Parquet file and the number of rows of each table, by its name.

    Everything is encoded before the first byte of an execution is written, so that a
    row that breaks its declaration leaves nothing behind.
    """
    by_class: dict[Any, list[Any]] = {}
    for record in records:
        by_class.setdefault(type(record), []).append(record)
    return {
        kind.TABLE: (to_parquet(kind, rows), len(rows))
        for kind, rows in by_class.items()
    }


def _age(record: Commit) -> tuple[str, str]:
    return record.committed_at, record.nonce
