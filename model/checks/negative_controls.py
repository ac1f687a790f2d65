"""Faults planted into a restored training, which the comparison has to find.

An optimizer that lost its moments has exactly the next loss of a correct one, so a
recovery that only "looks right" proves nothing. Each control here damages one thing
that a restore may lose, and goes on as a training would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from model.batches import Cursor
from model.checkpoint_manifest import Progress
from model.checks import recovery
from model.checks.rows import Row, count, real
from model.config import TrainConfig
from model.digests import first_difference
from model.parameters import Parameters
from model.training import TrainingState
from model.training_loop import CompletedUpdate
from model.update_trace import KINDS

CLAIM = "2.5"
UNPLANTED = "none"


@dataclass(frozen=True, kw_only=True)
class Restored:
    """What a training goes on from: its state, its place and its recipe."""

    state: TrainingState
    progress: Progress
    train: TrainConfig


def _with_moments(
    restored: Restored, change: Callable[[Any], Any], **fields: Any
) -> Restored:
    adam = restored.state.adam

    def changed(moments: Parameters) -> Parameters:
        return {name: change(moment) for name, moment in moments.items()}

    altered = adam._replace(
        first_moment=changed(adam.first_moment),
        second_moment=changed(adam.second_moment),
        **fields,
    )
    return replace(restored, state=restored.state._replace(adam=altered))


def adam_restarted(restored: Restored) -> Restored:
    """Both moments are zero again; the step count is kept."""
    return _with_moments(restored, jnp.zeros_like)


def moments_rounded(restored: Restored) -> Restored:
    """Both moments went through bfloat16, as a smaller checkpoint would store them."""
    return _with_moments(
        restored, lambda moment: moment.astype(jnp.bfloat16).astype(jnp.float32)
    )


def step_reset(restored: Restored) -> Restored:
    """The optimizer counts its updates from zero; the moments are kept."""
    step = jnp.zeros_like(restored.state.adam.step)
    return _with_moments(restored, lambda moment: moment, step=step)


def dropout_reseeded(restored: Restored) -> Restored:
    """Dropout follows another seed."""
    seed = restored.train.dropout_seed + 1
    return replace(restored, train=replace(restored.train, dropout_seed=seed))


def order_reshuffled(restored: Restored) -> Restored:
    """The documents are shuffled by another seed."""
    seed = restored.train.order_seed + 1
    return replace(restored, train=replace(restored.train, order_seed=seed))


def cursor_off_by_one(restored: Restored) -> Restored:
    """One document of the order is skipped."""
    cursor = restored.progress.cursor
    moved = Cursor(epoch=cursor.epoch, position=cursor.position + 1)
    return replace(restored, progress=replace(restored.progress, cursor=moved))


CONTROLS: Mapping[str, Callable[[Restored], Restored]] = {
    control.__name__: control
    for control in (
        adam_restarted,
        dropout_reseeded,
        order_reshuffled,
        cursor_off_by_one,
        step_reset,
        moments_rounded,
    )
}


@dataclass(frozen=True, kw_only=True)
class Made:
    """One update with its line in the trace."""

    completed: CompletedUpdate
    line: Mapping[str, Any]

    @property
    def loss_nats(self) -> float:
        """Mean loss before the update."""
        return float(np.asarray(self.completed.outcome.loss))

    def array(self, kind: str, leaf: str) -> ArrayLike | None:
        """The array behind a digest, where it is one of a tree."""
        trees: dict[str, Mapping[str, ArrayLike]] = {
            "gradients": self.completed.outcome.gradients,
            "first_moment": self.completed.state.adam.first_moment,
            "second_moment": self.completed.state.adam.second_moment,
            "parameters": self.completed.state.parameters,
        }
        return trees.get(kind, {}).get(leaf)


def control_rows(
    control: str, trace: recovery.Trace, true: list[Made], planted: list[Made]
) -> list[Row]:
    """Returns one row of ``negative_controls`` for each update after the restore.

    Args:
        control: Name of the planted fault.
        trace: Trace of the uninterrupted training, by update.
        true: The same updates from the same restore, without the fault.
        planted: The updates with the fault.
    """
    rows = []
    for right, made in zip(true, planted, strict=True):
        update = made.completed.update
        parted = list(_parted(trace[update], made.line))
        kind, leaf = parted[0] if parted else ("", "")
        rows.append(
            {
                "control": control,
                "update": update,
                "first_kind": kind,
                "first_leaf": leaf,
                "first_difference": _difference(trace[update], right, made, kind, leaf),
                "differing_leaves": len(parted),
                "loss_nats": made.loss_nats,
                "uninterrupted_loss_nats": _loss_of(trace[update]),
            }
        )
    return rows


def _parted(expected: recovery.Line, measured: recovery.Line) -> Iterator[Any]:
    """Yields kind and leaf of every digest that differs, causes before effects."""
    for kind in KINDS:
        old, new = (
            {d["leaf"]: d for d in line["digests"] if d["kind"] == kind}
            for line in (expected, measured)
        )
        for leaf in sorted(old.keys() | new.keys()):
            if old.get(leaf) != new.get(leaf):
                yield kind, leaf


def _difference(
    expected: recovery.Line, right: Made, made: Made, kind: str, leaf: str
) -> str:
    """Index and ulp where there are arrays, both values where there are values."""
    if not kind:
        return ""
    arrays = right.array(kind, leaf), made.array(kind, leaf)
    if arrays[0] is None or arrays[1] is None:
        # the place stands in columns of its own
        return recovery.first_difference(expected, made.line, kind).partition(": ")[2]
    return first_difference(arrays[0], arrays[1])


def _loss_of(line: recovery.Line) -> float:
    bits = np.uint32(int(line["values"]["loss_bits"], 16))
    return float(bits.view(np.float32))


def measurements(rows: list[Row]) -> list[Row]:
    """Returns how many updates gave a fault away, and how plausible its losses were.

    Args:
        rows: Rows of one control, in the order of updates.
    """
    control = rows[0]["control"]
    found = sum(row["differing_leaves"] > 0 for row in rows)
    measure = (
        "unplanted_detected_updates"
        if control == UNPLANTED
        else "planted_fault_detected_updates"
    )
    first = next((row for row in rows if row["first_kind"]), None)
    place = "" if first is None else "update {update}, {first_kind} {first_leaf}"
    detail = place.format(**(first or {})).rstrip()
    made = [count(CLAIM, measure, control, found, "updates", detail)]
    for name, row in zip(("first", "second"), rows, strict=False):
        apart = row["loss_nats"] - row["uninterrupted_loss_nats"]
        case = f"{control}/{name}"
        made.append(real(CLAIM, "planted_fault_loss_change", case, apart, "nats"))
    return made
