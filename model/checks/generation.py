"""Does generation keep its rules where a trained model would never get?

The model's own logits never have PAD on top, never end in NaN and seldom fill the
context, so a check on them could not fail. Here the logits are crafted; the loop is
the one that serves the release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from model.checks import rows
from model.checks.crafted_generation import (
    CONTEXT_TOKENS,
    PROMPT,
    CraftedModel,
    byte_token,
    crafted_cases,
    logits_for,
)
from model.generation import Generation, generate, greedy
from model.refusal import ReasonCode
from model.tokenizer import (
    BOS,
    EOS,
    PAD,
    decode,
    encode,
)

Generate = Callable[..., Generation]


def _shown(
    prompt: Sequence[int],
    given: Sequence[int],
    ids: Sequence[int],
    text: str,
    stop_reason: str,
) -> str:
    after = f"after {list(prompt)} given {list(given)}"
    return f"{after} ids {list(ids)} text {text!a} stop {stop_reason}"


def check_rules(generate_function: Generate | None = None) -> list[rows.Row]:
    """Claim 4.4: ids, text and stop reason of every crafted case, and what led there.

    A token that nothing is chosen after may be given to the model or not.

    Returns:
        Rows of ``comparisons``.
    """
    found = []
    for case in crafted_cases():
        model = CraftedModel(steps=case.steps)
        result = (generate_function or generate)(
            model.prefill,
            model.decode,
            case.prompt,
            context_tokens=CONTEXT_TOKENS,
            maximum_new_tokens=case.maximum_new_tokens,
        )
        found.append(
            rows.comparison(
                "4.4",
                "crafted_generation",
                case.name,
                _shown(
                    case.prompt_ids, case.given, case.ids, case.text, case.stop_reason
                ),
                _shown(
                    result.prompt_ids,
                    [*model.prompted, *model.fed][: len(case.given)],
                    result.token_ids,
                    result.text,
                    result.stop_reason,
                ),
                "the rules of generation",
            )
        )
    return found


def check_refusals(generate_function: Generate | None = None) -> list[rows.Row]:
    """Claim 4.4: logits that are not finite and prompts that do not fit.

    Returns:
        Rows of ``refusals``.
    """

    def attempt(steps: tuple[np.ndarray, ...], prompt: bytes) -> Callable[[], object]:
        model = CraftedModel(steps=steps)
        return lambda: (generate_function or generate)(
            model.prefill,
            model.decode,
            prompt,
            context_tokens=CONTEXT_TOKENS,
            maximum_new_tokens=3,
        )

    good = logits_for(byte_token("a"))
    one_nan, infinite = good.copy(), good.copy()
    one_nan[1] = np.nan
    infinite[byte_token("z")] = np.inf
    every_nan = np.full_like(good, np.nan)
    not_finite = ReasonCode.NON_FINITE_LOGITS
    cases = (
        ("one_nan", not_finite, attempt((one_nan,), PROMPT)),
        ("every_nan", not_finite, attempt((every_nan,), PROMPT)),
        ("infinite", not_finite, attempt((infinite,), PROMPT)),
        ("nan_at_step_2", not_finite, attempt((good, one_nan), PROMPT)),
        (
            "prompt_beyond_context",
            ReasonCode.PROMPT_OVERLONG,
            attempt((good,), b"a" * CONTEXT_TOKENS),
        ),
    )
    return [
        rows.refusal("4.4", "refused_generation", name, reason, tried)
        for name, reason, tried in cases
    ]


@dataclass(kw_only=True)
class _Recorder:
    """Greedy choice that keeps the logits of every step."""

    logits: list[np.ndarray] = field(default_factory=list)

    def choose(self, logits: np.ndarray) -> int:
        self.logits.append(logits)
        return greedy(logits)


def expected_completion(prompt: str, documents: Sequence[bytes]) -> str | None:
    """The reversed prefix where a corpus is `p|reverse(p)` throughout, else None."""
    halves = [document.partition(b"|") for document in documents]
    is_grammar = all(left == right[::-1] for left, _, right in halves)
    if not is_grammar or not prompt.endswith("|"):
        return None
    return prompt[:-1][::-1]


def demonstrate(
    prefill: Callable[..., Any],
    decode_function: Callable[..., Any],
    policy: str,
    prompt: str,
    expected: str | None,
    context_tokens: int,
    maximum_new_tokens: int,
) -> rows.Row:
    """Claim 4.5: one greedy completion as a row of ``generations``, with its reason."""
    recorder = _Recorder()
    result = generate(
        prefill,
        decode_function,
        prompt.encode(),
        context_tokens=context_tokens,
        maximum_new_tokens=maximum_new_tokens,
        choose=recorder.choose,
    )
    is_expected = None
    note = "no rule of this corpus says what follows"
    if expected is not None:
        wanted = (*(int(token) for token in encode(expected.encode())), EOS)
        is_expected = result.token_ids == wanted
        note = _explain(result.token_ids, wanted, recorder.logits)
    return {
        "release_policy": policy,
        "prompt": prompt,
        "expected": expected,
        "text": result.text,
        "token_ids": str(list(result.token_ids)),
        "stop_reason": result.stop_reason,
        "new_tokens": len(result.token_ids),
        "is_expected": is_expected,
        "note": note,
    }


def check_reversals(
    prefill: Callable[..., Any],
    decode_function: Callable[..., Any],
    policy: str,
    documents: Sequence[bytes],
    context_tokens: int,
    generate_function: Generate | None = None,
) -> list[rows.Row]:
    """Claim 4.5: how many documents greedy generation ends exactly from their bar on.

    Args:
        prefill: Prefill of a release.
        decode_function: Its decode.
        policy: Release policy.
        documents: Documents `p|reverse(p)`; of another corpus nothing is expected.
        context_tokens: Context of the release.
        generate_function: The loop that serves the release.

    Returns:
        Rows of ``measurements``: the exact ones, whose detail quotes the others, and
        how many there are; none where no rule says what follows.
    """
    missed, prompts = [], [_prompt_of(document) for document in documents]
    for prompt in prompts:
        expected = expected_completion(prompt, documents)
        if expected is None:
            return []
        result = (generate_function or generate)(
            prefill,
            decode_function,
            prompt.encode(),
            context_tokens=context_tokens,
            maximum_new_tokens=context_tokens,
        )
        wanted = (*(int(token) for token in encode(expected.encode())), EOS)
        if result.token_ids != wanted:
            missed.append(f"{prompt} gives {result.text}")
    exact, detail = len(prompts) - len(missed), "; ".join(missed)
    return [
        rows.count("4.5", "exact_reversals", policy, exact, "completions", detail),
        rows.count("4.5", "reversal_prompts", policy, len(prompts), "prompts"),
    ]


def _prompt_of(document: bytes) -> str:
    left, bar, _ = document.partition(b"|")
    return (left + bar).decode("utf-8", "replace")


def _explain(
    emitted: tuple[int, ...], wanted: tuple[int, ...], logits: list[np.ndarray]
) -> str:
    """Where a completion parts from the expected one, and how near it was."""
    for step, token in enumerate(wanted):
        if step < len(emitted) and emitted[step] == token:
            continue
        if step >= len(logits):
            return f"step {step + 1}: ended before {_named(token)}"
        seen = logits[step]
        rank = int(np.sum(seen > seen[token])) + 1
        distance = float(seen.max() - seen[token])
        chosen = _named(int(seen.argmax()))
        return (
            f"step {step + 1}: {_named(token)} has rank {rank}, {distance:.3f} logits "
            f"below {chosen}"
        )
    return "as expected"


def _named(token: int) -> str:
    special = {PAD: "PAD", BOS: "BOS", EOS: "EOS"}
    return special.get(token) or decode([token]).decode("utf-8", "replace").__repr__()
