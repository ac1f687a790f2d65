"""Claim 4.4: a seed repeats its tokens, and each is drawn by its probability.

A sampler that ignores its seed repeats itself too, and one that ignores its temperature
writes text that looks like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from model.checks import rows
from model.checks.differences import largest_value
from model.generation import Choose, generate, sampler

TEMPERATURES = (0.5, 1.0, 2.0)
DRAWS = 4000


def check_sampling(
    prefill: Callable[..., Any],
    decode_function: Callable[..., Any],
    prompt: bytes,
    context_tokens: int,
    make_sampler: Callable[[int], Choose] | None = None,
) -> list[rows.Row]:
    """Claim 4.4: a seed gives the same tokens again; eight seeds give several.

    Returns:
        One row of ``comparisons`` and one of ``measurements``, in this order.
    """

    def draw(seed: int) -> tuple[int, ...]:
        return generate(
            prefill,
            decode_function,
            prompt,
            context_tokens=context_tokens,
            maximum_new_tokens=6,
            choose=(make_sampler or sampler)(seed),
        ).token_ids

    first = [draw(seed) for seed in range(8)]
    again = [draw(seed) for seed in range(8)]
    return [
        rows.comparison(
            "4.4", "seeded_sampling", "", str(first), str(again), "the first draw"
        ),
        rows.count(
            "4.4", "distinct_samples_of_8_seeds", "", len(set(first)), "samples"
        ),
    ]


def check_temperatures(
    make_sampler: Callable[[int, float], Choose] | None = None,
) -> list[rows.Row]:
    """Claim 4.4: tokens are drawn by their probability at several temperatures.

    Returns:
        Rows of ``measurements``: how far the most unlikely count of a token lies from
        its expectation, in standard deviations.
    """
    logits, found = np.array([0.0, 0.5, 1.5, 2.0, 3.0]), []
    for temperature in TEMPERATURES:
        draw = (make_sampler or sampler)(0, temperature)
        drawn = np.array([draw(logits) for _ in range(DRAWS)])
        raised = np.exp(logits / temperature)
        shares = raised / raised.sum()
        counts = np.bincount(drawn, minlength=logits.size)
        spread = np.sqrt(DRAWS * shares * (1.0 - shares))
        apart = largest_value((np.abs(counts - DRAWS * shares) / spread).tolist())
        case, detail = f"temperature-{temperature:g}", f"{DRAWS} draws, {counts}"
        found.append(
            rows.real("4.4", "drawn_shares_deviation", case, apart, "1", detail)
        )
    return found
