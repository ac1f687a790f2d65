"""Claim 4.5: every token of a completion against a computation without a cache.

A loop that reads an old cache, or feeds another token than it emitted, writes text that
looks like any other. A prefill over all tokens so far has no loop to go wrong in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from model.checks import rows
from model.checks.differences import largest_value
from model.generation import allowed_logits
from model.tokenizer import prompt_tokens


def check_recomputed(
    prefill: Callable[..., Any],
    policy: str,
    generated: Sequence[rows.Row],
    context_tokens: int,
) -> list[rows.Row]:
    """How far any emitted token lies below the most likely one of a prefill.

    Args:
        prefill: Prefill of the release that wrote the completions.
        policy: Its policy.
        generated: Greedy completions, rows of ``generations``.
        context_tokens: Context of the release.

    Returns:
        Two rows of ``measurements``, the distance and the tokens that it is over; none
        where nothing was emitted.
    """
    below = [
        distance
        for row in generated
        for distance in _below_most_likely(
            prefill, row["prompt"], json.loads(row["token_ids"]), context_tokens
        )
    ]
    if not below:
        return []
    return [
        rows.real(
            "4.5", "emitted_below_recomputed", policy, largest_value(below), "logits"
        ),
        rows.count("4.5", "recomputed_tokens", policy, len(below), "tokens"),
    ]


def _below_most_likely(
    prefill: Callable[..., Any], prompt: str, ids: Sequence[int], context_tokens: int
) -> list[float]:
    """How far each token lies below the best after all tokens before it, in logits."""
    tokens, length = prompt_tokens(prompt.encode(), context_tokens)
    below = []
    for emitted in ids:
        logits, *_ = prefill(tokens[None], np.array([length], np.int32))
        allowed = allowed_logits(np.asarray(logits)[0])
        below.append(float(allowed.max() - allowed[emitted]))
        if length == context_tokens:
            break
        tokens[length] = emitted
        length += 1
    return below
