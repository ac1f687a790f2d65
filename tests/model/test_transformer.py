"""Properties of the Transformer that hold whatever its parameters are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import transformer
from model.config import ModelConfig
from model.parameters import Parameters, initial_parameters

MODEL = ModelConfig()


@pytest.fixture(scope="module")
def parameters() -> Parameters:
    return initial_parameters(MODEL, 0)


@pytest.fixture(scope="module")
def apply():
    return jax.jit(transformer.logits, static_argnames=("model", "policy", "stored"))


@pytest.fixture(scope="module")
def weigh():
    return jax.jit(transformer.attention_weights, static_argnames="model")


def tokens(*lengths: int) -> np.ndarray:
    rows = np.zeros((len(lengths), MODEL.context_tokens), dtype=np.int32)
    for number, length in enumerate(lengths):
        rows[number, :length] = np.arange(100, 100 + length) + number
    return rows


def test_a_row_without_any_key_gives_finite_logits_and_no_weight(
    parameters: Parameters, apply, weigh
) -> None:
    """A batch is filled with PAD rows, whose NaN would spread through the gradient."""
    weights = weigh(parameters, tokens(0, 3), MODEL)
    assert float(jnp.abs(weights[:, 0]).max()) == 0.0
    assert bool(jnp.isfinite(apply(parameters, tokens(0, 3), MODEL)).all())


def test_pad_keys_before_a_query_weigh_nothing(parameters: Parameters, weigh) -> None:
    """Left padding: under right padding the causal mask hides PAD keys by itself."""
    left = np.zeros((1, 12), dtype=np.int32)
    left[0, 4:] = np.arange(100, 108)
    weights = np.asarray(weigh(parameters, left, MODEL))
    assert (weights[..., :4] == 0.0).all()
    assert (weights[..., 4:, 4] > 0.0).all()


def test_a_shorter_array_gives_the_same_logits_as_right_padding(
    parameters: Parameters, apply
) -> None:
    padded = np.asarray(apply(parameters, tokens(5), MODEL))[:, :5]
    cut = np.asarray(apply(parameters, tokens(5)[:, :5], MODEL))
    assert np.abs(padded - cut).max() < 1e-5


def test_the_same_call_gives_the_same_bits(parameters: Parameters, apply) -> None:
    first = apply(parameters, tokens(12, 7), MODEL)
    second = apply(parameters, tokens(12, 7), MODEL)
    assert np.asarray(first).tobytes() == np.asarray(second).tobytes()


def test_dropout_keeps_its_expectation_and_its_rate() -> None:
    """Dropout without 1/(1-p) hides behind LayerNorm; only its expectation shows it."""
    ones = jnp.ones((400, 500), dtype=jnp.float32)
    dropped = np.asarray(transformer.drop(ones, jax.random.key(1), 0, 0.1))
    share = (dropped == 0.0).mean()
    assert abs(share - 0.1) < 0.005, share
    assert abs(dropped.mean() - 1.0) < 0.005, dropped.mean()
    assert np.unique(dropped).tolist() == [0.0, np.float32(1.0) / np.float32(0.9)]


def test_every_place_of_dropout_has_its_own_stream() -> None:
    ones, key = jnp.ones((64, 64), dtype=jnp.float32), jax.random.key(1)
    drawn = {
        np.asarray(transformer.drop(ones, key, place, 0.5)).tobytes()
        for place in range(5)
    }
    assert len(drawn) == 5


def test_dropout_happens_in_three_places_of_one_block(
    monkeypatch: pytest.MonkeyPatch, parameters: Parameters
) -> None:
    places = []
    monkeypatch.setattr(
        transformer, "drop", lambda x, _key, place, _rate: places.append(place) or x
    )
    jax.eval_shape(
        lambda p, t: transformer.logits(p, t, MODEL, dropout_key=jax.random.key(0)),
        parameters,
        tokens(3),
    )
    assert places == [0, 1, 2]


def test_dropout_without_a_key_changes_nothing(parameters: Parameters, apply) -> None:
    without = apply(parameters, tokens(7), MODEL)
    with_key = apply(parameters, tokens(7), MODEL, dropout_key=jax.random.key(2))
    assert np.abs(np.asarray(without) - np.asarray(with_key)).max() > 1e-3
    identity = transformer.drop(without, None, 0, 0.5)
    assert identity is without


def test_what_a_cache_gives_back_is_what_attention_reads(
    parameters: Parameters, apply
) -> None:
    rounded = apply(
        parameters, tokens(9), MODEL, stored=lambda x: jnp.round(x * 8.0) / 8.0
    )
    exact = apply(parameters, tokens(9), MODEL, stored=lambda x: x)
    plain = apply(parameters, tokens(9), MODEL)
    assert np.asarray(exact).tobytes() == np.asarray(plain).tobytes()
    assert np.abs(np.asarray(rounded) - np.asarray(plain)).max() > 1e-4


@pytest.mark.parametrize(
    ("blocks", "width", "heads", "context"), [(1, 8, 1, 4), (3, 30, 5, 17)]
)
def test_any_depth_width_heads_and_context_is_a_model(
    blocks: int, width: int, heads: int, context: int
) -> None:
    model = ModelConfig(blocks=blocks, width=width, heads=heads, context_tokens=context)

    def run() -> jax.Array:
        rows = jnp.full((2, context), 70, dtype=jnp.int32)
        return transformer.logits(initial_parameters(model, 0), rows, model)

    logits = np.asarray(jax.jit(run)())
    assert logits.shape == (2, context, 259)
    assert np.isfinite(logits).all()
