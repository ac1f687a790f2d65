"""Crafted logits for generation, one case a rule, and the model that answers them.

A trained model never has PAD on top and seldom fills the context; these do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from model.tokenizer import BOS, BYTE_OFFSET, EOS, PAD, VOCABULARY_TOKENS, encode

CONTEXT_TOKENS = 12
PROMPT = b"ab|"
REQUESTED, ENDED, AT_END = "requested_tokens", "end_of_sequence", "context_end"
FULL, ROOM = b"a" * (CONTEXT_TOKENS - 1), CONTEXT_TOKENS - 1 - len(PROMPT)


@dataclass(kw_only=True)
class CraftedModel:
    """A pair of prefill and decode that answers prepared logits, step by step."""

    steps: Sequence[np.ndarray]
    """float32 [V] logits of each step; the last one repeats."""
    prompted: list[int] = field(default_factory=list)
    """Valid tokens that prefill was given."""
    fed: list[int] = field(default_factory=list)
    """Tokens that decode was given."""

    def prefill(self, tokens: np.ndarray, length: np.ndarray) -> tuple[Any, ...]:
        """Logits of the first step."""
        self.prompted += tokens[0, : int(length[0])].tolist()
        return self.steps[0][None], 0

    def decode(self, token: np.ndarray, step: int) -> tuple[Any, ...]:
        """Logits of the next step."""
        self.fed.append(int(token[0]))
        following = min(step + 1, len(self.steps) - 1)
        return self.steps[following][None], step + 1


def logits_for(*ranked: int) -> np.ndarray:
    """float32 [V] with the given tokens on top, the first highest, by 1 each."""
    logits = np.zeros(VOCABULARY_TOKENS, np.float32)
    for place, token in enumerate(ranked):
        logits[token] = 10.0 - place
    return logits


def byte_token(text: str) -> int:
    """Returns the token of one byte, by the rule and not by the tokenizer."""
    return ord(text) + BYTE_OFFSET


@dataclass(frozen=True, kw_only=True)
class Case:
    """Crafted logits, and the generation that the rules ask for."""

    name: str
    steps: tuple[np.ndarray, ...]
    maximum_new_tokens: int
    ids: tuple[int, ...]
    text: str
    stop_reason: str
    prompt: bytes = PROMPT

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """BOS and the prompt's tokens, by the rule and not by the tokenizer."""
        return BOS, *(value + BYTE_OFFSET for value in self.prompt)

    @property
    def given(self) -> tuple[int, ...]:
        """What the model has to be given: the prompt and what something came after."""
        is_full = self.stop_reason == "context_end"
        return self.prompt_ids + (self.ids if is_full else self.ids[:-1])


def crafted_cases() -> tuple[Case, ...]:
    """One case for every rule of claim 4.4."""
    return tuple(
        Case(
            name=name,
            steps=tuple(
                step if isinstance(step, np.ndarray) else logits_for(*step)
                for step in steps
            ),
            maximum_new_tokens=most,
            ids=ids,
            text=text,
            stop_reason=stop_reason,
            prompt=prompt,
        )
        for table in (_choices(), _steps(), _ends())
        for name, steps, most, ids, text, stop_reason, prompt in table
    )


CraftedRow = tuple[str, Sequence[Any], int, tuple[int, ...], str, str, bytes]
"""Name, logits by step, most new tokens, ids, text, stop reason, prompt."""


def _choices() -> Iterator[CraftedRow]:
    """Which token is chosen, and what text it stands for."""
    a, b = byte_token("a"), byte_token("b")
    tied = logits_for(b)
    tied[a] = tied[b]
    flat = logits_for()
    # Below any finite number that a mask may have written in the place of infinity.
    deep = np.where(np.arange(VOCABULARY_TOKENS) == a, -1e20, -1e30).astype(np.float32)
    accent, broken = (
        tuple(int(token) for token in encode(data)) for data in ("é".encode(), b"\xc3a")
    )
    yield from (
        ("pad_on_top", [(PAD, a)], 2, (a, a), "aa", REQUESTED, PROMPT),
        ("bos_on_top", [(BOS, PAD, b)], 1, (b,), "b", REQUESTED, PROMPT),
        ("tie", [tied], 1, (a,), "a", REQUESTED, PROMPT),
        ("all_tied", [flat], 3, (EOS,), "", ENDED, PROMPT),
        ("all_far_below", [deep], 2, (a, a), "aa", REQUESTED, PROMPT),
        ("multibyte", [(x,) for x in accent], 2, accent, "é", REQUESTED, PROMPT),
        (
            "invalid_utf8",
            [(x,) for x in broken],
            2,
            broken,
            "\ufffda",
            REQUESTED,
            PROMPT,
        ),
    )


def _steps() -> Iterator[CraftedRow]:
    """What every step rests on: the token that came before, and nothing older."""
    a, b, c = (byte_token(text) for text in "abc")
    yield from (
        # Three steps apart from each other: a state or a token of one step too early
        # gives the step before once more.
        (
            "steps_apart",
            [(a,), (b,), (c,), (a, b), (EOS,)],
            9,
            (a, b, c, a, EOS),
            "abca",
            ENDED,
            PROMPT,
        ),
        (
            "steps_apart_to_the_end",
            [(c,), (a,), (b,), (b, a), (a, b), (c, b), (b, c), (a, c), (c, a)],
            100,
            (c, a, b, b, a, c, b, a),
            "cabbacba",
            AT_END,
            PROMPT,
        ),
    )


def _ends() -> Iterator[CraftedRow]:
    """Where a generation ends, and why."""
    a, b = byte_token("a"), byte_token("b")
    yield from (
        ("eos_at_step_2", [(a,), (EOS,), (b,)], 6, (a, EOS), "a", ENDED, PROMPT),
        ("eos_as_last_requested", [(a,), (EOS,)], 2, (a, EOS), "a", ENDED, PROMPT),
        ("eos_at_step_1", [(EOS, a), (b,)], 6, (EOS,), "", ENDED, PROMPT),
        ("requested_number", [(a,)], 3, (a, a, a), "aaa", REQUESTED, PROMPT),
        (
            "requested_to_the_end",
            [(a,)],
            ROOM,
            (a,) * ROOM,
            "a" * ROOM,
            REQUESTED,
            PROMPT,
        ),
        ("context_end", [(a,)], 100, (a,) * ROOM, "a" * ROOM, AT_END, PROMPT),
        ("full_prompt", [(a,)], 5, (), "", AT_END, FULL),
        ("eos_after_full_context", [(EOS,)], 5, (EOS,), "", ENDED, FULL),
    )
