"""Turns the body of a stage into a Prefect task that knows when not to run.

A stage module holds one function in four paragraphs: load, run the program, record,
hand over. Everything that is the same for all stages stands here: its key, the
question to the store, the commit, and the state that Prefect shows: Executed with the
reason of the miss, or Reused with the execution and the run that made it.
"""

import inspect
import platform
import time
from collections.abc import Callable, Mapping
from typing import Any

from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.context import TaskRunContext
from prefect.settings import get_current_settings
from prefect.states import Completed

from tasks import progress
from tasks.clock import HASHING, KEY, RECORDING, spending
from tasks.errors import InputChanged
from tasks.identity import KeyComponent, StageDefinition, by_name, key_of
from tasks.reuse import (
    components_of_call,
    explain_difference,
    explain_reuse,
    present_run,
    store_root,
)
from tasks.temporary_folders import temporary_folder
from tasks.work import Work
from warehouse.errors import NeverExecuted, NoExecution
from warehouse.runs import utc_text
from warehouse.store import Execution, Store

EXECUTED = "Executed"
REUSED = "Reused"
ASKED_TO_RECOMPUTE = "asked to recompute"
NEVER_EXECUTED = "never executed"

Body = Callable[..., None]


class StageTask(Task[Any, Any]):
    """A Prefect task that is a stage; `body` is the plain function."""

    body: Body
    definition: StageDefinition


def stage(
    *,
    programs: tuple[str, ...],
    writes: tuple[type, ...],
    measures_time: bool = False,
    not_in_key: tuple[str, ...] = (),
) -> Callable[[Body], StageTask]:
    """Declares a stage: `@stage(programs=(...,), writes=(...,))`.

    Args:
        programs: Modules the body may run; they and their imports are in the key.
        writes: Record classes the stage may write.
        measures_time: Whether the machine is part of the key.
        not_in_key: Parameters that say where something lies and not what it is;
            another parameter has to hold the digest of their content.

    Returns:
        A decorator. The task takes the body's parameters without `work`, `runtime`,
        the numerics fingerprint, and `system`, what runs in the place of the built-in
        one; it returns an `Execution`.
    """

    def declare(body: Body) -> StageTask:
        definition = StageDefinition(
            name=body.__name__,
            module=body.__module__,
            programs=programs,
            writes=writes,
            measures_time=measures_time,
            not_in_key=not_in_key,
        )
        task = StageTask(
            _task_function(definition, body),
            name=definition.name,
            task_run_name=definition.name,
            # Prefect would show what it finds in a cache of its own as "Cached".
            cache_policy=NO_CACHE,
            persist_result=False,
        )
        task.body = body
        task.definition = definition
        return task

    return declare


def _task_function(definition: StageDefinition, body: Body) -> Callable[..., Any]:
    parameters = list(inspect.signature(body).parameters.values())[1:]
    runtime = inspect.Parameter("runtime", inspect.Parameter.KEYWORD_ONLY)
    system = inspect.Parameter("system", inspect.Parameter.KEYWORD_ONLY, default=None)
    signature = inspect.Signature([*parameters, runtime, system])

    def run_stage(*positional: Any, **named: Any) -> Any:
        _enter(definition.name)
        arguments = signature.bind(*positional, **named).arguments
        with spending(definition.name, KEY):
            components = components_of_call(definition, arguments)
        with spending(definition.name, HASHING):
            store = Store(store_root())
            found, reason = _look_up(store, definition.name, components)
        if found is not None:
            return Completed(name=REUSED, message=reason, data=found)
        progress.tell(definition.name, event=progress.STARTED, message=reason)
        execution = _execute(store, definition, body, arguments, components, reason)
        return Completed(name=EXECUTED, message=reason, data=execution)

    run_stage.__name__ = definition.name
    run_stage.__qualname__ = definition.name
    run_stage.__module__ = definition.module
    run_stage.__doc__ = body.__doc__
    run_stage.__signature__ = signature  # type: ignore[attr-defined]
    return run_stage


def _enter(name: str) -> None:
    """Tells that a stage begins, and what its task run waited for."""
    context = TaskRunContext.get()
    if context is None:
        return
    inputs = context.task_run.task_inputs.values()
    awaited = {
        given.id for several in inputs for given in several if hasattr(given, "id")
    }
    told = {"task_run_id": context.task_run.id, "after": awaited}
    progress.tell(name, event=progress.ENTERED, **told)


def _look_up(
    store: Store, name: str, components: tuple[KeyComponent, ...]
) -> tuple[Execution | None, str]:
    """Returns the execution to reuse, or none and the reason why there is none."""
    if _is_asked_to_recompute():
        return None, ASKED_TO_RECOMPUTE
    try:
        found = store.find(key_of(components), name)
    except NoExecution as missing:
        return None, _reason_of_miss(store, name, by_name(components), missing)
    return found, explain_reuse(store.commit_of(found))


def _is_asked_to_recompute() -> bool:
    context = TaskRunContext.get()
    asked = context.task.refresh_cache if context else None
    return get_current_settings().tasks.refresh_cache if asked is None else asked


def _reason_of_miss(
    store: Store, name: str, now: Mapping[str, str], missing: NoExecution
) -> str:
    if not isinstance(missing, NeverExecuted):
        return str(missing)
    earlier = store.newest(name)
    if earlier is None or earlier.components == now:
        return NEVER_EXECUTED
    return explain_difference(earlier.components, now)


def _refuse_changed_source(
    definition: StageDefinition,
    arguments: Mapping[str, Any],
    components: tuple[KeyComponent, ...],
) -> None:
    """Refuses to keep under a key what another source may have computed."""
    with spending(definition.name, KEY):
        now = components_of_call(definition, arguments)
    if now != components:
        changes = explain_difference(by_name(components), by_name(now))
        raise InputChanged(
            f"{changes} while {definition.name} ran; nothing of it was kept. Run again."
        )


def _execute(
    store: Store,
    definition: StageDefinition,
    body: Body,
    arguments: Mapping[str, Any],
    components: tuple[KeyComponent, ...],
    reason: str,
) -> Execution:
    """Runs the body in a private folder and commits what it made."""
    given = dict(arguments)
    runtime, system = given.pop("runtime"), given.pop("system", None)
    started_ns = time.time_ns()
    with temporary_folder(definition.name) as folder:
        work = Work(definition, store, runtime, folder, system=system)
        body(work, **given)
        _refuse_changed_source(definition, arguments, components)
        with spending(definition.name, RECORDING):
            return store.commit(
                stage=definition.name,
                key=key_of(components),
                components=by_name(components),
                artifacts=work.store_artifacts(),
                records=work.records,
                reason=reason,
                started_at=utc_text(started_ns),
                finished_at=utc_text(time.time_ns()),
                host=platform.node(),
                run_id=present_run(),
            )
