"""Logits and attention of the JAX model against NumPy float64, from the formulas.

The parameters are drawn wide, so that softmax, GELU and LayerNorm leave their linear
range; documents of several lengths make PAD matter; two blocks and four heads of a
width that is not the head count make a mixed-up axis visible.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import transformer
from model.config import ModelConfig
from model.parameters import Parameters, initial_parameters
from model.reference import transformer as reference
from warehouse.contract import read_contract

MODEL = ModelConfig(
    context_tokens=9, width=24, heads=4, feed_forward_width=40, blocks=2
)


def limit_of(claim: str, measure: str) -> float:
    for listed in read_contract():
        for requirement in listed.requirements:
            if (listed.id, requirement.measure) == (claim, measure):
                assert requirement.limit is not None
                return float(requirement.limit)
    raise AssertionError(f"the contract has no {measure} in {claim}")


@pytest.fixture(scope="module")
def parameters() -> Parameters:
    drawn = initial_parameters(MODEL, 3)
    generator = np.random.default_rng(4)
    wider = {
        name: x + jnp.asarray(generator.normal(0, 0.3, x.shape), dtype=jnp.float32)
        for name, x in drawn.items()
    }
    return wider


@pytest.fixture(scope="module")
def tokens() -> np.ndarray:
    generator = np.random.default_rng(5)
    rows = np.zeros((5, 9), dtype=np.int32)
    for row, length in zip(rows, (9, 7, 3, 1, 5), strict=True):
        row[:length] = generator.integers(3, 259, length)
        row[0] = 1
    return rows


@pytest.fixture(scope="module")
def computed(
    parameters: Parameters, tokens: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    both = jax.jit(
        lambda p, t: (
            transformer.logits(p, t, MODEL),
            transformer.attention_weights(p, t, MODEL),
        )
    )
    logits, weights = both(parameters, jnp.asarray(tokens))
    return np.asarray(logits), np.asarray(weights)


def test_logits_of_valid_positions_are_those_of_the_reference(
    parameters: Parameters, tokens: np.ndarray, computed: tuple[np.ndarray, np.ndarray]
) -> None:
    for row, measured in zip(tokens, computed[0], strict=True):
        expected, _ = reference.forward(parameters, row, MODEL)
        valid = row != 0
        apart = np.abs(measured - expected)[valid].max()
        assert apart <= limit_of("1.9", "logit_largest_difference"), apart


def test_attention_rows_are_those_of_plain_loops(
    parameters: Parameters, tokens: np.ndarray, computed: tuple[np.ndarray, np.ndarray]
) -> None:
    for number, row in enumerate(tokens):
        _, expected = reference.forward(parameters, row, MODEL, loops=True)
        apart = np.abs(computed[1][:, number] - expected).max()
        assert apart <= limit_of("1.7", "row_largest_difference"), apart


def test_loops_and_products_of_the_reference_agree(
    parameters: Parameters, tokens: np.ndarray
) -> None:
    for row in tokens[:2]:
        looped = reference.forward(parameters, row, MODEL, loops=True)
        vectorized = reference.forward(parameters, row, MODEL)
        assert np.abs(looped[0] - vectorized[0]).max() < 1e-11


def test_a_row_from_the_embedding_on_by_loops_is_the_row_of_the_first_block(
    parameters: Parameters, tokens: np.ndarray, computed: tuple[np.ndarray, np.ndarray]
) -> None:
    arrays = {name: np.asarray(x) for name, x in parameters.items()}
    for head in range(MODEL.heads):
        row = reference.first_block_row(arrays, tokens[1], MODEL, head, 6)
        apart = np.abs(computed[1][0, 1, head, 6] - np.array(row)).max()
        assert apart <= limit_of("1.7", "looped_row_largest_difference"), apart


@pytest.mark.parametrize("change", ["exact_gelu", "epsilon", "scale"])
def test_a_planted_mistake_moves_logits_beyond_the_limit(
    monkeypatch: pytest.MonkeyPatch,
    parameters: Parameters,
    tokens: np.ndarray,
    change: str,
) -> None:
    """Each of these trains to a good loss, so only the reference can find it."""
    if change == "exact_gelu":
        exact = partial(jax.nn.gelu, approximate=False)
        monkeypatch.setattr(transformer.jax.nn, "gelu", lambda x, approximate: exact(x))
    elif change == "epsilon":
        normal = transformer.normalize
        monkeypatch.setattr(
            transformer, "normalize", lambda p, n, x, _epsilon: normal(p, n, x, 1e-3)
        )
    else:
        attend = transformer.attend
        monkeypatch.setattr(
            transformer, "attend", lambda q, k, v, mask: attend(2.0 * q, k, v, mask)
        )
    planted = jax.jit(lambda p, t: transformer.logits(p, t, MODEL))
    measured = np.asarray(planted(parameters, jnp.asarray(tokens)))
    expected, _ = reference.forward(parameters, tokens[0], MODEL)
    apart = np.abs(measured[0] - expected).max()
    assert apart > limit_of("1.9", "logit_largest_difference"), apart
