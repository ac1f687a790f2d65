"""The pictures of the report: which rows each needs, and what to look for in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warehouse.figures import (
    Row,
    attention_head,
    cache_bytes,
    kill_matrix,
    learning_curve,
    logit_errors,
    stage_durations,
)


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One figure of the report: its name, heading, what to look for, and its SVG."""

    name: str
    heading: str
    caption: str
    svg: str


CAPTIONS = {
    "learning_curve": (
        "Learning curve",
        "Training loss is the loss before each update, with dropout: dots are updates, "
        "the line is the mean of up to six. It should end between the baseline and the "
        "floor, and validation beside it.",
    ),
    "attention_head": (
        "Attention of one head",
        "Each row sums to 1. Keys after the query must be blank: exactly 0.",
    ),
    "cache_bytes": (
        "Bytes of a cache",
        "Counted from the arrays in storage, not computed from a formula.",
    ),
    "logit_errors": (
        "What a release policy costs in accuracy",
        "On every valid held-out target; the FP32 release is the yardstick.",
    ),
    "stage_durations": (
        "Where the time goes",
        "Wall-clock time of the execution that each stage rests on; branches run side "
        "by side, so the bars add up to more than the run took.",
    ),
    "kill_matrix": (
        "Planted faults, and who noticed",
        "Each row is a system, a file or a step with one planted defect, below the "
        "stage whose evidence has to show it and beside the claim that noticed it "
        "first; each column is a claim, or a promise of the store. Every fault should "
        "have its own square filled, and what is no fault none.",
    ),
}


def draw_pictures(rows: Mapping[str, Sequence[Row]]) -> list[Picture]:
    """Returns the pictures whose rows exist; a picture without rows is left out.

    Args:
        rows: rows of the views by the short names of `warehouse.report_rows.VIEWS`.
    """
    drawings: dict[str, str] = {}
    if rows["curve"]:
        drawings["learning_curve"] = learning_curve(rows["curve"], rows["levels"])
    for name, draw, needed in (
        ("attention_head", attention_head, rows["attention"]),
        ("cache_bytes", cache_bytes, rows["caches"]),
        ("logit_errors", logit_errors, rows["errors"]),
        ("stage_durations", stage_durations, rows["stages"]),
    ):
        if needed:
            drawings[name] = draw(needed)
    if rows["drills"]:
        drawings["kill_matrix"] = kill_matrix(rows["drills"], rows["kills"])
    return [
        Picture(
            name=name, heading=CAPTIONS[name][0], caption=CAPTIONS[name][1], svg=svg
        )
        for name, svg in drawings.items()
    ]
