"""The stage that measures time: alone on the machine, in processes of its own."""

from typing import Any

from model.config import ModelConfig, ProfileConfig, TrainConfig, to_dict
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement
from warehouse.records.inference import Timing, TraceRegion
from warehouse.store import Execution

TIME = "model.programs.time_endpoints"
TRACE = "model.programs.record_trace"


@stage(
    programs=(TIME, TRACE),
    writes=(Measurement, Comparison, Timing, TraceRegion),
    measures_time=True,
)
def profile_runtime(
    work: Work,
    tokens: Execution,
    trained: Execution,
    exported: Execution,
    model: ModelConfig,
    train: TrainConfig,
    profile: ProfileConfig,
) -> None:
    """Times the released endpoints and records a profiler trace.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        trained: The uninterrupted training, whose parameters are released.
        exported: The release.
        model: Shape of the model.
        train: Recipe of the traced update.
        profile: Samples, processes, regions and prompt.
    """
    files = work.fetch(exported) | work.fetch(trained, "parameters.npz")
    tokens_path = work.fetch(tokens, "tokens.npz")["tokens.npz"]
    request = {"files": files, "profile": to_dict(profile)}

    if work.is_asked_for(TIME):
        _time(work, request, profile.processes)
    work.run(
        TRACE,
        request
        | {
            "tokens": tokens_path,
            "model": to_dict(model),
            "train": to_dict(train),
        },
    )


def _time(work: Work, request: dict[str, Any], wanted: int) -> None:
    """Times the endpoints in so many processes, one after another."""
    # Empty for the first process, which therefore compiles; the others find its work.
    compiled = {"JAX_COMPILATION_CACHE_DIR": str(work.scratch("compiled"))}
    processes = [
        work.run(
            TIME,
            request | {"process": number},
            label=f"process {number}",
            environment=compiled,
            is_release_alone=True,
        ).process_id
        for number in range(1, wanted + 1)
    ]
    work.record(
        Measurement(
            claim="4.6",
            measure="timing_processes",
            value_count=len(set(processes)),
            unit="processes",
            detail=f"process ids {sorted(processes)}",
        )
    )
