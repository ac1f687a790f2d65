"""Updates by several devices against the production update on one.

The devices are four virtual ones of this process; several processes are the business of
`tests/tasks/test_gang_training.py`. Documents differ in length, so that a mean of means
is another number, and dropout is on.
"""

from dataclasses import replace

import jax
import numpy as np
import pytest

from model import data_parallel
from model.checkpoint import state_arrays
from model.checks.controllers import moment_difference, parameter_difference
from model.collective_update import CollectiveUpdate
from model.collectives import normalisation
from model.config import ModelConfig, TrainConfig
from model.data_parallel import (
    SplitUpdate,
    WholeUpdate,
    ordered_sum,
)
from model.digests import tree_sha256
from model.placement import shares
from model.sharded_update import ShardedUpdate
from model.tokenizer import PAD
from model.training import (
    document_keys,
    dropout_key,
    initial_state,
    summed_loss,
)
from model.training_loop import initial_progress, run_updates
from model.transformer import logits
from warehouse.contract import read_contract

MODEL = ModelConfig(
    context_tokens=6, width=8, heads=2, feed_forward_width=8, dropout_rate=0.2
)
TRAIN = TrainConfig(batch_documents=6, dropout_seed=3)
DOCUMENTS = 10  # the second batch of an epoch is filled up with PAD
UPDATES = 3
LIMITS = {
    requirement.measure: requirement.limit
    for claim in read_contract()
    for requirement in claim.requirements
    if claim.id == "5.10"
}


def documents() -> np.ndarray:
    generator = np.random.default_rng(7)
    tokens = np.full((DOCUMENTS, MODEL.context_tokens + 1), PAD, dtype=np.int32)
    for row, length in enumerate(generator.integers(2, 8, DOCUMENTS)):
        tokens[row, :length] = generator.integers(3, 259, length)
    return tokens


TOKENS = documents()


def train(update) -> list:
    state = update.place(initial_state(MODEL, 11))
    progress = initial_progress(TRAIN, DOCUMENTS)
    return list(run_updates(state, progress, TOKENS, MODEL, TRAIN, UPDATES, update))


def digests(made: list) -> list[str]:
    return [tree_sha256(state_arrays(each.state)) for each in made]


@pytest.fixture(scope="module")
def whole() -> list:
    return train(WholeUpdate(MODEL, TRAIN))


@pytest.fixture(scope="module")
def split() -> list:
    return train(SplitUpdate(MODEL, TRAIN))


@pytest.mark.parametrize(("places", "takers"), [(16, 1), (16, 5), (16, 16), (7, 4)])
def test_shares_are_disjoint_complete_and_in_order(places: int, takers: int) -> None:
    parts = shares(places, takers)
    assert [i for part in parts for i in part] == list(range(places))
    assert len(parts) == takers
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert all(parts)


def test_the_bits_of_the_split_update_do_not_depend_on_the_devices(
    split: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four devices, of which two have two documents, against one that has all six."""
    assert len(SplitUpdate(MODEL, TRAIN).parts) == 4
    monkeypatch.setattr(data_parallel, "ordered_devices", lambda: jax.devices()[:1])
    alone = train(SplitUpdate(MODEL, TRAIN))
    assert digests(alone) == digests(split)


@pytest.mark.parametrize("program", [SplitUpdate, CollectiveUpdate, ShardedUpdate])
def test_updates_agree_with_the_production_update_within_the_limit(
    program: type, whole: list
) -> None:
    update = program(MODEL, TRAIN)
    made = train(update)
    for ours, theirs in zip(made, whole, strict=True):
        assert int(ours.outcome.valid_targets) == int(theirs.outcome.valid_targets)
        assert (
            abs(float(ours.outcome.loss) - float(theirs.outcome.loss))
            <= LIMITS["rehearsed_loss_difference"]
        )
        pair = state_arrays(theirs.state), state_arrays(update.whole(ours.state))
        far, _ = parameter_difference(*pair)
        assert far <= LIMITS["rehearsed_parameter_difference"]
        assert moment_difference(*pair) <= LIMITS["rehearsed_moment_difference"]


def test_documents_in_another_order_give_other_bits(split: list) -> None:
    """What two hosts in exchanged order would send."""

    def exchanged(tree):
        return jax.tree.map(lambda x: np.concatenate([x[3:], x[:3]]), tree)

    made = train(SplitUpdate(MODEL, TRAIN, gather=exchanged))
    assert digests(made)[0] != digests(split)[0]
    assert [int(each.outcome.valid_targets) for each in made] == [
        int(each.outcome.valid_targets) for each in split
    ]


def test_a_mean_of_means_lies_far_beyond_the_limit(whole: list) -> None:
    """Each half of the batch gives its own mean, and the mean of the two is taken."""
    batch, key = TOKENS[whole[0].rows], dropout_key(TRAIN.dropout_seed, 1)
    keys = document_keys(key, whole[0].rows)
    parameters = initial_state(MODEL, 11).parameters
    halves = [
        summed_loss(parameters, batch[half], keys[half], MODEL)
        for half in (slice(0, 3), slice(3, 6))
    ]
    assert len({int(count) for _, count in halves}) == 2
    means = [float(loss_sum) / int(count) for loss_sum, count in halves]
    found = abs(np.mean(means) - float(whole[0].outcome.loss))
    assert found > 50 * LIMITS["rehearsed_loss_difference"]


def test_the_mask_of_a_document_depends_on_no_other() -> None:
    parameters, rows = initial_state(MODEL, 11).parameters, np.arange(4, dtype=np.int32)
    keys = document_keys(dropout_key(3, 1), rows)
    run = jax.jit(lambda x, k: logits(parameters, x[:, :-1], MODEL, dropout_key=k))
    together = np.asarray(run(TOKENS[:4], keys))
    other = run(np.roll(TOKENS[:4], 1, axis=0), keys[np.array([3, 0, 1, 2])])
    assert np.array_equal(together, np.roll(np.asarray(other), -1, axis=0))
    shared = np.asarray(run(TOKENS[:4], keys[np.array([1, 1, 2, 3])]))
    assert not np.array_equal(shared[0], together[0])
    assert np.array_equal(shared[1:], together[1:])


def test_a_sum_goes_from_left_to_right() -> None:
    """The large numbers cancel first or last: only one order gives 1."""
    values = np.array([1e8, -1e8, 1.0], dtype=np.float32)
    assert float(ordered_sum(values)) == 1.0
    assert float(ordered_sum(values[[0, 2, 1]])) == 0.0


def test_a_state_in_parts_changes_neither_what_is_divided_by_nor_the_batch() -> None:
    update = ShardedUpdate(MODEL, TRAIN)
    described = update.description(train(update)[-1].state)
    found = normalisation(described["lowered"], described["compiled"])
    assert found == "sum of i32[8x6], added up over 4 devices"
    parts = {row["array_name"]: row["shard_shape"] for row in described["arrays"]}
    assert parts["['tokens']"] == "[2, 7]"
    assert parts[".parameters['wpe.weight']"] == "[6, 2]"


def test_the_collective_program_says_what_it_divides_by() -> None:
    update = CollectiveUpdate(MODEL, TRAIN)
    state = train(update)[-1].state
    described = update.description(state)
    found = normalisation(described["lowered"], described["compiled"])
    assert found == "sum of i32[8x6], added up over 4 devices"
    places = {row["array_name"]: row for row in described["arrays"]}
    assert places["['tokens']"]["shard_shape"] == "[2, 7]"
    assert all(
        row["is_on_all"] and row["devices"] == 4
        for name, row in places.items()
        if name not in ("['tokens']", "['documents']")
    )


def test_the_split_program_says_what_it_divides_by(split: list) -> None:
    described = SplitUpdate(MODEL, TRAIN).description(split[-1].state)
    assert normalisation(described["lowered"], "") == "sum of i32[6]"


def test_a_mean_over_a_share_of_the_batch_reads_otherwise() -> None:
    """A program that knows only its half of the batch divides by the half."""
    update = WholeUpdate(MODEL, replace(TRAIN, batch_documents=3))
    described = update.description(initial_state(MODEL, 11))
    assert normalisation(described["lowered"], "") == "sum of i32[3x6]"
    assert normalisation("func.func @main() { return }", "") == "nothing counted"
