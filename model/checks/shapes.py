"""The shape table of the model, read off the traced program and not off its source.

A reader checks the architecture here: parameters, token embedding and every matrix
product of the forward pass, in the order in which they are computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from model.checks.rows import Row, count
from model.config import ModelConfig
from model.parameters import Parameters
from model.transformer import logits

CLAIM = "1.0"
TABLED = ("gather", "dot_general")


def measure_shapes(
    parameters: Parameters, model: ModelConfig, batch_documents: int
) -> list[Row]:
    """Returns the elements of every parameter, look-up and product, and how many.

    Args:
        parameters: Parameters by name.
        model: Shape of the model.
        batch_documents: Documents of the traced batch.
    """
    inputs = jnp.zeros((batch_documents, model.context_tokens), dtype=jnp.int32)
    traced = jax.make_jaxpr(partial(logits, model=model))(parameters, inputs)
    rows = [_row(f"parameter/{name}", array) for name, array in parameters.items()]
    total = sum(row["value_count"] for row in rows)
    for number, equation in enumerate(_tabled(traced.jaxpr)):
        case = f"computed/{number:02d}-{equation.primitive.name}"
        rows.append(_row(case, equation.outvars[0].aval))
    computed = len(rows) - len(parameters)
    return [
        *rows,
        count(CLAIM, "parameter_elements", "", total, "elements"),
        count(CLAIM, "traced_arrays", "parameter", len(parameters), "arrays"),
        count(CLAIM, "traced_arrays", "computed", computed, "arrays"),
    ]


def _tabled(jaxpr: Any) -> Iterator[Any]:
    """Yields tabled equations in order, those of called functions in their place."""
    for equation in jaxpr.eqns:
        if equation.primitive.name in TABLED:
            yield equation
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from _tabled(inner)


def _row(case: str, array: Any) -> Row:
    detail = f"{array.dtype} {list(array.shape)}"
    return count(CLAIM, "traced_shape_elements", case, array.size, "elements", detail)
