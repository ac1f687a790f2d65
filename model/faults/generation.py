"""Faults of generation: what is emitted, when it stops, and what it goes on from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from model.faults import Fault
from model.tokenizer import EOS, PAD

GROUP = "generation"
fault = partial(Fault, group=GROUP, stages=("export_endpoints",))
NEVER_EMITTED = (0, 1)

Allow = Callable[[np.ndarray], np.ndarray]


def _anything_emitted(original: Allow) -> Allow:
    def allowed_logits(logits: np.ndarray) -> np.ndarray:
        original(logits)
        return np.asarray(logits, np.float64)

    return allowed_logits


def _not_finite_accepted(original: Allow) -> Allow:
    def allowed_logits(logits: np.ndarray) -> np.ndarray:
        allowed = np.array(logits, np.float64)
        allowed[list(NEVER_EMITTED)] = -np.inf
        return allowed

    return allowed_logits


def _last_of_equals(original: Callable[[np.ndarray], int]) -> Any:
    return lambda logits: int(np.argsort(logits, kind="stable")[-1])


def _seed_ignored(original: Callable[..., Any]) -> Any:
    return lambda seed, temperature=1.0: original(0, temperature)


def _without_begin(original: Callable[..., Any]) -> Any:
    def prompt_tokens(prompt: bytes, context_tokens: int) -> tuple[np.ndarray, int]:
        row, length = original(prompt, context_tokens)
        if length == 1:
            return row, length
        return np.append(row[1:], np.int32(PAD)), length - 1

    return prompt_tokens


def _goes_on(
    *, stops_at_end: bool, stops_when_full: bool
) -> Callable[[Callable[..., Any]], Any]:
    """Returns a generation that leaves out one of its reasons to stop."""

    def replacement(original: Callable[..., Any]) -> Any:
        def generate(
            prefill: Any,
            decode: Any,
            prompt: bytes,
            *,
            context_tokens: int,
            maximum_new_tokens: int,
            choose: Any = None,
        ) -> Any:
            from model import generation

            tokens, length = generation.prompt_tokens(prompt, context_tokens)
            logits, *state = prefill(tokens[None], np.array([length], np.int32))
            emitted: list[int] = []
            reason = "requested_tokens"
            while len(emitted) < maximum_new_tokens:
                allowed = generation.allowed_logits(np.asarray(logits)[0])
                token = (choose or generation.greedy)(allowed)
                is_full = length + len(emitted) == context_tokens
                if stops_when_full and is_full and token != EOS:
                    reason = "context_end"
                    break
                emitted.append(token)
                if stops_at_end and token == EOS:
                    reason = "end_of_sequence"
                    break
                logits, *state = decode(np.array([token], np.int32), *state)
            return generation.Generation(
                prompt_ids=tuple(int(token) for token in tokens[:length]),
                token_ids=tuple(emitted),
                text=generation.decode_text(emitted),
                stop_reason=reason,  # type: ignore[arg-type]
            )

        return generate

    return replacement


def _first_state_kept(original: Callable[..., Any]) -> Any:
    def generate(prefill: Any, decode: Any, *arguments: Any, **named: Any) -> Any:
        first: list[Any] = []

        def remembered(*given: Any) -> Any:
            found = prefill(*given)
            first[:] = found[1:]
            return found

        def decode_after_prompt(token: Any, *state: Any) -> Any:
            return decode(token, *first)

        return original(remembered, decode_after_prompt, *arguments, **named)

    return generate


def _token_before_fed(original: Callable[..., Any]) -> Any:
    def generate(prefill: Any, decode: Any, *arguments: Any, **named: Any) -> Any:
        tokens: list[Any] = []

        def decode_late(token: Any, *state: Any) -> Any:
            tokens.append(token)
            return decode(tokens[max(len(tokens) - 2, 0)], *state)

        return original(prefill, decode_late, *arguments, **named)

    return generate


def _never_empty(original: Callable[..., Any]) -> Any:
    def generate(*arguments: Any, choose: Any = None, **named: Any) -> Any:
        from model import generation

        seen: list[int] = []

        def choose_text_first(allowed: np.ndarray) -> int:
            if not seen:
                allowed = np.where(np.arange(allowed.size) == EOS, -np.inf, allowed)
            seen.append((choose or generation.greedy)(allowed))
            return seen[-1]

        return original(*arguments, choose=choose_text_first, **named)

    return generate


def _finitely_forbidden(original: Callable[..., Any]) -> Any:
    def generate(*arguments: Any, choose: Any = None, **named: Any) -> Any:
        from model import generation

        def choose_among_all(allowed: np.ndarray) -> int:
            least = allowed[np.isfinite(allowed)].min()
            filled = np.where(np.isneginf(allowed), least, allowed)
            return int((choose or generation.greedy)(filled))

        return original(*arguments, choose=choose_among_all, **named)

    return generate


def _temperature_ignored(original: Callable[..., Any]) -> Any:
    return lambda seed, temperature=1.0: original(seed)


def _end_told_as_requested(original: Callable[..., Any]) -> Any:
    def generate(*arguments: Any, maximum_new_tokens: int, **named: Any) -> Any:
        found = original(*arguments, maximum_new_tokens=maximum_new_tokens, **named)
        if len(found.token_ids) == maximum_new_tokens:
            return replace(found, stop_reason="requested_tokens")
        return found

    return generate


FAULTS = (
    fault(
        name="greedy-may-emit-pad-or-bos",
        summary="Padding and the begin token are chosen like any other token.",
        source="none known; the fixture's own rule",
        claim="4.4",
        replaces="model.generation.allowed_logits",
        replacement=_anything_emitted,
    ),
    fault(
        name="non-finite-logits-sampled",
        summary="A NaN among the logits is the largest and chooses its token.",
        source="JustVugg/colibri#369",
        claim="4.4",
        replaces="model.generation.allowed_logits",
        replacement=_not_finite_accepted,
    ),
    fault(
        name="tie-breaking-unspecified",
        summary="Of equal logits the last token is taken, not the first.",
        source="none known; the fixture's own rule",
        claim="4.4",
        replaces="model.generation.greedy",
        replacement=_last_of_equals,
    ),
    fault(
        name="sampler-ignores-seed",
        summary="Every seed draws what the seed 0 draws.",
        source="tanelp.github.io/posts/a-bug-that-plagues-thousands-of-open-source-ml-projects",
        claim="4.4",
        replaces="model.generation.sampler",
        replacement=_seed_ignored,
    ),
    fault(
        name="eos-does-not-stop",
        summary="Generation goes on behind the end token.",
        source="huggingface/trl#6357",
        claim="4.4",
        replaces="model.generation.generate",
        replacement=_goes_on(stops_at_end=False, stops_when_full=True),
    ),
    fault(
        name="context-overrun-generates",
        summary="Generation goes on when the context is full.",
        source="jax-ml/jax#34257",
        claim="4.4",
        replaces="model.generation.generate",
        replacement=_goes_on(stops_at_end=True, stops_when_full=False),
    ),
    fault(
        name="bos-missing-at-serving",
        summary="A prompt is served without the begin token it was trained with.",
        source="huggingface/transformers#29250",
        claim="4.4",
        replaces="model.tokenizer.prompt_tokens",
        replacement=_without_begin,
    ),
    fault(
        name="cache-not-carried-between-steps",
        summary="Every step decodes from the cache that the prompt left.",
        source="none known; the fixture's own rule",
        claim="4.4",
        replaces="model.generation.generate",
        replacement=_first_state_kept,
    ),
    fault(
        name="token-before-the-last-fed",
        summary="From the second step on, the model is fed the token before the last.",
        source="oobabooga/textgen#4145",
        claim="4.4",
        replaces="model.generation.generate",
        replacement=_token_before_fed,
    ),
    fault(
        name="end-never-chosen-first",
        summary="The end token cannot come first, so that no answer is ever empty.",
        source="deepspeedai/DeepSpeedExamples#470",
        claim="4.4",
        replaces="model.generation.generate",
        replacement=_never_empty,
    ),
    fault(
        name="forbidden-tokens-as-the-least",
        summary="PAD and BOS get the least of the other logits, not minus infinity.",
        source="pytorch/pytorch#41508",
        claim="4.4",
        replaces="model.generation.generate",
        replacement=_finitely_forbidden,
    ),
    fault(
        name="temperature-ignored",
        summary="Tokens are drawn at temperature 1, whichever was asked for.",
        source="huggingface/transformers#13899",
        claim="4.4",
        replaces="model.generation.sampler",
        replacement=_temperature_ignored,
    ),
    fault(
        name="end-told-as-requested",
        summary="An end token that comes last is told as the requested number.",
        source="pegainfer-project/pegainfer#238",
        claim="4.4",
        replaces="model.generation.generate",
        replacement=_end_told_as_requested,
    ),
)
