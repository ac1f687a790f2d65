"""Sets trainings beside the uninterrupted one, down to the bits where they part.

Traces hold digests. A training that was given the uninterrupted trace has kept the
arrays of the first difference; the other side is made once more, from the start, and
keeps its own arrays where it parts from that training.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.work import Work

TRAIN = "model.programs.train_model"
COMPARE = "model.programs.compare_traces"
LOCATED_TRAININGS = 4
"""Trainings whose difference is told to the bit; a fault of every restore is one."""

Request = dict[str, Any]
Compared = dict[str, Any]


def compare_trainings(
    work: Work, request: Request, expected: str, trainings: Sequence[Compared]
) -> None:
    """Compares traces and gathers the rows.

    Args:
        work: The working side of the stage.
        request: What every training was asked, with its last update.
        expected: Path of the trace of the uninterrupted training.
        trainings: What `model.programs.compare_traces` takes as `measured`.
    """
    measured = [training | _kept_arrays(training) for training in trainings]
    parted = [item for item in measured if "arrays" in item][:LOCATED_TRAININGS]
    if parted:
        again = [_beside(place, item) for place, item in enumerate(parted)]
        run = work.run(
            TRAIN,
            request | {"trainings": again},
            label="uninterrupted once more",
            gather=False,
        )
        for training, item in zip(again, parted, strict=True):
            kept = run.out / "artifacts" / f"parted{training['suffix']}.npz"
            if kept.exists():
                item["expected_arrays"] = str(kept)
    work.run(COMPARE, {"expected": expected, "measured": measured})


def _kept_arrays(training: Compared) -> Compared:
    """Returns where a training has kept the arrays of its first difference, if any."""
    if "trace" not in training:
        return {}
    trace = Path(training["trace"])
    kept = trace.with_name(trace.stem.replace("trace", "parted", 1) + ".npz")
    return {"arrays": str(kept)} if kept.exists() else {}


def _beside(place: int, item: Compared) -> Request:
    """Returns what differs in the uninterrupted training made once more."""
    return {
        "label": f"uninterrupted beside {item['case']}",
        "suffix": f"-{place}",
        "compared_trace": item["trace"],
    }
