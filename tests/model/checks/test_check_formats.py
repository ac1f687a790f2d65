"""Types are read off programs, in one set of words, and a failure keeps its own."""

import jax
import jax.numpy as jnp
import pytest

from model.checks import formats

WEIGHT = jnp.ones((4, 6), jnp.float32)
PROGRAM = """
%fused (param_0: bf16[2,3], param_1: bf16[3,4]) -> f32[2,4] {
  %param_0 = bf16[2,3]{1,0} parameter(0)
  %param_1 = bf16[3,4]{1,0} parameter(1)
  ROOT %dot.0 = f32[2,4]{1,0} dot(%param_0, %param_1), lhs_contracting_dims={1}
}
"""


def test_operands_are_read_where_the_product_stands() -> None:
    assert formats.read_operands(PROGRAM) == "bfloat16"
    widened = PROGRAM.replace("%param_1 = bf16", "%param_1 = f32")
    assert formats.read_operands(widened) == "bfloat16,float32"
    other = "%first {\n  %param_0 = f32[2,3]{1,0} parameter(0)\n}\n" + PROGRAM
    assert formats.read_operands(other) == "bfloat16"
    assert formats.read_operands("%x = f32[2] multiply(%a, %b)") == "unread"


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("i8", "int8"),
        ("s8", "int8"),
        ("i4", "int4"),
        ("f8E4M3FN", "float8_e4m3fn"),
        ("f8e5m2", "float8_e5m2"),
        ("bf16", "bfloat16"),
        ("f32", "float32"),
        ("?", "?"),
    ],
)
def test_both_texts_spell_a_type_alike(name: str, word: str) -> None:
    assert formats.numpy_type(name) == word


def test_a_label_that_multiplies_float32_shows_in_its_types() -> None:
    def labelled(x: jax.Array, weight: jax.Array, bias: None, policy: str) -> jax.Array:
        return formats.dense(x, weight, bias, "fp32")

    tried = formats.try_product("w8a8", 2, WEIGHT, labelled)
    assert (tried.lowered_operands, tried.accumulation) == ("float32", "float32")
    assert formats.try_product("w8a8", 2, WEIGHT).lowered_operands == "int8"


def test_a_layer_of_two_products_is_no_layer() -> None:
    def twice(x: jax.Array, weight: jax.Array, bias: None, policy: str) -> jax.Array:
        product = formats.dense(x, weight, bias, policy)
        return product + formats.dense(product, weight.T, bias, policy)[..., :1]

    tried = formats.try_product("fp32", 2, WEIGHT, twice)
    assert tried.reached == "nothing"
    assert "ValueError" in tried.failure


def test_a_failure_of_the_compiler_keeps_what_was_lowered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As an accelerator without the type does; here the reading fails in its place."""

    def unreadable(program: str) -> str:
        raise NotImplementedError("no such type\nat all")

    monkeypatch.setattr(formats, "read_operands", unreadable)
    tried = formats.try_product("fp32", 2, WEIGHT)
    assert (tried.reached, tried.lowered_operands) == ("lowered", "float32")
    assert tried.compiled_operands == "none"
    assert tried.failure == "NotImplementedError: no such type"
