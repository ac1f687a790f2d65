"""Claim 3.7: the products of dense layers, rebuilt outside of JAX.

The inputs are those that the layers of the trained model see on held-out text, and a
crafted matrix with the vectors on which quantisers part. INT8 products are compared bit
by bit. Whole outputs, with a bias, are held against float64 of what the policy rounds
first, so what is left is the rounding of one float32 sum, measured as a share of the
sum of absolute addends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from model import transformer
from model.checks import rows
from model.checks.cache_storage import crafted_vectors
from model.checks.differences import largest_value
from model.config import ModelConfig
from model.dense import QuantizedProduct, dense, quantized_product
from model.parameters import Parameters
from model.reference import dense as reference
from model.tokenizer import PAD

if TYPE_CHECKING:
    from jaxtyping import Int32

CLAIM = "3.7"
POLICIES = ("fp32", "bf16", "w8a8")
CRAFTED, CRAFTED_WIDTH = "crafted", 24


class DenseSystem(NamedTuple):
    """The functions under check, as in ``model.dense``.

    Without defaults: those are bound when this module is imported, and would stay the
    built-in functions in any other system.
    """

    quantized: Callable[[jax.Array, jax.Array], QuantizedProduct]
    product: Callable[..., jax.Array]


class DenseInput(NamedTuple):
    """What one dense layer multiplies and adds."""

    x: np.ndarray
    """Activations [R, K], float32."""
    weight: np.ndarray
    """Matrix [K, N], float32."""
    bias: np.ndarray
    """Vector [N], float32."""


@partial(jax.jit, static_argnames="model")
def _activations(
    parameters: Parameters, tokens: jax.Array, model: ModelConfig
) -> dict[str, jax.Array]:
    """Inputs of every dense layer, [B, T, K] by name of the layer."""
    positions = jnp.broadcast_to(
        jnp.arange(tokens.shape[1], dtype=jnp.int32)[None], tokens.shape
    )
    mask, epsilon = transformer.attention_mask(tokens), model.layer_norm_epsilon
    hidden, found = transformer.embed(parameters, tokens, positions), {}

    def layer(name: str, x: jax.Array) -> jax.Array:
        found[name] = x
        bias = parameters[f"{name}.bias"]
        return dense(x, parameters[f"{name}.weight"], bias, "fp32")

    for block in range(model.blocks):
        name = f"h.{block}"
        found[f"{name}.attn.c_attn"] = transformer.normalize(
            parameters, f"{name}.ln_1", hidden, epsilon
        )
        projected = transformer.project_qkv(parameters, block, hidden, model, "fp32")
        attended, _ = transformer.attend(*projected, mask)
        hidden += layer(f"{name}.attn.c_proj", attended.reshape(hidden.shape))
        normal = transformer.normalize(parameters, f"{name}.ln_2", hidden, epsilon)
        raised = jax.nn.gelu(layer(f"{name}.mlp.c_fc", normal), approximate=True)
        hidden += layer(f"{name}.mlp.c_proj", raised)
    return found


def layer_inputs(
    parameters: Parameters, tokens: Int32[np.ndarray, "B T"], model: ModelConfig
) -> dict[str, DenseInput]:
    """Returns what every dense layer multiplies on the valid positions of documents.

    Args:
        parameters: Parameters by name.
        tokens: Inputs of documents [B, T], right padded with PAD.
        model: Shape of the model.
    """
    is_token = tokens != PAD
    return {
        name: with_bias(
            np.asarray(x)[is_token], np.asarray(parameters[f"{name}.weight"])
        )
        for name, x in _activations(parameters, jnp.asarray(tokens), model).items()
    }


def with_bias(x: np.ndarray, weight: np.ndarray) -> DenseInput:
    """Returns operands with a drawn bias of the size of their products.

    A trained bias is small against the products of its layer, so that a wrong one would
    be lost in their rounding.
    """
    size = float(np.std(x.astype(np.float64) @ weight)) or 1.0
    generator = np.random.Generator(np.random.PCG64(0))
    drawn = size * generator.standard_normal(weight.shape[1:])
    return DenseInput(x, weight, drawn.astype(np.float32))


def crafted_input() -> DenseInput:
    """Rows and columns on which quantisers part: zero, ties, tiny and wide values."""
    vectors = crafted_vectors(CRAFTED_WIDTH)
    # Products of the huge ones leave float32, which is no question of rounding.
    kept = vectors[np.abs(vectors).max(axis=1) < 1e18]
    return with_bias(kept, np.ascontiguousarray(kept.T))


def measure_dense(
    inputs: Mapping[str, DenseInput], system: DenseSystem | None = None
) -> list[rows.Row]:
    """Returns how products of the system part from those of NumPy, layer by layer.

    Args:
        inputs: Operands by name of the layer.
        system: Functions under check; the built-in ones when left out.
    """
    functions = system or DenseSystem(quantized_product, dense)

    @jax.jit
    def compute(
        given: Mapping[str, Any],
    ) -> dict[str, tuple[QuantizedProduct, jax.Array, dict[str, jax.Array]]]:
        return {
            name: (
                functions.quantized(each.x, each.weight),
                functions.product(each.x, each.weight, None, "w8a8"),
                {policy: functions.product(*each, policy) for policy in POLICIES},
            )
            for name, each in given.items()
        }

    found = []
    for name, (parts, product, outputs) in compute(dict(inputs)).items():
        given = inputs[name]
        found += _quantized_rows(name, given, parts, product)
        if name == CRAFTED:
            continue  # its tiny products lie below what a float32 sum can hold
        for policy, output in outputs.items():
            share = _largest_share(given, policy, np.asarray(output))
            case, measure = f"{policy}/{name}", "output_largest_error_share"
            found.append(rows.real(CLAIM, measure, case, share, "1"))
    return found


def _largest_share(given: DenseInput, policy: str, output: np.ndarray) -> float:
    """Largest error of an output, as a share of what float32 has to add for it.

    A share means the same in each layer. Infinite where the output is not float32.
    """
    product, addends = reference.product_and_addends(given.x, given.weight, policy)
    if output.dtype != np.float32:
        return np.inf
    bias = given.bias.astype(np.float64)
    largest = np.where(addends + np.abs(bias) > 0, addends + np.abs(bias), 1.0)
    return largest_value((np.abs(output - (product + bias)) / largest).ravel())


def _quantized_rows(
    name: str, given: DenseInput, parts: QuantizedProduct, product: jax.Array
) -> list[rows.Row]:
    expected = reference.quantized_product(given.x, given.weight)
    apart = {
        field: _differing(getattr(parts, field), getattr(expected, field))
        for field in parts._fields
    }
    values = {
        "codes": apart["x_codes"] + apart["weight_codes"],
        "scales": apart["x_scales"] + apart["weight_scales"],
        "sums": apart["sums"],
        "products": _differing(product, expected.product),
    }
    case = f"w8a8/{name}"
    found = [
        rows.count(CLAIM, f"dense_{unit}_differing", case, value, unit)
        for unit, value in values.items()
    ]
    vectors = len(given.x) + given.weight.shape[1]
    return [*found, rows.count(CLAIM, "dense_vectors", case, vectors, "vectors")]


def _differing(measured: jax.Array, expected: np.ndarray) -> int:
    """How many entries differ: bits of real numbers, values of integers."""
    own = np.asarray(measured)
    if own.dtype == np.float32:
        is_apart = own.view(np.uint32) != expected.view(np.uint32)
        # What is no number on both sides was computed rightly by neither.
        return int(np.sum(is_apart | ~np.isfinite(own)))
    return int(np.sum(own.astype(np.int64) != expected.astype(np.int64)))
