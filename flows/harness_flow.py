"""Turns the body of a flow into a Prefect flow that says what came of it.

Everything that is the same for all flows stands here: how parameters are checked, by
what its runs are told apart, what they leave on the pages of the server, and the
sentence in the state of each.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from prefect import Flow
from prefect.exceptions import CancelledRun, CrashedRun, TerminationSignal
from prefect.states import Cancelled, Completed, Crashed, Failed, State
from prefect.task_runners import ThreadPoolTaskRunner

from flows.left_task_runs import crash_left_task_runs
from flows.outcome import outcome
from flows.parameters import checked, form_signature
from flows.progress_pages import progress_shown
from flows.published import is_watched, publish
from flows.reading import open_run, selected_run
from flows.run_labels import run_name, tag_run
from flows.server_loss import give_up_events_soon
from flows.told_failures import TOLD, hide_tracebacks_of_told_failures
from flows.worker_watch import TERMINATED, WorkerGone, is_terminated
from tasks.reuse import store_root

Body = Callable[..., Any]


def harness_flow(body: Body) -> Flow[..., Any]:
    """Returns the Prefect flow of a function that returns the id of its run.

    The function may return a state instead, with a sentence of its own and the id as
    data. Two stages run at a time, each with the two threads its numerics are pinned
    to.
    """
    # A flow is declared before the first event of its process.
    give_up_events_soon()
    hide_tracebacks_of_told_failures()
    function: Any = _flow_function(body)
    return Flow(
        function,
        name=body.__name__,
        flow_run_name=run_name,
        task_runner=ThreadPoolTaskRunner(max_workers=2),  # type: ignore[arg-type]
        on_crashed=[crash_left_task_runs],
        # What is wrong with a parameter is said in our own words.
        validate_parameters=False,
    )


def _flow_function(body: Body) -> Callable[..., State[Any]]:
    @functools.wraps(body)
    def run_flow(*positional: Any, **named: Any) -> State[Any]:
        try:
            bound = inspect.signature(body).bind(*positional, **named)
            bound.apply_defaults()
            asked = checked(body, bound.arguments)
            tag_run(asked)
            with progress_shown(asked["preset_name"]):
                ended = body(**asked)
            return _told(body.__name__, ended)
        except TOLD as error:
            return Failed(message=str(error), data=error)
        # A flow inside this one may have crashed; Prefect would call that a failure.
        except (WorkerGone, CrashedRun) as crashed:
            return Crashed(message=str(crashed))
        except CancelledRun as cancelled:
            return Cancelled(message=str(cancelled))
        except TerminationSignal:
            if not is_terminated():
                raise
            return Crashed(message=TERMINATED)

    run_flow.__signature__ = form_signature(body)  # type: ignore[attr-defined]
    return run_flow


def _told(flow: str, ended: str | State[Any]) -> State[Any]:
    """Returns the state of a run that is complete, and publishes what it made."""
    run_id = str(ended.data) if isinstance(ended, State) else ended
    if not is_watched():
        sentence = f"Run {run_id} is complete."
        return (
            ended
            if isinstance(ended, State)
            else Completed(message=sentence, data=run_id)
        )
    connection = open_run(store_root(), run_id)
    # What a flow inside this one made is on the pages already.
    is_own = selected_run(connection)["flow"] == flow
    problem = publish(connection, store_root()) if is_own else ""
    if isinstance(ended, State):
        ended.message = f"{ended.message}{problem}"
        return ended
    return Completed(message=f"{outcome(connection)}{problem}", data=run_id)
