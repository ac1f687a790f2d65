"""Bounded generation over any pair of prefill and decode functions.

The loop is the same for the model, for exported endpoints and for crafted logits, so
its rules can be shown where a trained model would never get: PAD and BOS are never
emitted however large their logits, and every stop has a named reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from model.refusal import ReasonCode, Refused
from model.tokenizer import BOS, EOS, PAD, decode_text, prompt_tokens

if TYPE_CHECKING:
    from jaxtyping import Float, Float32

StopReason = Literal["end_of_sequence", "requested_tokens", "context_end"]
State = tuple[Any, ...]
# tokens int32 [1, T], length int32 [1] -> logits [1, V] and the state
Prefill = Callable[[np.ndarray, np.ndarray], tuple[Any, ...]]
# token int32 [1], state -> logits [1, V] and the state
Decode = Callable[..., tuple[Any, ...]]
# finite float64 [V], -inf where forbidden -> token id
Choose = Callable[[np.ndarray], int]

NEVER_EMITTED = (PAD, BOS)


@dataclass(frozen=True, kw_only=True)
class Generation:
    """What was generated after a prompt, ids and text together."""

    prompt_ids: tuple[int, ...]
    """BOS and the prompt's tokens."""
    token_ids: tuple[int, ...]
    """The emitted tokens in order, EOS included when it was emitted."""
    text: str
    """Their bytes as text; invalid UTF-8 shows as U+FFFD, so the ids are the truth."""
    stop_reason: StopReason
    """Why it ended."""


def greedy(logits: Float[np.ndarray, " V"]) -> int:
    """The most likely token; of equals the one with the lowest id."""
    return int(np.argmax(logits))


def sampler(seed: int, temperature: float = 1.0) -> Choose:
    """A function that draws tokens by their probability, the same ones for a seed.

    Args:
        seed: Seed of NumPy's PCG64.
        temperature: Divides the logits; above 0.
    """
    generator = np.random.Generator(np.random.PCG64(seed))

    def draw(logits: np.ndarray) -> int:
        # float64: a float32 running sum over the vocabulary may end below a draw.
        scaled = (logits - logits.max()) / temperature
        share = np.cumsum(np.exp(scaled))
        return int(np.searchsorted(share, generator.random() * share[-1], "right"))

    return draw


def allowed_logits(logits: Float32[np.ndarray, " V"]) -> Float[np.ndarray, " V"]:
    """Float64 logits with the tokens that may never be emitted at minus infinity.

    Raises:
        Refused: non_finite_logits; an argmax over NaN would emit a made-up token.
    """
    logits = np.asarray(logits, np.float64)
    wrong = np.flatnonzero(~np.isfinite(logits))
    if wrong.size:
        raise Refused(
            ReasonCode.NON_FINITE_LOGITS,
            f"generation stopped: {wrong.size} of {logits.size} logits are not finite, "
            f"the first is {logits[wrong[0]]} for token {int(wrong[0])}; allowed are "
            "finite logits only: check the parameters of this release",
        )
    logits[list(NEVER_EMITTED)] = -np.inf
    return logits


def generate(
    prefill: Prefill,
    decode: Decode,
    prompt: bytes,
    *,
    context_tokens: int,
    maximum_new_tokens: int,
    choose: Choose | None = None,
) -> Generation:
    """Tokens after a prompt, until EOS, the requested number or the context's end.

    EOS takes no place in the context, because nothing is computed after it: with a
    full context the model may still end the sequence, and can do nothing else.

    Args:
        prefill: Takes padded tokens int32 [1, T] and the valid length int32 [1].
        decode: Takes one token int32 [1] and the state that came with the logits.
        prompt: Bytes of the prompt; may be empty.
        context_tokens: Most tokens a sequence may hold, BOS included.
        maximum_new_tokens: Most tokens to emit, EOS included.
        choose: Picks a token from float64 logits; None is `greedy`.

    Raises:
        Refused: prompt_overlong, or non_finite_logits.
    """
    tokens, length = prompt_tokens(prompt, context_tokens)
    logits, *state = prefill(tokens[None], np.array([length], np.int32))
    emitted: list[int] = []
    stop_reason: StopReason = "requested_tokens"
    while len(emitted) < maximum_new_tokens:
        token = (choose or greedy)(allowed_logits(np.asarray(logits)[0]))
        is_full = length + len(emitted) == context_tokens
        if is_full and token != EOS:
            stop_reason = "context_end"
            break
        emitted.append(token)
        if token == EOS:
            stop_reason = "end_of_sequence"
            break
        if len(emitted) < maximum_new_tokens:
            logits, *state = decode(np.array([token], np.int32), *state)
    return Generation(
        prompt_ids=tuple(int(token) for token in tokens[:length]),
        token_ids=tuple(emitted),
        text=decode_text(emitted),
        stop_reason=stop_reason,
    )
