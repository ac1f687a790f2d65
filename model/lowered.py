"""What a lowered program says about itself: its products, its float32, its shape.

A label such as "int8" proves nothing; the operand and accumulator types stand in the
StableHLO text. The manifest of a release is written from these readings, and a loaded
endpoint is read again and compared with them. Nothing here knows the model's source.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from jax import export

_PRODUCT = re.compile(
    r"stablehlo\.dot_general\s+[^:]*:\s*\(tensor<([^>]*)>,\s*tensor<([^>]*)>\)\s*->"
    r"\s*tensor<([^>]*)>"
)
_CONTRACTED = re.compile(r"contracting_dims = \[([^\]]*)\] x \[([^\]]*)\]")
_PRECISION = re.compile(r"precision = \[([^\]]*)\]")
_OPERATION = re.compile(r"stablehlo\.(\w+).*tensor<(?:[0-9]+x)*f32>\s*(?:loc.*)?$")
# They move values and compute none; the products are counted apart.
_NO_ARITHMETIC = frozenset(
    {
        "broadcast_in_dim",
        "case",
        "concatenate",
        "constant",
        "convert",
        "dot_general",
        "dynamic_slice",
        "gather",
        "reshape",
        "return",
        "select",
        "slice",
        "transpose",
    }
)


@dataclass(frozen=True, kw_only=True)
class Dot:
    """One matrix product of a lowered program, as its text has it."""

    left_type: str
    left_shape: tuple[int, ...]
    right_type: str
    right_shape: tuple[int, ...]
    result_type: str
    """Type of the sum: the accumulator."""
    precision: str
    """Precision of the operands, "DEFAULT" where none is named."""
    is_batched: bool
    """Whether both operands vary over a batch, as in attention."""
    weight_shapes: tuple[tuple[int, int], ...]
    """Of each operand that may be a weight, by two axes: the summed one first."""


def read_dots(program: str) -> list[Dot]:
    """Returns every matrix product of a lowered program, in the order of its text.

    Args:
        program: StableHLO text.

    Raises:
        ValueError: For a product that cannot be read; none is skipped in silence.
    """
    found = []
    for line in program.splitlines():
        if "stablehlo.dot_general" not in line:
            continue
        match = _PRODUCT.search(line)
        if match is None:
            raise ValueError(f"cannot read the matrix product {line.strip()!r}")
        left, right, result = (text.split("x") for text in match.groups())
        precision = _PRECISION.search(line)
        left_shape, right_shape = (
            tuple(map(int, left[:-1])),
            tuple(map(int, right[:-1])),
        )
        found.append(
            Dot(
                left_type=left[-1],
                left_shape=left_shape,
                right_type=right[-1],
                right_shape=right_shape,
                result_type=result[-1],
                precision=precision[1].split(",")[0].strip()
                if precision
                else "DEFAULT",
                is_batched="batching_dims" in line,
                weight_shapes=_weight_shapes(line, right_shape, left_shape),
            )
        )
    return found


def _weight_shapes(
    line: str, right: tuple[int, ...], left: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    """Shapes with the summed axis first, whichever way and side a weight lies."""
    contracted = _CONTRACTED.search(line)
    if contracted is None or "batching_dims" in line:
        return ()
    axes = (contracted[2].strip(), contracted[1].strip())
    return tuple(
        (shape[int(axis)], shape[1 - int(axis)])
        for shape, axis in zip((right, left), axes, strict=True)
        if len(shape) == 2 and axis in ("0", "1")
    )


def matrix_products(program: str) -> dict[str, int]:
    """How many matrix products of each kind a lowered program holds.

    A program lowered for several platforms holds a product once a platform.

    Args:
        program: StableHLO text.

    Returns:
        Count by "lhs,rhs->result precision", such as "i8,i8->i32 DEFAULT".

    Raises:
        ValueError: For a product that cannot be read; none is skipped in silence.
    """
    found = Counter(
        f"{dot.left_type},{dot.right_type}->{dot.result_type} {dot.precision}"
        for dot in read_dots(program)
    )
    return dict(sorted(found.items()))


def float32_operations(program: str) -> list[str]:
    """Names of the arithmetic operations, products aside, that stay float32."""
    names = {
        match[1]
        for line in program.splitlines()
        if (match := _OPERATION.search(line.strip()))
    }
    return sorted(names - _NO_ARITHMETIC)


def describe_endpoint(exported: export.Exported, data: bytes) -> dict[str, Any]:
    """What the manifest of a release says about one serialised endpoint."""
    program = exported.mlir_module()
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "function": exported.fun_name,
        "platforms": list(exported.platforms),
        "calling_convention_version": exported.calling_convention_version,
        "devices": exported.nr_devices,
        "inputs": [str(aval) for aval in exported.in_avals],
        "outputs": [str(aval) for aval in exported.out_avals],
        "has_gradient": exported.has_vjp(),
        "stablehlo_sha256": hashlib.sha256(exported.mlir_module_serialized).hexdigest(),
        "matrix_products": matrix_products(program),
        "float32_operations": float32_operations(program),
    }
