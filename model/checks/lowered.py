"""Claim 3.7: which number formats the products of a lowered program really have.

Every product of an exported endpoint is named by its place in the program and held
against the shape that the layer of that name must have, so nothing rests on a label.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from model.checks.rows import Row, comparison, count
from model.config import ModelConfig
from model.lowered import Dot, read_dots
from model.parameters import parameter_table
from model.refusal import ReasonCode, Refused

CLAIM = "3.7"
# Operand type, accumulator type and precision of the dense layers, by policy.
DENSE_TYPES = {
    "fp32": ("f32", "f32", "HIGHEST"),
    "bf16": ("bf16", "f32", "DEFAULT"),
    "w8a8": ("i8", "i32", "DEFAULT"),
}
FLOAT32 = ("f32", "f32", "HIGHEST")
# Products of a block in the order of the computation; the middle two have no weight.
BLOCK_DOTS = (
    "attn.c_attn",
    "attn.scores",
    "attn.values",
    "attn.c_proj",
    "mlp.c_fc",
    "mlp.c_proj",
)
HEAD = "lm_head"


class Layer(NamedTuple):
    """One product that a program of this model must hold."""

    name: str
    is_dense: bool
    weight_shape: tuple[int, ...] | None
    """Shape of the second operand; None where both operands vary over the batch."""


def expected_layers(model: ModelConfig) -> list[Layer]:
    """Returns every product of one forward pass, in the order of the computation."""
    shapes = {spec.name: spec.shape for spec in parameter_table(model)}
    layers = []
    for block in range(model.blocks):
        for dot in BLOCK_DOTS:
            shape = shapes.get(f"h.{block}.{dot}.weight")
            layers.append(Layer(f"h.{block}.{dot}", shape is not None, shape))
    return [*layers, Layer(HEAD, False, shapes[f"{HEAD}.weight"][::-1])]


def dot_rows(
    program: str,
    model: ModelConfig,
    endpoint: str,
    policy: str,
    platforms: Sequence[str],
) -> list[Row]:
    """Returns the rows of ``lowered_dots`` of one endpoint.

    Args:
        program: StableHLO text; where it is lowered for several platforms, a product
            stands there once a platform, one branch after another.
        model: Shape of the model.
        endpoint: "prefill" or "decode".
        policy: Name of the release policy.
        platforms: Platforms it is lowered for, in the order of the branches.

    Raises:
        Refused: A product is missing, too many, or has another shape than its layer, so
            that none can be named.
    """
    dots, layers = read_dots(program), expected_layers(model)
    if len(dots) != len(layers) * len(platforms):
        raise Refused(
            ReasonCode.IMPLEMENTATION_MISBEHAVED,
            f"{endpoint} under {policy} holds {len(dots)} products for {platforms}, "
            f"where {len(layers)} a platform are expected",
        )
    found = []
    for number, dot in enumerate(dots):
        layer = layers[number // len(platforms)]
        _check_shape(dot, layer, endpoint, policy)
        found.append(
            {
                "endpoint": endpoint,
                "release_policy": policy,
                "platform": platforms[number % len(platforms)],
                "place": number // len(platforms) + 1,
                "dot": layer.name,
                "is_dense": layer.is_dense,
                "operand_type": _operand_type(dot),
                "accumulator_type": dot.result_type,
                "precision": dot.precision,
                "left_shape": json.dumps(dot.left_shape),
                "right_shape": json.dumps(dot.right_shape),
            }
        )
    return found


def _operand_type(dot: Dot) -> str:
    types = (dot.left_type, dot.right_type)
    return types[0] if types[0] == types[1] else ",".join(types)


def _check_shape(dot: Dot, layer: Layer, endpoint: str, policy: str) -> None:
    """Raises unless the product can be the one of the layer."""
    is_own = (
        dot.is_batched
        if layer.weight_shape is None
        else layer.weight_shape in dot.weight_shapes
    )
    if not is_own:
        raise Refused(
            ReasonCode.IMPLEMENTATION_MISBEHAVED,
            f"{endpoint} under {policy}: the product {dot} stands where {layer.name} "
            f"with a weight of {layer.weight_shape} is expected",
        )


def check_dots(dots: Sequence[Row], model: ModelConfig) -> tuple[list[Row], list[Row]]:
    """Claim 3.7 over the products of every endpoint, one case a policy.

    Args:
        dots: Rows of ``lowered_dots``.
        model: Shape of the model.

    Returns:
        Rows of ``measurements`` and of ``comparisons``.
    """
    measured, compared = [], []
    layers = expected_layers(model)
    for policy, types in DENSE_TYPES.items():
        own = [row for row in dots if row["release_policy"] == policy]
        dense = [row for row in own if row["is_dense"]]
        beyond = [row for row in dense if _types(row) != types]
        first = f"{beyond[0]['dot']}: {_types(beyond[0])}" if beyond else ""
        measured += [
            count(CLAIM, "dense_products", policy, len(dense), "products"),
            count(
                CLAIM,
                "dense_products_beyond_policy",
                policy,
                len(beyond),
                "products",
                first,
            ),
        ]
        for endpoint in sorted({row["endpoint"] for row in own}):
            for platform in sorted({row["platform"] for row in own}):
                here = [
                    row["dot"]
                    for row in own
                    if (row["endpoint"], row["platform"]) == (endpoint, platform)
                    and _types(row) == FLOAT32
                ]
                stays = [
                    layer.name
                    for layer in layers
                    if not layer.is_dense or types == FLOAT32
                ]
                compared.append(
                    comparison(
                        CLAIM,
                        "float32_products",
                        f"{policy}/{endpoint}/{platform}",
                        " ".join(stays),
                        " ".join(here),
                        "the policy: what it does not cover stays float32",
                    )
                )
    return measured, compared


def _types(row: Row) -> tuple[str, str, str]:
    return row["operand_type"], row["accumulator_type"], row["precision"]
