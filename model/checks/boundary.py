"""What a position may see: attention rows by loops, and tokens of the future.

Two independent views of one boundary: the weights themselves, against plain NumPy
loops; and the logits, which no change of a later token may move by a single bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from model.checks.differences import largest_difference
from model.checks.rows import Row, count, real
from model.config import ModelConfig
from model.parameters import Parameters
from model.reference import transformer as reference

Logits = Callable[[Parameters, jax.Array], jax.Array]

ATTENTION, FUTURE = "1.7", "1.8"
# A longer document is recorded in its first positions only: the rows are there to be
# looked at, while the measurements beside them cover every position.
RECORDED_POSITIONS = 24


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Weights of some documents, by the system and by the reference."""

    inputs: np.ndarray
    """Input tokens [N, T], int32."""
    measured: np.ndarray
    """Weights of the system [L, N, H, T, T]."""
    expected: np.ndarray
    """Weights of the reference [L, N, H, T, T], float64."""


def reference_attention(
    parameters: Mapping[str, np.ndarray],
    inputs: np.ndarray,
    measured: np.ndarray,
    model: ModelConfig,
) -> Attention:
    """Returns the weights of the system beside those of the reference.

    Args:
        parameters: Parameters by name.
        inputs: Input tokens [N, T].
        measured: Weights of the system [L, N, H, T, T].
        model: Shape of the model.
    """
    loops = model.context_tokens <= RECORDED_POSITIONS
    rows = [
        reference.forward(parameters, document, model, loops=loops)[1]
        for document in inputs
    ]
    return Attention(inputs=inputs, measured=measured, expected=np.stack(rows, axis=1))


def measure_attention(attention: Attention) -> list[Row]:
    """Returns the rows of claim 1.7 over every document, block, head and query.

    Args:
        attention: Weights by system and reference.
    """
    time = attention.inputs.shape[1]
    is_key = np.tril(np.ones((time, time), dtype=bool))[None]
    is_key = (is_key & (attention.inputs != reference.PAD)[:, None, :])[:, None]
    rows = []
    for block, measured in enumerate(attention.measured):
        case = f"block-{block:02d}"
        apart = largest_difference(attention.expected[block], measured)
        hidden = int(((measured != 0.0) & ~is_key).sum())
        # An input of PAD alone has no key and no sum; documents begin with BOS.
        sums = np.abs(measured.astype(np.float64).sum(axis=-1) - 1.0)
        compared = int(np.prod(measured.shape[:-1]))
        rows += [
            real(ATTENTION, "row_largest_difference", case, apart, "1"),
            count(ATTENTION, "hidden_keys_with_weight", case, hidden, "weights"),
            real(ATTENTION, "row_sum_largest_error", case, sums.max(), "1"),
            count(ATTENTION, "rows_compared", case, compared, "rows"),
        ]
    return rows


def measure_one_row(
    parameters: Mapping[str, np.ndarray],
    document: np.ndarray,
    measured: np.ndarray,
    model: ModelConfig,
) -> list[Row]:
    """Returns how far one row of each head lies from plain loops over everything.

    Args:
        parameters: Parameters by name.
        document: Input tokens [T]; its last token that is no PAD is the query.
        measured: Weights of the first block of the system [H, T, T].
        model: Shape of the model.
    """
    query = int(np.flatnonzero(document != reference.PAD)[-1])
    rows = []
    for head in range(model.heads):
        row = reference.first_block_row(parameters, document, model, head, query)
        apart = largest_difference(np.array(row), measured[head, query])
        case = f"head-{head:02d}"
        measure = "looped_row_largest_difference"
        detail = f"block 0, query {query}, {len(row)} keys"
        rows.append(real(ATTENTION, measure, case, apart, "1", detail))
    return rows


def attention_rows(attention: Attention, ids: Sequence[str]) -> Iterator[Row]:
    """Yields the weights of the first positions as rows of `attention_weights`.

    Args:
        attention: Weights by system and reference.
        ids: Ids of the documents.
    """
    positions = min(attention.inputs.shape[1], RECORDED_POSITIONS)
    blocks, documents, heads = attention.measured.shape[:3]
    shape = (documents, blocks, heads, positions, positions)
    for document, block, head, query, key in np.ndindex(shape):
        place = (block, document, head, query, key)
        yield {
            "document_id": ids[document],
            "block": block,
            "head": head,
            "query": query,
            "key": key,
            "weight": float(attention.measured[place]),
            "reference_weight": float(attention.expected[place]),
        }


@partial(jax.jit, static_argnames="logits")
def _count_changes(
    parameters: Parameters,
    document: jax.Array,
    position: jax.Array,
    values: jax.Array,
    logits: Logits,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """How many logits part from those of values[0], before `position` and after.

    The third is the number of values under which not one of the later logits parts.
    """
    places = jnp.arange(document.shape[0], dtype=jnp.int32)
    variants = jnp.where(
        (places == position)[None],
        values[:, None],
        jnp.broadcast_to(document[None], (values.shape[0], document.shape[0])),
    )
    # Bits, not values: -0.0 and 0.0 are a difference too.
    bits = jax.lax.bitcast_convert_type(logits(parameters, variants), jnp.int32)
    parted = jnp.sum((bits != bits[:1]).astype(jnp.int32), axis=2)
    is_earlier = jnp.broadcast_to((places < position)[None], parted.shape)
    earlier = jnp.sum(jnp.where(is_earlier, parted, jnp.int32(0)))
    later = jnp.where(is_earlier, jnp.int32(0), parted)
    # The first value is the token itself, which changes nothing.
    idle = jnp.sum(jnp.all(later[1:] == 0, axis=1).astype(jnp.int32))
    return earlier, jnp.sum(later), idle


def measure_future_tokens(
    logits: Logits,
    parameters: Parameters,
    inputs: np.ndarray,
    model: ModelConfig,
    *,
    positions: int,
    tokens: int,
    seed: int,
) -> list[Row]:
    """Returns the rows of claim 1.8: what changing one token does to earlier logits.

    Args:
        logits: The system under qualification, [R, T] to [R, T, V].
        parameters: Parameters by name.
        inputs: Input tokens of the documents [N, T].
        model: Shape of the model.
        positions: Positions changed in a document, drawn without replacement; 0 for
            every one but the first, which has nothing before it.
        tokens: Other tokens put there, drawn without replacement; 0 for every one.
        seed: Names the draws (NumPy's PCG64, one generator over all documents).
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    earlier = later = idle = changes = 0
    for document in inputs:
        places = _draw(generator, np.arange(1, len(document)), positions)
        for position in places:
            others = np.delete(np.arange(model.vocabulary_tokens), document[position])
            chosen = _draw(generator, others, tokens)
            values = np.concatenate([document[position : position + 1], chosen])
            moved = _count_changes(
                parameters,
                jnp.asarray(document),
                jnp.asarray(position, dtype=jnp.int32),
                jnp.asarray(values, dtype=jnp.int32),
                logits,
            )
            earlier, later = earlier + int(moved[0]), later + int(moved[1])
            idle += int(moved[2])
            changes += len(chosen)
    return [
        count(FUTURE, "earlier_logits_changed", "", earlier, "logits"),
        count(FUTURE, "own_or_later_logits_changed", "", later, "logits"),
        count(FUTURE, "token_changes_without_effect", "", idle, "changes"),
        count(FUTURE, "token_changes", "", changes, "changes"),
    ]


def _draw(generator: np.random.Generator, pool: np.ndarray, wanted: int) -> Any:
    if not wanted or wanted >= len(pool):
        return pool
    return np.sort(generator.choice(pool, wanted, replace=False))
