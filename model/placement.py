"""Who computes which places of a batch, and where the arrays of a training lie."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import jax

from model.training import TrainingState


def shares(documents: int, takers: int) -> list[range]:
    """Returns the places of a batch that each taker computes: disjoint and complete.

    Args:
        documents: Places of the batch, at least as many as takers.
        takers: Devices, 1 or more.

    Returns:
        Contiguous ranges in order whose lengths differ by 1 at most, longer ones first.
    """
    size, longer = divmod(documents, takers)
    ends = [taker * size + min(taker, longer) for taker in range(takers + 1)]
    return [range(first, end) for first, end in pairwise(ends)]


def description_of(
    state: TrainingState,
    lowered: str,
    compiled: str,
    batch: Mapping[str, jax.Array] | None = None,
) -> dict[str, Any]:
    """Returns the placement of each array, and both texts.

    Args:
        state: Parameters and optimizer state.
        lowered: Text of the lowered program.
        compiled: Text of the compiled one; empty where devices exchange nothing.
        batch: Arrays of the batch by name, where it is laid out.
    """
    leaves = jax.tree_util.tree_leaves_with_path((state, dict(batch or {})))
    arrays = [_placement(jax.tree_util.keystr(path[1:]), x) for path, x in leaves]
    return {"arrays": arrays, "lowered": lowered, "compiled": compiled}


def _placement(name: str, array: jax.Array) -> dict[str, Any]:
    """Returns where one array lies: on how many devices, and how much on each."""
    shard = array.sharding.shard_shape(array.shape)
    return {
        "array_name": name,
        "shape": json.dumps(list(array.shape)),
        "shard_shape": json.dumps(list(shard)),
        "devices": len(array.sharding.device_set),
        "is_on_all": array.is_fully_replicated,
        "sharding": str(getattr(array.sharding, "spec", type(array.sharding).__name__)),
    }
