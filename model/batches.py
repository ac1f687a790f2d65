"""The shuffled order of documents and the cursor through it.

Which documents an update sees must follow from a seed and a cursor alone, so that a
restored process continues with the very batch that the killed one would have taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.tokenizer import PAD

if TYPE_CHECKING:
    from jaxtyping import Int32


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """How far the training order has been consumed."""

    epoch: int = 0
    position: int = 0


def updates_per_epoch(documents: int, batch_documents: int) -> int:
    """Returns how many batches one pass over the documents takes; the last is kept."""
    return -(-documents // batch_documents)


def epoch_order(order_seed: int, epoch: int, documents: int) -> Int32[np.ndarray, " N"]:
    """Returns the order of document rows in one epoch.

    Args:
        order_seed: Names the whole shuffled order, 0 or more.
        epoch: The pass, from 0.
        documents: Number of training documents, N.

    Returns:
        A permutation of 0..N-1, shape [N], int32.
    """
    generator = np.random.Generator(np.random.PCG64([order_seed, epoch]))
    return generator.permutation(documents).astype(np.int32)


def take_batch(
    cursor: Cursor, *, order_seed: int, documents: int, batch_documents: int
) -> tuple[Int32[np.ndarray, " B"], Cursor]:
    """Returns the document rows of the next batch and the cursor behind it.

    The last batch of an epoch holds the documents that are left, so it may be shorter;
    no batch mixes two epochs and every document is seen once an epoch.

    Args:
        cursor: Where the order stands before this batch.
        order_seed: Names the shuffled order.
        documents: Number of training documents.
        batch_documents: Most documents of a batch, at least 1.

    Returns:
        Row numbers [1..batch_documents], int32, and the next cursor.
    """
    order = epoch_order(order_seed, cursor.epoch, documents)
    end = min(cursor.position + batch_documents, documents)
    rows = order[cursor.position : end]
    if end == documents:
        return rows, Cursor(epoch=cursor.epoch + 1, position=0)
    return rows, Cursor(epoch=cursor.epoch, position=end)


def gather_batch(
    tokens: Int32[np.ndarray, "N T"],
    rows: Int32[np.ndarray, " B"],
    batch_documents: int,
) -> Int32[np.ndarray, "B T"]:
    """Returns the documents of a batch, filled with all-PAD rows to a fixed shape.

    Args:
        tokens: Token rows of the split [N, context + 1], int32.
        rows: Row numbers, at most ``batch_documents``.
        batch_documents: Rows of the result, whatever the number of documents.

    Returns:
        Tokens [batch_documents, context + 1], int32; PAD rows count no target.
    """
    batch = np.full((batch_documents, tokens.shape[1]), PAD, dtype=np.int32)
    batch[: len(rows)] = tokens[rows]
    return batch
