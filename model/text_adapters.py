"""Built-in signatures over a user's functions on text and order, without JAX.

Each adapter takes a watched function of a user's file and returns what
`model.replaced.replace` wants: a function from the original to its replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, get_args

import numpy as np

from model.generation import Generation, StopReason, allowed_logits, greedy
from model.guarded import Guarded
from model.tokenizer import decode_text, prompt_tokens

Replacement = Callable[[Any], Any]


def encode(user: Guarded) -> Replacement:
    """Adapts `encode(data)`."""
    return lambda original: lambda data: user(data)


def decode(user: Guarded) -> Replacement:
    """Adapts `decode(tokens)`; tokens come as integers in a list."""

    def replacement(original: Any) -> Any:
        def decode(tokens: Iterable[int]) -> bytes:
            found: bytes = user([int(token) for token in tokens])
            return found

        return decode

    return replacement


def batch_order(user: Guarded) -> Replacement:
    """Adapts `batch_order(seed, epoch, documents)`."""

    def replacement(original: Any) -> Any:
        def epoch_order(order_seed: int, epoch: int, documents: int) -> Any:
            return np.asarray(user(order_seed, epoch, documents))

        return epoch_order

    return replacement


def generate(user: Guarded) -> Replacement:
    """Adapts `generate(...)`; ids and text are put together here."""

    def replacement(original: Any) -> Any:
        def generate(
            prefill: Any,
            decode: Any,
            prompt: bytes,
            *,
            context_tokens: int,
            maximum_new_tokens: int,
            choose: Any = None,
        ) -> Generation:
            tokens, length = prompt_tokens(prompt, context_tokens)
            choice = greedy if choose is None else choose
            emitted, reason = user(
                _finite(prefill),
                _finite(decode),
                prompt,
                context_tokens,
                maximum_new_tokens,
                choice,
            )
            if reason not in get_args(StopReason):
                raise user.wrong_value(
                    f"gives {reason!r} as the reason why it ended",
                    f"it has to be one of {', '.join(get_args(StopReason))}",
                )
            return Generation(
                prompt_ids=tuple(int(token) for token in tokens[:length]),
                token_ids=emitted,
                text=decode_text(emitted),
                stop_reason=reason,
            )

        return generate

    return replacement


def _finite(function: Any) -> Any:
    """Returns prefill or decode, whose logits are refused where they are not finite."""

    def checked(*arguments: Any) -> Any:
        found = function(*arguments)
        allowed_logits(np.asarray(found[0])[0])
        return found

    return checked
