"""The objective counts each valid target once, PAD never, and is shifted by nobody."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model.objective import check_targets, loss_sum_and_count, token_losses
from model.refusal import Refused
from model.tokenizer import BOS, EOS, PAD

EXAMPLE = np.array([[104, 105, EOS, PAD], [106, EOS, PAD, PAD]], dtype=np.int32)


def one_hot_logits(targets: np.ndarray) -> jax.Array:
    return 50.0 * jax.nn.one_hot(targets, 259, dtype=jnp.float32)


def test_logits_that_know_the_target_cost_nothing_and_others_do() -> None:
    """A label shift of one trains to a plausible loss; hand-made logits show it."""
    losses = token_losses(one_hot_logits(EXAMPLE), jnp.asarray(EXAMPLE))
    assert float(losses.max()) < 1e-6
    shifted = token_losses(one_hot_logits(np.roll(EXAMPLE, 1, 1)), jnp.asarray(EXAMPLE))
    assert float(shifted[0, 0]) > 40.0


def test_eos_counts_and_pad_never_does() -> None:
    logits = jnp.zeros((2, 4, 259), dtype=jnp.float32)
    losses = np.asarray(token_losses(logits, jnp.asarray(EXAMPLE)))
    assert (losses[EXAMPLE == PAD] == 0.0).all()
    uniform = np.log(np.float32(259.0))
    assert np.abs(losses[EXAMPLE != PAD] - uniform).max() < 1e-5
    total, count = loss_sum_and_count(logits, jnp.asarray(EXAMPLE))
    assert int(count) == 5
    assert count.dtype == jnp.int32
    assert abs(float(total) - 5 * uniform) < 1e-4


def test_more_padding_changes_neither_sum_nor_count() -> None:
    """A mask averaged over padded steps has its denominator from the padding."""
    logits = jax.random.normal(jax.random.key(0), (2, 4, 259), dtype=jnp.float32)
    wide = jnp.pad(logits, ((0, 1), (0, 3), (0, 0)), constant_values=9.0)
    padded = np.pad(EXAMPLE, ((0, 1), (0, 3)))
    narrow = loss_sum_and_count(logits, jnp.asarray(EXAMPLE))
    wider = loss_sum_and_count(wide, jnp.asarray(padded))
    assert int(narrow[1]) == int(wider[1])
    assert abs(float(narrow[0]) - float(wider[0])) < 1e-5


def test_sums_of_parts_make_the_whole() -> None:
    logits = jax.random.normal(jax.random.key(1), (2, 4, 259), dtype=jnp.float32)
    whole = loss_sum_and_count(logits, jnp.asarray(EXAMPLE))
    parts = [
        loss_sum_and_count(logits[row : row + 1], jnp.asarray(EXAMPLE[row : row + 1]))
        for row in range(2)
    ]
    assert sum(int(part[1]) for part in parts) == int(whole[1])
    assert abs(sum(float(part[0]) for part in parts) - float(whole[0])) < 1e-5
    mean_of_means = np.mean([float(part[0]) / int(part[1]) for part in parts])
    assert abs(mean_of_means - float(whole[0]) / int(whole[1])) > 1e-3


def test_good_targets_pass() -> None:
    check_targets(EXAMPLE, (2, 4), 259)
    check_targets(np.full((1, 1), BOS, dtype=np.int32), (1, 1), 259)


@pytest.mark.parametrize(
    ("targets", "named", "code"),
    [
        (EXAMPLE[:, :3], r"shape \(2, 3\)", "targets_shape"),
        (EXAMPLE[:1], r"shape \(1, 4\)", "targets_shape"),
        (EXAMPLE.astype(np.int64), "dtype 'int64'", "targets_dtype"),
        (EXAMPLE.astype(np.float32), "dtype 'float32'", "targets_dtype"),
        (EXAMPLE - 1, r"range \(-1, 105\)", "targets_range"),
        (EXAMPLE + 250, r"range \(250, 356\)", "targets_range"),
    ],
)
def test_malformed_targets_are_refused_by_what_is_wrong(
    targets: np.ndarray, named: str, code: str
) -> None:
    with pytest.raises(Refused, match=named) as refused:
        check_targets(targets, (2, 4), 259)
    assert refused.value.code == code


def test_targets_that_are_wrong_in_every_way_are_refused_for_all() -> None:
    wrong = np.full((1, 4), 300, dtype=np.int64)
    with pytest.raises(Refused) as refused:
        check_targets(wrong, (2, 4), 259)
    assert refused.value.code == "targets_dtype"
    assert refused.value.fields == ("dtype", "shape", "range")
    for text in ("dtype 'int64'", "shape (1, 4)", "range (300, 300)"):
        assert text in refused.value.message


@pytest.mark.parametrize(
    ("targets", "fields"),
    [
        (np.array([["a"]]), ("dtype", "shape")),
        (np.array([[None]], dtype=object), ("dtype", "shape")),
        (np.full((2, 4), np.nan, np.float32), ("dtype", "range")),
        (np.empty((0, 4), np.int32), ("shape",)),
    ],
    ids=["text", "objects", "not-a-number", "empty"],
)
def test_targets_that_are_no_numbers_are_refused_without_a_crash(
    targets: np.ndarray, fields: tuple[str, ...]
) -> None:
    with pytest.raises(Refused) as refused:
        check_targets(targets, (2, 4), 259)
    assert refused.value.fields == fields
