"""The Transformer again, in NumPy float64 and from the formulas.

Written without a look at the JAX side: loops over blocks, heads and queries instead
of one masked product, so that a mask, a scale or an axis cannot be wrong in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from model.config import ModelConfig

Arrays = Mapping[str, np.ndarray]
Row = Callable[[np.ndarray, np.ndarray, int, np.ndarray], np.ndarray]

PAD = 0


def normalize(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, epsilon: float
) -> np.ndarray:
    """Returns LayerNorm of the last axis of x, float64."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * weight + bias


def gelu(x: np.ndarray) -> np.ndarray:
    """Returns the tanh form of GELU, float64.

    Source: Hendrycks and Gimpel 2016, section 2.
    """
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def attention_row(
    queries: np.ndarray, keys: np.ndarray, position: int, is_key: np.ndarray
) -> np.ndarray:
    """Returns the weights of one query over all keys, by plain loops.

    Args:
        queries: Queries of one head [T, K], float64.
        keys: Keys of one head [T, K], float64.
        position: Position of the query.
        is_key: Whether a position may be attended to at all (it is no PAD) [T].

    Returns:
        Weights [T]; 0 at later positions and PAD; all 0 when no key is allowed.
    """
    length, width = keys.shape
    scores: dict[int, float] = {}
    for key in range(position + 1):
        if is_key[key]:
            product = 0.0
            for channel in range(width):
                product += float(queries[position, channel]) * float(keys[key, channel])
            scores[key] = product / math.sqrt(width)
    weights = np.zeros(length)
    if scores:
        peak = max(scores.values())
        total = sum(math.exp(score - peak) for score in scores.values())
        for key, score in scores.items():
            weights[key] = math.exp(score - peak) / total
    return weights


def attention_row_vectorized(
    queries: np.ndarray, keys: np.ndarray, position: int, is_key: np.ndarray
) -> np.ndarray:
    """Returns the same row as `attention_row`, by a matrix product over its keys.

    For contexts where loops over every channel would take minutes; a test holds it
    against the loops.
    """
    allowed = np.flatnonzero(is_key[: position + 1])
    weights = np.zeros(len(keys))
    if allowed.size:
        scores = keys[allowed] @ queries[position] / math.sqrt(keys.shape[1])
        raised = np.exp(scores - scores.max())
        weights[allowed] = raised / raised.sum()
    return weights


def _attention(
    normal: np.ndarray,
    parameters: Arrays,
    name: str,
    model: ModelConfig,
    is_key: np.ndarray,
    row: Row,
) -> tuple[np.ndarray, np.ndarray]:
    """Attended values [T, D] and weights [H, T, T] of one document."""
    length, width = normal.shape
    head_width = width // model.heads
    fused = normal @ parameters[f"{name}.c_attn.weight"]
    fused = fused + parameters[f"{name}.c_attn.bias"]
    attended = np.zeros((length, width))
    weights = np.zeros((model.heads, length, length))
    for head in range(model.heads):
        start = head * head_width
        query = fused[:, start : start + head_width]
        key = fused[:, width + start : width + start + head_width]
        value = fused[:, 2 * width + start : 2 * width + start + head_width]
        for position in range(length):
            weights[head, position] = row(query, key, position, is_key)
        attended[:, start : start + head_width] = weights[head] @ value
    return attended, weights


def forward(
    parameters: Arrays,
    tokens: np.ndarray,
    model: ModelConfig,
    *,
    loops: bool = False,
    thinned: Sequence[np.ndarray] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Returns logits [T, V] and attention weights [L, H, T, T] of one document.

    Args:
        parameters: Arrays by GPT-2 name; read as float64.
        tokens: Ids of one document [T], right padded with PAD.
        model: Shape of the model.
        loops: Whether attention rows come from the plain loops.
        thinned: What dropout multiplies by at each of its places [T, D]: after the
            embedding, then after attention and feed-forward of every block.
    """
    exact = {name: np.asarray(x, dtype=np.float64) for name, x in parameters.items()}
    row = attention_row if loops else attention_row_vectorized
    epsilon, all_weights = model.layer_norm_epsilon, []
    hidden = exact["wte.weight"][tokens] + exact["wpe.weight"][: len(tokens)]
    factors = thinned or [np.ones_like(hidden)] * (1 + 2 * model.blocks)
    hidden = hidden * factors[0]

    def layer(name: str, x: np.ndarray) -> np.ndarray:
        return x @ exact[f"{name}.weight"] + exact[f"{name}.bias"]

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        return normalize(x, exact[f"{name}.weight"], exact[f"{name}.bias"], epsilon)

    for block in range(model.blocks):
        name = f"h.{block}"
        attended, weights = _attention(
            norm(f"{name}.ln_1", hidden),
            exact,
            f"{name}.attn",
            model,
            tokens != PAD,
            row,
        )
        all_weights.append(weights)
        joined = layer(f"{name}.attn.c_proj", attended)
        hidden = hidden + joined * factors[1 + 2 * block]
        expanded = gelu(layer(f"{name}.mlp.c_fc", norm(f"{name}.ln_2", hidden)))
        contracted = layer(f"{name}.mlp.c_proj", expanded)
        hidden = hidden + contracted * factors[2 + 2 * block]
    logits = norm("ln_f", hidden) @ exact["lm_head.weight"].T
    return logits, np.array(all_weights)


def first_block_row(
    parameters: Arrays, tokens: np.ndarray, model: ModelConfig, head: int, query: int
) -> list[float]:
    """Returns one attention row of the first block, by plain loops from the start.

    Embedding, LayerNorm, the query and key columns of the fused matrix, their biases,
    and the scale by the square root of the head width: nothing is shared with
    `forward` but the parameters.

    Args:
        parameters: Arrays by GPT-2 name.
        tokens: Ids of one document [T], right padded with PAD.
        model: Shape of the model.
        head: Number of the head.
        query: Position that looks.

    Returns:
        A weight for each of the T positions.
    """
    width = model.width // model.heads
    matrix = parameters["h.0.attn.c_attn.weight"]
    bias = parameters["h.0.attn.c_attn.bias"]

    def project(position: int, first_column: int) -> list[float]:
        normal = _looped_normal(parameters, int(tokens[position]), position, model)
        result = []
        for column in range(first_column, first_column + width):
            total = float(bias[column])
            for channel, value in enumerate(normal):
                total += value * float(matrix[channel, column])
            result.append(total)
        return result

    looks = project(query, head * width)
    scores = {}
    for position in range(query + 1):
        if int(tokens[position]) != PAD:
            key = project(position, model.width + head * width)
            product = sum(a * b for a, b in zip(looks, key, strict=True))
            scores[position] = product / math.sqrt(width)
    total = sum(math.exp(score) for score in scores.values())
    return [
        math.exp(scores[position]) / total if position in scores else 0.0
        for position in range(len(tokens))
    ]


def _looped_normal(
    parameters: Arrays, token: int, position: int, model: ModelConfig
) -> list[float]:
    """LayerNorm before the first attention of one position, by loops."""
    embedded = [
        float(parameters["wte.weight"][token, channel])
        + float(parameters["wpe.weight"][position, channel])
        for channel in range(model.width)
    ]
    mean = sum(embedded) / model.width
    variance = sum((value - mean) ** 2 for value in embedded) / model.width
    deviation = math.sqrt(variance + model.layer_norm_epsilon)
    weight = parameters["h.0.ln_1.weight"]
    bias = parameters["h.0.ln_1.bias"]
    return [
        (value - mean) / deviation * float(weight[channel]) + float(bias[channel])
        for channel, value in enumerate(embedded)
    ]
