"""The cached path against the full model, and the mistakes that must show."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import cache, decoding, transformer
from model.checks import cache as checks
from model.config import POLICIES, ModelConfig
from model.parameters import Parameters, initial_parameters

MODEL = ModelConfig(blocks=2)
INT8 = checks.CACHE_POLICIES[2]
FP32 = checks.CACHE_POLICIES[0]
ROWS = 6


@pytest.fixture(scope="module")
def parameters() -> Parameters:
    """Larger than fresh ones, so that attention is far from uniform."""
    fresh = initial_parameters(MODEL, 3)
    return {name: value * 2 for name, value in fresh.items()}


@pytest.fixture(scope="module")
def tokens() -> np.ndarray:
    generator = np.random.Generator(np.random.PCG64(1))
    drawn = generator.integers(3, 259, (ROWS, MODEL.context_tokens)).astype(np.int32)
    drawn[:, 0] = 1
    return drawn


def _errors(rows: list[dict[str, object]], measure: str) -> list[float]:
    found = [row for row in rows if row["measure"] == measure]
    values = (row["value_real"] or row["value_count"] or 0 for row in found)
    return [float(value) for value in values]  # type: ignore[arg-type]


def _walk(
    system: checks.CachedModel, parameters: Parameters, tokens: np.ndarray
) -> list[dict[str, object]]:
    lengths = checks.mixed_lengths(ROWS, 6)
    every = tuple(range(1, 13))
    return checks.check_walk(system, parameters, tokens, lengths, MODEL, INT8, every)


def test_a_batch_of_mixed_lengths_agrees_with_the_full_model(
    parameters: Parameters, tokens: np.ndarray
) -> None:
    """Two blocks, int8, six prompt lengths: each row has its own slot and position."""
    found = _walk(checks.CachedModel(), parameters, tokens)
    assert max(_errors(found, "largest_mechanics_error")) < 5e-5
    assert max(_errors(found, "changed_bytes_of_earlier_positions")) == 0
    assert max(_errors(found, "bytes_changed_by_unused_slots")) == 0
    assert len(_errors(found, "changed_bytes_of_earlier_positions")) == 6


def _planted(monkeypatch: pytest.MonkeyPatch, name: str, fault: object) -> None:
    monkeypatch.setattr(decoding, name, fault)


def _fresh_system() -> checks.CachedModel:
    """New functions, so that nothing compiled before the fault is used."""

    def prefill(*arguments: object) -> object:
        return decoding.prefill_with_vectors(*arguments)  # type: ignore[arg-type]

    def decode(*arguments: object) -> object:
        return decoding.decode_with_vectors(*arguments)  # type: ignore[arg-type]

    return checks.CachedModel(
        prefill=jax.jit(prefill, static_argnums=(3, 4)),
        decode=jax.jit(decode, static_argnums=(3, 4)),
    )


def _next_slot(stored: jax.Array, new: jax.Array, length: jax.Array) -> jax.Array:
    return cache.write_slot(stored, new, length + 1)


def _previous_slot(stored: jax.Array, new: jax.Array, length: jax.Array) -> jax.Array:
    return cache.write_slot(stored, new, length - 1)


def _one_too_long(length: jax.Array, slots: int) -> jax.Array:
    return cache.used_slots(length + 1, slots)


@pytest.mark.parametrize(
    ("name", "fault", "seen_by"),
    [
        ("write_slot", _next_slot, "largest_mechanics_error"),
        ("write_slot", _previous_slot, "changed_bytes_of_earlier_positions"),
        ("used_slots", _one_too_long, "bytes_changed_by_unused_slots"),
    ],
)
def test_a_planted_mistake_of_slots_is_seen(
    monkeypatch: pytest.MonkeyPatch,
    parameters: Parameters,
    tokens: np.ndarray,
    name: str,
    fault: object,
    seen_by: str,
) -> None:
    _planted(monkeypatch, name, fault)
    found = _walk(_fresh_system(), parameters, tokens)
    assert max(_errors(found, seen_by)) > 10 * 5e-5


def test_ties_are_followed_only_where_they_are_ties(
    parameters: Parameters, tokens: np.ndarray
) -> None:
    """A code off by one step, not on a border, is a mistake and must stay one."""
    lengths = jnp.full((ROWS,), 12, jnp.int32)
    logits, held, _ = decoding.jitted_prefill(parameters, tokens, lengths, MODEL, INT8)
    shifted = held._replace(keys=jnp.clip(held.keys, -127, 126) + jnp.int8(1))
    expected, ties = checks.recompute(parameters, tokens, shifted, MODEL, INT8)
    honest, _ = checks.recompute(parameters, tokens, held, MODEL, INT8)
    assert np.max(np.abs(np.asarray(honest) - np.asarray(logits))) < 5e-5
    assert int(ties) < 0.05 * shifted.keys.size
    assert np.max(np.abs(np.asarray(expected) - np.asarray(honest))) < 0.5


def test_tokens_beyond_the_length_change_no_byte(
    parameters: Parameters, tokens: np.ndarray
) -> None:
    row = checks.check_prefill_garbage(
        checks.CachedModel(), parameters, tokens, MODEL, INT8
    )
    assert row["value_count"] == 0


def test_a_full_cache_refuses_and_keeps_its_bytes(
    parameters: Parameters, tokens: np.ndarray
) -> None:
    refused, changed = checks.check_capacity(
        checks.CachedModel(), parameters, tokens, MODEL, INT8
    )
    assert refused["received_reason"] == refused["expected_reason"] == "cache_full"
    assert changed["value_count"] == 0


def test_decoding_twice_gives_the_same_bits(
    parameters: Parameters, tokens: np.ndarray
) -> None:
    lengths = jnp.asarray(checks.mixed_lengths(ROWS, 6))
    _, held, _ = decoding.jitted_prefill(parameters, tokens, lengths, MODEL, INT8)
    token = jnp.asarray(tokens[:, 6])
    one, two = (
        decoding.jitted_decode(parameters, token, held, MODEL, INT8) for _ in range(2)
    )
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert np.asarray(left).tobytes() == np.asarray(right).tobytes()


def test_under_float32_the_cache_is_the_plain_model(
    parameters: Parameters, tokens: np.ndarray
) -> None:
    """No tie and no storage rounding: the full model itself is the expectation."""
    full = jax.jit(partial(transformer.logits, model=MODEL))
    exact = np.asarray(full(parameters, tokens))
    one = np.ones(ROWS, np.int32)
    system = checks.CachedModel()
    for step in checks.walk(system, parameters, tokens, one, MODEL, FP32):
        assert np.max(np.abs(step.logits - exact[:, step.step])) < 2e-4


def test_a_release_policy_is_one_of_dense_and_cache() -> None:
    assert {(each.dense, each.cache) for each in POLICIES.values()} == {
        ("fp32", "fp32"),
        ("bf16", "bf16"),
        ("w8a8", "int8"),
    }


def test_every_row_of_filled_documents_is_full_and_begins_as_it_was() -> None:
    documents = np.array([[1, 9, 8, 2, 0, 0, 0], [1, 5, 6, 7, 8, 9, 2]], np.int32)
    filled = checks.fill_rows(documents)
    assert filled.tolist() == [[1, 9, 8, 2, 9, 8], [1, 5, 6, 7, 8, 9]]


def test_compared_lengths_hold_both_ends() -> None:
    assert checks.compared_lengths(12, 0) == tuple(range(1, 13))
    some = checks.compared_lengths(256, 12)
    assert (some[0], some[-1], len(some)) == (1, 256, 12)
