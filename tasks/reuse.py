"""What a stage needs to know whether it has been computed already, and to say so.

There is one cache, the commit records of our store: a stage computes its key and asks
the store, which hashes every artifact and evidence file again, so that damage makes the
stage run again and heal. Prefect keeps no results of stages and shows what they say.
"""

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from tasks.errors import StoreUnnamed
from tasks.identity import KeyComponent, StageDefinition, key_components
from tasks.implementation_files import components_of_system
from warehouse.commits import Commit

DEFAULT_ROOT = "evidence"
# Prefect sets it for a process that runs one flow run of a deployment.
STARTED_BY_WORKER = "PREFECT__FLOW_RUN_ID"
SHOWN_CHANGES = 3

_run_id = ContextVar("run_id", default="")


def store_root() -> Path:
    """Returns the folder of the evidence: HARNESS_ROOT, else ./evidence.

    Raises:
        StoreUnnamed: A worker started this process, in a folder that it removes again.
    """
    named = os.environ.get("HARNESS_ROOT") or ""
    if STARTED_BY_WORKER in os.environ and not Path(named).is_absolute():
        raise StoreUnnamed(
            f"The worker that runs this has HARNESS_ROOT {named!r}, and its runs work "
            "in temporary folders; start it with `harness up`, or set HARNESS_ROOT to "
            "the absolute path of the evidence."
        )
    return Path(named or DEFAULT_ROOT).absolute()


@contextmanager
def working_for(run_id: str) -> Iterator[None]:
    """Has what stages compute while the block runs bear the name of its run."""
    token = _run_id.set(run_id)
    try:
        yield
    finally:
        _run_id.reset(token)


def present_run() -> str:
    """Returns the run that stages work for now; "" outside of one."""
    return _run_id.get()


def machine() -> dict[str, str]:
    """Returns the description of this machine that measured times depend on."""
    return {
        "host": platform.node(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor()


def components_of_call(
    stage: StageDefinition, parameters: Mapping[str, Any]
) -> tuple[KeyComponent, ...]:
    """Returns the key components of a call of a stage.

    Args:
        stage: The stage.
        parameters: The values of the call by name, `runtime` among them, and maybe
            `system`.
    """
    inputs = {
        name: value
        for name, value in parameters.items()
        if name not in ("runtime", "system")
    }
    components = key_components(stage, inputs, parameters["runtime"], machine())
    added = components_of_system(parameters.get("system"))
    return tuple(sorted({*components, *added})) if added else components


def explain_reuse(commit: Commit) -> str:
    """Returns why an execution counts again, and who made it, as one sentence."""
    maker = f"run {commit.run_id}" if commit.run_id else f"a run on {commit.host}"
    return (
        f"source, settings, inputs and runtime are those of execution "
        f"{commit.nonce[:8]}, made by {maker} at {commit.finished_at[:16]}Z"
    )


def explain_difference(earlier: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Returns what changed between two keys, such as "source changed: model.cache".

    Args:
        earlier: Components of the execution to compare with, "kind:name" to value.
        now: Components of the present key.
    """
    changed = sorted(
        name
        for name in earlier.keys() | now.keys()
        if earlier.get(name) != now.get(name)
    )
    parts = [_one_change(name, earlier.get(name), now.get(name)) for name in changed]
    if len(parts) > SHOWN_CHANGES:
        parts = [*parts[:SHOWN_CHANGES], f"and {len(parts) - SHOWN_CHANGES} more"]
    return "; ".join(parts)


def _one_change(component: str, before: str | None, after: str | None) -> str:
    kind, _, name = component.partition(":")
    if kind in ("source", "implementation"):
        verb = "added" if before is None else "removed" if after is None else "changed"
        return f"{kind} {verb}: {name}"
    shown = [_short(kind, value) for value in (before, after)]
    return f"{kind} changed: {name} {shown[0]} -> {shown[1]}"


def _short(kind: str, value: str | None) -> str:
    if value is None:
        return "(none)"
    return value[:8] if kind == "artifact" else value
