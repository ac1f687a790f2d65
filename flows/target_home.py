"""What a result of a target rests on besides: the newest evidence at home.

Some claims of a target's task need no target: that a CPU is refused, that programs are
lowered for it, and what was rehearsed on CPUs by the very same code. A run that takes
a result in names those executions, so that its verdicts rest on them too.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from flows.reading import Row, open_run, view_rows
from warehouse.runs import StageLink

HOME_STAGES = ("qualify_tpu", "rehearse_target", "rehearse_remote")
"""Stages that are about a target and need none, each by a command of its own."""
RELEASED = ("train_model", "parameters.npz")
COMPONENTS = ("system", "configuration", "data")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Home:
    """The evidence at home about one system, configuration and data."""

    stages: tuple[Row, ...] = ()
    """Of each of `HOME_STAGES` that was made the newest execution."""
    released_sha256: str = ""
    """Digest of the parameters of the newest release; empty where there is none."""

    def links(self) -> tuple[StageLink, ...]:
        """Returns the stages as what another run reuses."""
        return tuple(
            reused(row["stage"], row["key"], row["execution_id"]) for row in self.stages
        )


def reused(stage: str, key: str, nonce: str) -> StageLink:
    """Returns what names an execution that a run rests on and has not made."""
    return StageLink(
        stage=stage, key=key, nonce=nonce, state="reused", reason="", duration_ns=0
    )


def run_that_rests_on(root: Path, executions: set[str]) -> str:
    """Returns the newest run that rests on all of some executions; empty for none.

    Args:
        root: Folder of the store.
        executions: Ids of the executions.
    """
    connection = open_run(root, None, has_history=True, names=["run_stages"])
    found: dict[str, set[str]] = {}
    for row in view_rows(connection, "run_stages"):
        found.setdefault(row["run_id"], set()).add(row["execution_id"])
    return max((run for run, own in found.items() if executions <= own), default="")


def home_of(root: Path, components: Mapping[str, str]) -> Home:
    """Returns what a store has at home of the same system, configuration and data.

    A rehearsal is a run of its own, and so is that on hosts, so each stage is looked
    for by itself; the release is that of the newest run that made one.

    Args:
        root: Folder of the store.
        components: Digests of the subject; the runtime is another by nature.
    """
    if not (root / "runs").is_dir():
        return Home()
    names = ["raw.subject_digests", "run_stages", "run_artifacts"]
    connection = open_run(root, None, has_history=True, names=names)
    found: dict[str, dict[str, str]] = {}
    for row in view_rows(connection, "raw.subject_digests"):
        found.setdefault(row["run_id"], {})[row["component"]] = row["value"]
    same = {
        run_id
        for run_id, own in found.items()
        if all(own.get(name) == components[name] for name in COMPONENTS)
    }
    newest: dict[str, Row] = {}
    for row in view_rows(connection, "run_stages"):
        if row["run_id"] in same and row["is_intact"]:
            other = newest.setdefault(row["stage"], row)
            newest[row["stage"]] = max(row, other, key=_age)
    released = [
        (row["run_id"], row["sha256"])
        for row in view_rows(connection, "run_artifacts")
        if row["run_id"] in same and (row["stage"], row["artifact"]) == RELEASED
    ]
    return Home(
        stages=tuple(newest[name] for name in HOME_STAGES if name in newest),
        released_sha256=max(released, default=("", ""))[1],
    )


def _age(row: Row) -> tuple[str, str]:
    return row["finished_at"], row["run_id"]
