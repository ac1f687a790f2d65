"""Faults of keys and reuse, of how programs end, and of what becomes a baseline."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults import (
    NO_REPORT,
    baseline_faults,
    baseline_scenes,
    checkouts,
    workflow_scenes,
)
from tests.faults.declaring import of_function

_component = partial(of_function, "workflow")
SCENES = (*workflow_scenes.SCENES, *checkouts.SCENES, *baseline_scenes.SCENES)


def _without(kind: str) -> Callable[[Any], Any]:
    """Returns a faulty `key_components` that leaves out one kind."""

    def make(original: Callable[..., Any]) -> Any:
        def key_components(*given: Any) -> Any:
            return tuple(row for row in original(*given) if row.kind != kind)

        return key_components

    return make


def _named_modules_alone(original: Callable[..., Any]) -> Any:
    def source_closure(*names: str) -> Any:
        closure = original(*names)
        own = tuple(pair for pair in closure.modules if pair[0] in names)
        return dataclasses.replace(closure, modules=own)

    return source_closure


def _with_nonce(original: Callable[..., Any]) -> Any:
    def input_rows(name: str, value: Any) -> Any:
        from tasks.identity import KeyComponent

        yield from original(name, value)
        if hasattr(value, "nonce"):
            yield KeyComponent("artifact", f"{name}/nonce", value.nonce)

    return input_rows


def _by_text(original: Callable[..., Any]) -> Any:
    def canonical(value: Any, where: str = "value") -> Any:
        try:
            return original(value, where)
        except TypeError:
            return str(value)

    return canonical


KEYS = (
    _component(
        "cache-hit-with-changed-config",
        "keys",
        "reuse",
        "tasks.identity.key_components",
        "The key holds no setting; a changed one finds the old result.",
        "awslabs/unified-kg-rag-on-aws#72",
        _without("config"),
    ),
    _component(
        "key-without-imported-source",
        "keys",
        "reuse",
        "tasks.source_closure.source_closure",
        "The key holds the source of the stage alone, and not what it imports.",
        "GridTools/gt4py#2599",
        _named_modules_alone,
    ),
    _component(
        "key-without-runtime",
        "keys",
        "reuse",
        "tasks.identity.key_components",
        "The key holds no version of what computes; an upgrade finds the old result.",
        "jax-ml/jax#18750",
        _without("runtime"),
    ),
    _component(
        "key-without-input-digests",
        "keys",
        "reuse",
        "tasks.identity.key_components",
        "The key holds no digest of what earlier stages made.",
        "brazilofmux/tinymux#2061",
        _without("artifact"),
    ),
    _component(
        "timing-key-without-machine",
        "keys",
        "reuse",
        "tasks.identity.key_components",
        "Times that one machine measured are found on another.",
        NO_REPORT,
        _without("machine"),
    ),
    _component(
        "nonce-in-key",
        "keys",
        "reuse",
        "tasks.identity._input_rows",
        "Equal inputs that were computed twice are two inputs; nothing is reused.",
        NO_REPORT,
        _with_nonce,
    ),
    _component(
        "value-named-by-str",
        "keys",
        "reuse",
        "tasks.identity.canonical",
        "What has no stable name goes into the key as its text, which differs.",
        NO_REPORT,
        _by_text,
    ),
)


def _unchecked_problem(original: Callable[..., Any]) -> Any:
    def problem(self: Any, path: Path, expected_sha256: str) -> str:
        del self, expected_sha256
        return "" if path.exists() else "is missing"

    del original
    return problem


def _artifacts_alone(original: Callable[..., Any]) -> Any:
    def commit_problem(self: Any, record: Any) -> str:
        text: str = original(self, dataclasses.replace(record, files=()))
        return text

    return commit_problem


def _by_modification_time(original: Callable[..., Any]) -> Any:
    """Remembers a digest for as long as name, size and modification time stay."""
    known: dict[tuple[str, int, int], str | None] = {}

    def sha256(self: Any, path: Path) -> str | None:
        if not path.exists():
            return None
        found = path.stat()
        place = (str(path), found.st_size, found.st_mtime_ns)
        if place not in known:
            known[place] = original(self, path)
        return known[place]

    return sha256


REUSE = (
    _component(
        "cache-entry-content-unchecked",
        "kept_files",
        "reuse",
        "warehouse.store.Store._problem",
        "A digest is kept with what was stored and never compared.",
        "pmcfadin/cqlite#1359",
        _unchecked_problem,
    ),
    _component(
        "evidence-not-hashed-before-reuse",
        "kept_files",
        "reuse",
        "warehouse.store.Store.commit_problem",
        "Artifacts are hashed before an execution counts again, its rows are not.",
        "apache/parquet-java#3069",
        _artifacts_alone,
    ),
    _component(
        "digest-remembered-by-modification-time",
        "kept_files",
        "reuse",
        "warehouse.durable.DigestMemory.sha256",
        "A file that keeps its modification time keeps its digest.",
        "bazelbuild/bazel#3360",
        _by_modification_time,
    ),
    _component(
        "source-changed-while-running",
        "source_while_running",
        "reuse",
        "tasks.stage._refuse_changed_source",
        "A stage whose source was edited meanwhile is kept under the old key.",
        "bazelbuild/bazel#25874",
        lambda original: lambda *given: None,
    ),
)


def _known_tables_alone(original: Callable[..., Any]) -> Any:
    def read_rows(self: Any, file: Path) -> Any:
        return original(self, file) if file.stem in self._tables else []

    return read_rows


PROGRAMS = (
    _component(
        "failed-program-counts",
        "programs",
        "run",
        "tasks.run_program._raise_unless_done",
        "Rows of a program that failed after it had written them are kept.",
        "google/orbax#605",
        lambda original: lambda *given: None,
    ),
    _component(
        "deadline-ignored",
        "programs",
        "run",
        "tasks.run_program._Watch._time_out",
        "A program may take as long as it likes.",
        "marin-community/marin#8538",
        lambda original: lambda self: None,
    ),
    _component(
        "unknown-table-ignored",
        "programs",
        "run",
        "tasks.work.Work._read_rows",
        "Rows of a table that the stage does not declare are dropped in silence.",
        "neiltron/apple-health-mcp#23",
        _known_tables_alone,
    ),
    _component(
        "runtime-change-accepted",
        "programs",
        "run",
        "tasks.work.Work._compare_runtime",
        "A program under another runtime adds to the evidence of this one.",
        "jax-ml/jax#25768",
        lambda original: lambda self, run: None,
    ),
    _component(
        "undeclared-program-run",
        "programs",
        "run",
        "tasks.work.Work._refuse_unknown_program",
        "A stage runs a program whose source is not in its key.",
        NO_REPORT,
        lambda original: lambda self, program: None,
    ),
)


FAULTS = (*KEYS, *REUSE, *PROGRAMS, *checkouts.FAULTS, *baseline_faults.FAULTS)
