"""Products of dense layers equal NumPy's, and each planted rounding is found."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model.checks import dense as checked
from model.checks.dense import (
    CRAFTED,
    DenseInput,
    DenseSystem,
    crafted_input,
    layer_inputs,
    measure_dense,
    with_bias,
)
from model.config import ModelConfig
from model.dense import QuantizedProduct, dense, quantized_product
from model.faults import find
from model.parameters import initial_parameters
from model.reference import dense as reference
from warehouse.contract import read_contract

MODEL = ModelConfig(context_tokens=6, width=12, feed_forward_width=16)


@pytest.fixture(scope="module")
def limits() -> dict[str, float]:
    """Largest allowed error of an output, by policy."""
    return {
        case.partition("/")[0]: float(requirement.limit or 0)
        for claim in read_contract()
        for requirement in claim.requirements
        if requirement.measure == "output_largest_error_share"
        for case in requirement.cases
    }


@pytest.fixture(scope="module")
def layer() -> dict[str, DenseInput]:
    generator = np.random.Generator(np.random.PCG64(4))
    x = generator.normal(size=(9, 24)).astype(np.float32)
    weight = generator.normal(size=(24, 7)).astype(np.float32)
    return {"layer": with_bias(x, weight)}


def values(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {
        f"{row['measure']}:{row['case_name'].partition('/')[0]}": row["value_count"]
        if row["value_real"] is None
        else row["value_real"]
        for row in rows
    }


def test_the_layers_of_a_model_are_rebuilt(limits: dict[str, float]) -> None:
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
            assert row["value_real"] <= limits[row["case_name"].partition("/")[0]], row
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
        if fault == "bf16_result" and policy == "fp32":
            return dense(x, weight, bias, policy).astype(jnp.bfloat16)
        if fault == "bf16_bias" and policy == "bf16" and bias is not None:
            rounded = bias.astype(jnp.bfloat16).astype(jnp.float32)
            return dense(x, weight, rounded, policy)
        if fault == "no_bias" and policy == "w8a8":
            return dense(x, weight, None, policy)
        return dense(x, weight, bias, policy)

    return DenseSystem(quantized, product)


@pytest.mark.parametrize(
    ("fault", "measure"),
    [
        ("truncated", "dense_codes_differing:w8a8"),
        ("divided", "dense_scales_differing:w8a8"),
        ("narrow_sum", "dense_sums_differing:w8a8"),
        ("label_only", "dense_products_differing:w8a8"),
        ("label_only", "output_largest_error_share:bf16"),
        ("label_only", "output_largest_error_share:w8a8"),
        ("bf16_sum", "output_largest_error_share:bf16"),
        ("bf16_everywhere", "output_largest_error_share:fp32"),
        ("bf16_bias", "output_largest_error_share:bf16"),
        ("no_bias", "output_largest_error_share:w8a8"),
    ],
)
def test_a_planted_rounding_is_found_where_it_is(
    layer: dict[str, DenseInput], limits: dict[str, float], fault: str, measure: str
) -> None:
    found = values(measure_dense(layer, planted(fault)))
    name, _, policy = measure.partition(":")
    allowed = 0 if name.startswith("dense_") else limits[policy]
    assert found[measure] > allowed


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("w8a8-bias-in-int8", "output_largest_error_share:w8a8"),
        ("bf16-result-rounded", "output_largest_error_share:bf16"),
    ],
)
def test_a_layer_that_is_replaced_is_the_one_that_is_measured(
    monkeypatch: pytest.MonkeyPatch,
    layer: dict[str, DenseInput],
    limits: dict[str, float],
    name: str,
    measure: str,
) -> None:
    """What a check was handed when it was imported would stay the built-in layer."""
    monkeypatch.setattr(checked, "dense", find(name).replacement(dense))
    found = values(measure_dense(layer))
    assert found[measure] > limits[measure.partition(":")[2]]


def test_an_output_of_another_type_is_no_number(layer: dict[str, DenseInput]) -> None:
    """Read as float32 it could be right; it is missing instead, which meets nothing."""
    (row,) = [
        row
        for row in measure_dense(layer, planted("bf16_result"))
        if row["case_name"] == "fp32/layer"
    ]
    assert row["value_real"] is None
    assert row["reason"] == "not_finite"


def test_the_reference_is_the_rule_by_hand() -> None:
    x = np.array([[127.0, -63.5, 0.5], [0.0, 0.0, 0.0]], np.float32)
    weight = np.array([[1.0], [2.0], [-127.0]], np.float32)
    found = reference.quantized_product(x, weight)
    assert found.x_codes.tolist() == [[127, -64, 0], [0, 0, 0]]
    assert found.weight_codes.ravel().tolist() == [1, 2, -127]
    assert found.sums.ravel().tolist() == [127 - 128, 0]
    assert found.product[1, 0] == 0.0
    product, addends = reference.product_and_addends(x, weight, "fp32")
    assert product[0, 0] == 127 - 127 - 63.5
    assert addends[0, 0] == 127 + 127 + 63.5
    fine = np.full((1, 1), 1 + 2.0**-10, np.float32)
    assert reference.product_and_addends(fine, fine, "bf16")[0][0, 0] == 1.0
    product, addends = reference.product_and_addends(x, weight, "w8a8")
    assert np.allclose(product, found.product) and (addends == np.abs(product)).all()
    with pytest.raises(ValueError, match="int4"):
        reference.product_and_addends(x, weight, "int4")
