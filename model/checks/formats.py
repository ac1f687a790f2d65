"""What becomes of a number format: in storage, in a product, and after the compiler.

Nothing here rests on a name. The weights are laid into memory in their format, and one
product of the model's size is lowered and compiled: types of operands and sums are read
off both texts, in NumPy's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from model.config import ModelConfig
from model.dense import (
    CODE_LIMIT,
    INT4_LIMIT,
    ROUNDED_TYPES,
    dense,
    quantize_rows,
)
from model.lowered import read_dots
from model.parameters import Parameters

UNREAD, NONE = "unread", "none"
# What a runtime raises for a type that it cannot lower, compile or run.
FAILURES = (jax.errors.JaxRuntimeError, NotImplementedError, TypeError, ValueError)
DENSE_LAYERS = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
_CODES = "symmetric, no zero point"
_ROUNDED = (NONE, NONE, NONE, "none needed")
# What no array shows: granularity of scales, zero point, clipping, calibration.
FACTS: Mapping[str, tuple[str, str, str, str]] = {
    "fp32": _ROUNDED,
    "bf16": _ROUNDED,
    "w8a8": (
        "one an output column and one an activation row",
        _CODES,
        "codes within +-127, scale of the largest value",
        "none: dynamic",
    ),
    "w8": (
        "one an output column",
        _CODES,
        "codes within +-127, scale of the largest value",
        "none: from the weights",
    ),
    "fp16": _ROUNDED,
    "int4": (
        "one an output column and one an activation row",
        _CODES,
        "codes within +-7, scale of the largest value",
        "none: dynamic",
    ),
    "float8_e4m3": _ROUNDED,
    "float8_e5m2": _ROUNDED,
}
# StableHLO and HLO spell the types of NumPy each in their own way.
_TYPE = re.compile(r"^(bf|f|i|s|u)(\d.*)$")
_WORDS = {"bf": "bfloat", "f": "float", "i": "int", "s": "int", "u": "uint"}
_DEFINED = re.compile(r"%([\w.\-]+) = (\w+)\[")
_DOT = re.compile(r" = (\w+)\[[^ ]* dot\(%([\w.\-]+), %([\w.\-]+)\)")


@dataclass(frozen=True, kw_only=True)
class TriedProduct:
    """One dense layer in a format, as far as this runtime takes it."""

    reached: str
    """How far it came: "nothing", "lowered" or "compiled"."""
    activations: str
    """Type of the first operand of the lowered product."""
    accumulation: str
    """Type of its sum."""
    lowered_operands: str
    """Type of both operands of the lowered product, or both with a comma."""
    compiled_operands: str
    """The same of the compiled program: what this machine multiplies."""
    failure: str
    """What the runtime said when it went no further; else empty."""


def try_product(
    policy: str,
    rows: int,
    weight: jax.Array,
    product: Callable[..., jax.Array] | None = None,
) -> TriedProduct:
    """Lowers and compiles a dense layer of ``rows`` rows, and reads both programs.

    Args:
        policy: Dense policy.
        rows: Activation rows.
        weight: Matrix [K, N], float32, for its shape.
        product: The dense layer; that of the system when left out.
    """
    layer = product or dense
    x = jax.ShapeDtypeStruct((rows, 1, weight.shape[0]), jnp.float32)
    found = {"reached": "nothing", "failure": ""}
    found |= dict.fromkeys(("activations", "accumulation", "lowered_operands"), NONE)
    found["compiled_operands"] = NONE
    try:
        lowered = jax.jit(lambda x, weight: layer(x, weight, None, policy)).lower(
            x, weight
        )
        (dot,) = read_dots(lowered.as_text())
        found |= {
            "reached": "lowered",
            "activations": numpy_type(dot.left_type),
            "accumulation": numpy_type(dot.result_type),
            "lowered_operands": _both(dot.left_type, dot.right_type),
        }
        compiled = lowered.compile().as_text() or ""
        found |= {"reached": "compiled", "compiled_operands": read_operands(compiled)}
    except FAILURES as error:
        found["failure"] = failure_text(error)
    return TriedProduct(**found)


def failure_text(error: Exception) -> str:
    """The kind of an error and the first line that it says."""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}"


def read_operands(program: str) -> str:
    """Type of the operands of the first product of a compiled program.

    Args:
        program: HLO text of one backend after all its passes.

    Returns:
        Such as "bfloat16", "float8_e4m3fn,float32", or "unread" where no product is
        spelled out.
    """
    defined: dict[str, str] = {}
    for line in program.splitlines():
        if line.endswith("{"):
            defined = {}
        if found := _DOT.search(line):
            return _both(defined.get(found[2], "?"), defined.get(found[3], "?"))
        if named := _DEFINED.search(line):
            defined[named[1]] = named[2]
    return UNREAD


def numpy_type(name: str) -> str:
    """A type of StableHLO or HLO in NumPy's words, such as "int8" for "i8" and "s8"."""
    match = _TYPE.match(name.lower())
    if match is None:
        return name
    word, rest = _WORDS[match[1]], match[2]
    return f"{word}8_{rest[1:]}" if rest.startswith("8e") else word + rest


def _both(left: str, right: str) -> str:
    types = numpy_type(left), numpy_type(right)
    return types[0] if types[0] == types[1] else ",".join(types)


def _stored(weight: jax.Array, policy: str) -> tuple[jax.Array, ...]:
    if policy in ("w8", "w8a8"):
        return _codes_of_columns(weight, CODE_LIMIT)
    if policy == "int4":
        codes, scales = _codes_of_columns(weight, INT4_LIMIT)
        # Four bits hold the codes; how many bytes that takes is counted.
        return codes.astype(jnp.int4), scales
    return (weight.astype(ROUNDED_TYPES.get(policy, jnp.float32)),)


@partial(jax.jit, static_argnames="limit")
def _codes_of_columns(weight: jax.Array, limit: int) -> tuple[jax.Array, jax.Array]:
    return quantize_rows(weight.T, limit)


def stored_weights(
    parameters: Parameters, model: ModelConfig, policy: str
) -> dict[str, jax.Array]:
    """The dense layers' weights as they lie in memory in a format, scales among them.

    Args:
        parameters: Parameters by name.
        model: Shape of the model.
        policy: Dense policy.

    Returns:
        Arrays by name; codes first, then the scales of a layer.
    """
    held = {}
    for block in range(model.blocks):
        for layer in DENSE_LAYERS:
            name = f"h.{block}.{layer}.weight"
            arrays = _stored(parameters[name], policy)
            for part, array in zip(("", "/scales"), arrays, strict=False):
                held[name + part] = array
    return held


def array_rows(policy: str, part: str, arrays: Mapping[str, Any]) -> list[dict]:
    """Rows of ``policy_arrays``: bytes counted from each array.

    Args:
        policy: Name of the policy.
        part: "weights" or "optimizer".
        arrays: Arrays by name.
    """
    return [
        {
            "policy": policy,
            "part": part,
            "array_name": name,
            "dtype": np.dtype(array.dtype).name,
            "shape": str(list(array.shape)),
            "array_bytes": int(array.nbytes),
        }
        for name, array in arrays.items()
    ]
