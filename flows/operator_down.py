"""`harness down`: ends exactly what carries the mark, and puts the profile back."""

from typing import Any

import psutil

from flows.operator_processes import end, is_ours, marked
from flows.operator_profile import restore
from flows.operator_state import Operated, alone, forget, recorded
from flows.operator_worker import flow_runs_of, interrupt


def bring_down() -> dict[str, Any]:
    """Ends runs, worker and server, in this order; returns what was ended."""
    with alone():
        running = recorded()
        ended = _end_processes(running) if running else []
        profile = restore()
        if profile:
            ended.append(f"Prefect's active profile is {profile!r} again.")
        forget()
    return {"ended": ended}


def _end_processes(running: Operated) -> list[str]:
    ended = []
    processes = marked(running.mark)
    runs = flow_runs_of(processes)
    in_runs = [process for group in runs.values() for process in group]
    if runs:
        interrupt(in_runs)
        ended += [f"Flow run {flow_run} was ended." for flow_run in runs]
    worker, server = (
        psutil.Process(process_id) if is_ours(process_id, running.mark) else None
        for process_id in (running.worker, running.server)
    )
    if worker is not None:
        end([worker])
        ended.append(f"Worker ended: process {worker.pid}.")
    rest = [process for process in marked(running.mark) if process != server]
    if rest:
        end(rest)
    if server is not None:
        end([server])
        ended.append(f"Server ended: process {server.pid}.")
    left = marked(running.mark)
    if left:
        end(left)
    return ended
