"""Every document comes once an epoch, and a cursor alone says what comes next."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import batches
from model.batches import Cursor
from model.tokenizer import PAD

DOCUMENTS = st.integers(1, 40)


@given(st.integers(0, 2**63), st.integers(0, 1000), DOCUMENTS)
def test_an_epoch_is_a_permutation_of_all_documents(
    seed: int, epoch: int, documents: int
) -> None:
    order = batches.epoch_order(seed, epoch, documents)
    assert order.dtype == np.int32
    assert sorted(order.tolist()) == list(range(documents))
    assert order.tolist() == batches.epoch_order(seed, epoch, documents).tolist()


def test_epochs_and_seeds_give_different_orders() -> None:
    orders = {
        tuple(batches.epoch_order(seed, epoch, 96).tolist())
        for seed in range(5)
        for epoch in range(5)
    }
    assert len(orders) == 25


@given(DOCUMENTS, st.integers(1, 45))
def test_two_epochs_of_batches_see_every_document_twice(
    documents: int, batch_documents: int
) -> None:
    cursor, seen = Cursor(), []
    for _ in range(2 * batches.updates_per_epoch(documents, batch_documents)):
        epoch = cursor.epoch
        rows, cursor = batches.take_batch(
            cursor, order_seed=3, documents=documents, batch_documents=batch_documents
        )
        assert 1 <= len(rows) <= batch_documents
        seen += [(epoch, int(row)) for row in rows]
    assert cursor == Cursor(epoch=2, position=0)
    assert sorted(seen) == [(e, row) for e in range(2) for row in range(documents)]


def test_a_cursor_taken_out_and_put_back_continues_with_the_same_batches() -> None:
    def take(cursor: Cursor, count: int) -> tuple[list[list[int]], Cursor]:
        taken = []
        for _ in range(count):
            rows, cursor = batches.take_batch(
                cursor, order_seed=12, documents=10, batch_documents=4
            )
            taken.append(rows.tolist())
        return taken, cursor

    whole, _ = take(Cursor(), 9)
    first, cursor = take(Cursor(), 4)
    rest, _ = take(Cursor(epoch=cursor.epoch, position=cursor.position), 5)
    assert first + rest == whole
    assert [len(rows) for rows in whole[:3]] == [4, 4, 2]


@pytest.mark.parametrize("rows", [[], [2], [2, 0], [1, 1, 0]])
def test_a_batch_is_filled_with_padding_to_its_fixed_shape(rows: list[int]) -> None:
    tokens = np.arange(3, 3 + 12, dtype=np.int32).reshape(3, 4)
    batch = batches.gather_batch(tokens, np.array(rows, np.int32), 3)
    assert batch.shape == (3, 4)
    assert batch.dtype == np.int32
    assert batch[: len(rows)].tolist() == tokens[rows].tolist()
    assert (batch[len(rows) :] == PAD).all()
