"""What a worker of one host runs: one controller of a gang that another process began.

It is no run of ours: it has no store and no subject, and what it makes belongs to the
run that gave the order. Its state says in one sentence how the controller ended.
"""

from typing import Any

from prefect import Flow
from prefect.states import Cancelled, Completed, Crashed, Failed, State

from flows.server_loss import give_up_events_soon
from flows.worker_watch import WorkerGone, ending_with_worker, is_terminated
from tasks.errors import StageError
from tasks.remote_host import Order, ToldToEnd, run_host

give_up_events_soon()


def _controller(order: dict[str, Any]) -> State[Any]:
    """Runs one controller of a gang.

    Args:
        order: What the launcher asks, as `tasks.remote_host.Order` has it.
    """
    try:
        asked = Order(**order)
    except TypeError as error:
        return Failed(message=f"This order is none of a launcher: {error}.")
    try:
        with ending_with_worker():
            cause = run_host(asked)
    except ToldToEnd as told:
        # Prefect tells a cancellation before the signal; another signal is a crash.
        is_cancelled = not is_terminated()
        return (Cancelled if is_cancelled else Crashed)(message=str(told))
    except StageError as error:
        return Failed(message=str(error))
    except WorkerGone as gone:
        return Crashed(message=str(gone))
    if cause:
        return Failed(message=cause)
    return Completed(message=f"Controller {asked.process} is done.")


controller: Flow[..., Any] = Flow(
    _controller,
    name="controller",
    # What is wrong with an order is said in our own words.
    validate_parameters=False,
)
