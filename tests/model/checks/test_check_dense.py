"""Products of dense layers equal NumPy's, and each planted rounding is found."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model.checks.dense import (
    CRAFTED,
    DenseInput,
    DenseSystem,
    crafted_input,
    layer_inputs,
    measure_dense,
)
from model.config import ModelConfig
from model.dense import QuantizedProduct, dense, quantized_product
from model.parameters import initial_parameters
from model.reference import dense as reference
from warehouse.contract import read_contract

MODEL = ModelConfig(context_tokens=6, width=12, feed_forward_width=16)


@pytest.fixture(scope="module")
def limit() -> float:
    (found,) = [
        requirement.limit
        for claim in read_contract()
        for requirement in claim.requirements
        if requirement.measure == "product_largest_error_share"
    ]
    return float(found or 0)


@pytest.fixture(scope="module")
def layer() -> dict[str, DenseInput]:
    generator = np.random.Generator(np.random.PCG64(4))
    x = generator.normal(size=(9, 24)).astype(np.float32)
    return {"layer": DenseInput(x, generator.normal(size=(24, 7)).astype(np.float32))}


def values(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {
        f"{row['measure']}:{row['case_name'].partition('/')[0]}": row["value_count"]
        if row["value_real"] is None
        else row["value_real"]
        for row in rows
    }


def test_the_layers_of_a_model_are_rebuilt_bit_by_bit(limit: float) -> None:
    parameters = initial_parameters(MODEL, 3)
    tokens = np.array([[1, 100, 101, 127, 0, 0], [1, 104, 2, 0, 0, 0]], np.int32)
    inputs = layer_inputs(parameters, tokens, MODEL)
    assert {name: each.x.shape for name, each in inputs.items()} == {
        "h.0.attn.c_attn": (4 + 3, 12),
        "h.0.attn.c_proj": (7, 12),
        "h.0.mlp.c_fc": (7, 12),
        "h.0.mlp.c_proj": (7, 16),
    }
    rows = measure_dense({**inputs, CRAFTED: crafted_input()})
    for row in rows:
        if row["measure"].endswith("_differing"):
            assert row["value_count"] == 0, row
        elif row["value_real"] is not None:
            assert row["value_real"] <= limit, row
    assert {row["case_name"] for row in rows if row["unit"] == "vectors"} == {
        f"w8a8/{name}" for name in (*inputs, CRAFTED)
    }


def planted(fault: str) -> DenseSystem:
    def quantized(x: jax.Array, weight: jax.Array) -> QuantizedProduct:
        parts = quantized_product(x, weight)
        if fault == "truncated":
            codes = (x / parts.x_scales[:, None]).astype(jnp.int8)
            return parts._replace(x_codes=codes)
        if fault == "divided":
            scales = jnp.max(jnp.abs(x), axis=-1) / jnp.float32(128)
            return parts._replace(x_scales=scales)
        if fault == "narrow_sum":
            narrow = parts.sums.astype(jnp.bfloat16).astype(jnp.int32)
            return parts._replace(sums=narrow)
        return parts

    def product(
        x: jax.Array, weight: jax.Array, bias: jax.Array | None, policy: str
    ) -> jax.Array:
        if fault == "label_only" and policy in ("bf16", "w8a8"):
            return dense(x, weight, bias, "fp32")
        if fault == "bf16_sum" and policy == "bf16":
            short = dense(x, weight, bias, policy).astype(jnp.bfloat16)
            return short.astype(jnp.float32)
        if fault == "bf16_everywhere" and policy == "fp32":
            return dense(x, weight, bias, "bf16")
        return dense(x, weight, bias, policy)

    return DenseSystem(quantized, product)


@pytest.mark.parametrize(
    ("fault", "measure"),
    [
        ("truncated", "dense_codes_differing:w8a8"),
        ("divided", "dense_scales_differing:w8a8"),
        ("narrow_sum", "dense_sums_differing:w8a8"),
        ("label_only", "dense_products_differing:w8a8"),
        ("label_only", "product_largest_error_share:bf16"),
        ("bf16_sum", "product_largest_error_share:bf16"),
        ("bf16_everywhere", "product_largest_error_share:fp32"),
    ],
)
def test_a_planted_rounding_is_found_where_it_is(
    layer: dict[str, DenseInput], limit: float, fault: str, measure: str
) -> None:
    found = values(measure_dense(layer, planted(fault)))
    allowed = 0 if measure.startswith("dense_") else limit
    assert found[measure] > allowed


def test_the_reference_is_the_rule_by_hand() -> None:
    x = np.array([[127.0, -63.5, 0.5], [0.0, 0.0, 0.0]], np.float32)
    weight = np.array([[1.0], [2.0], [-127.0]], np.float32)
    found = reference.quantized_product(x, weight)
    assert found.x_codes.tolist() == [[127, -64, 0], [0, 0, 0]]
    assert found.weight_codes.ravel().tolist() == [1, 2, -127]
    assert found.sums.ravel().tolist() == [127 - 128, 0]
    assert found.product[1, 0] == 0.0
    assert reference.product(x, weight, "fp32")[0, 0] == 127 - 127 - 63.5
    fine = np.full((1, 1), 1 + 2.0**-10, np.float32)
    assert reference.product(fine, fine, "bf16")[0, 0] == 1.0
    with pytest.raises(ValueError, match="int4"):
        reference.product(x, weight, "int4")
