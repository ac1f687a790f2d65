"""Types of products are read off the program, and a wrong one is named."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from model.checks.lowered import check_dots, dot_rows, expected_layers
from model.config import POLICIES, ModelConfig
from model.endpoints import export_endpoint
from model.lowered import matrix_products, read_dots
from model.refusal import Refused

MODEL = ModelConfig(context_tokens=4, width=8, feed_forward_width=12)
PLATFORMS = ("cpu", "tpu")


@pytest.fixture(scope="module")
def programs() -> dict[str, str]:
    return {
        name: export_endpoint("decode", MODEL, policy, PLATFORMS)[0].mlir_module()
        for name, policy in POLICIES.items()
    }


@pytest.fixture(scope="module")
def dots(programs: dict[str, str]) -> list[dict[str, Any]]:
    return [
        row
        for name, text in programs.items()
        for row in dot_rows(text, MODEL, "decode", name, PLATFORMS)
    ]


def test_every_product_is_named_once_a_platform(dots: list[dict[str, Any]]) -> None:
    names = [layer.name for layer in expected_layers(MODEL)]
    assert names[0] == "h.0.attn.c_attn" and names[-1] == "lm_head"
    for policy in POLICIES:
        for platform in PLATFORMS:
            own = [
                row["dot"]
                for row in dots
                if (row["release_policy"], row["platform"]) == (policy, platform)
            ]
            assert own == names


def test_each_policy_has_its_types_and_leaves_the_rest_float32(
    dots: list[dict[str, Any]],
) -> None:
    measured, compared = check_dots(dots, MODEL)
    values = {(r["measure"], r["case_name"]): r["value_count"] for r in measured}
    for policy in POLICIES:
        assert values["dense_products", policy] == 4 * 2
        assert values["dense_products_beyond_policy", policy] == 0
    assert all(row["expected"] == row["measured"] for row in compared)
    (bf16,) = [row for row in compared if row["case_name"] == "bf16/decode/tpu"]
    assert bf16["measured"] == "h.0.attn.scores h.0.attn.values lm_head"


def test_a_product_that_only_claims_to_be_int8_is_found(
    programs: dict[str, str],
) -> None:
    """The label says w8a8, the program multiplies float32."""
    rows = dot_rows(programs["fp32"], MODEL, "decode", "w8a8", PLATFORMS)
    measured, compared = check_dots(rows, MODEL)
    values = {(r["measure"], r["case_name"]): r["value_count"] for r in measured}
    assert values["dense_products_beyond_policy", "w8a8"] == 8
    assert {row["expected"] == row["measured"] for row in compared} == {False}


def test_one_other_accumulator_is_counted_and_named(programs: dict[str, str]) -> None:
    lines = programs["w8a8"].splitlines()
    place = next(n for n, line in enumerate(lines) if "dot_general %" in line)
    before, arrow, result = lines[place].partition(" -> ")
    lines[place] = before + arrow + result.replace("i32", "f32")
    rows = dot_rows("\n".join(lines), MODEL, "decode", "w8a8", PLATFORMS)
    beyond = [row for row in check_dots(rows, MODEL)[0] if row["detail"]]
    assert [(row["case_name"], row["value_count"]) for row in beyond] == [("w8a8", 1)]
    assert "h.0.attn.c_attn" in beyond[0]["detail"]


def test_a_missing_or_misplaced_product_is_an_error(programs: dict[str, str]) -> None:
    with pytest.raises(Refused, match="holds 14 products"):
        dot_rows(programs["fp32"], MODEL, "decode", "fp32", ("cpu",))
    lines = programs["fp32"].splitlines()
    places = [n for n, line in enumerate(lines) if "dot_general %" in line]
    lines[places[0]], lines[places[-1]] = lines[places[-1]], lines[places[0]]
    with pytest.raises(Refused, match=r"h\.0\.attn\.c_attn"):
        dot_rows("\n".join(lines), MODEL, "decode", "fp32", PLATFORMS)


def test_the_reading_agrees_with_the_counts_of_the_manifest(
    programs: dict[str, str],
) -> None:
    dots = read_dots(programs["bf16"])
    assert matrix_products(programs["bf16"]) == {
        "bf16,bf16->f32 DEFAULT": 8,
        "f32,f32->f32 HIGHEST": 6,
    }
    assert dots[0].left_shape == (1, 1, 8)
    assert dots[0].right_shape == (8, 24)
    assert [dot.is_batched for dot in dots[::2]] == [False, True, True, *[False] * 4]


def test_a_product_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot read"):
        read_dots("%1 = stablehlo.dot_general %0, %0 : something else")


@pytest.mark.parametrize("spelling", ["x w", "x wT", "w x"])
def test_a_weight_is_known_however_it_lies(spelling: str) -> None:
    """Summed rows first, whichever axis of which operand they are."""
    x, w = jnp.ones((2, 3, 4)), jnp.ones((4, 5))
    product = {
        "x w": lambda: jax.lax.dot_general(x, w, (((2,), (0,)), ((), ()))),
        "x wT": lambda: jax.lax.dot_general(x, w.T, (((2,), (1,)), ((), ()))),
        "w x": lambda: jax.lax.dot_general(w, x, (((0,), (2,)), ((), ()))),
    }[spelling]
    (dot,) = read_dots(jax.jit(product).lower().as_text())
    assert dot.weight_shapes == ((4, 5),)
