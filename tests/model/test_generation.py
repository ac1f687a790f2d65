"""The rules of generation, and loops that break them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from model.checks import generation as checks
from model.checks import sampling
from model.checks.recomputed import check_recomputed
from model.generation import Generation, allowed_logits, generate, greedy, sampler
from model.refusal import ReasonCode, Refused
from model.tokenizer import BOS, EOS, PAD, decode_text, encode


def _unequal(generate_function: Callable[..., Generation]) -> set[str]:
    found = checks.check_rules(generate_function)
    return {row["case_name"] for row in found if row["expected"] != row["measured"]}


def test_every_crafted_case_comes_out_as_the_rules_say() -> None:
    assert _unequal(generate) == set()
    assert len(checks.crafted_cases()) == 17


def test_logits_that_are_not_finite_and_long_prompts_are_refused() -> None:
    for row in checks.check_refusals():
        assert row["received_reason"] == row["expected_reason"], row


def _choosing(choose: Callable[[np.ndarray], int]) -> Callable[..., Generation]:
    def faulty(prefill: Any, decode: Any, prompt: bytes, **bounds: Any) -> Generation:
        return generate(prefill, decode, prompt, **{**bounds, "choose": choose})

    return faulty


def _with_forbidden(logits: np.ndarray) -> int:
    return PAD if np.isinf(logits[PAD]) else greedy(logits)


def _highest_id_of_a_tie(logits: np.ndarray) -> int:
    return int(len(logits) - 1 - np.argmax(logits[::-1]))


def _no_end(prefill: Any, decode: Any, prompt: bytes, **bounds: Any) -> Generation:
    """Goes on after EOS, as a loop without a stop would."""
    result = generate(prefill, decode, prompt, **bounds)
    ids = (*result.token_ids, 100)
    return Generation(
        prompt_ids=result.prompt_ids,
        token_ids=ids,
        text=decode_text(ids),
        stop_reason=result.stop_reason,
    )


def _one_more(prefill: Any, decode: Any, prompt: bytes, **bounds: Any) -> Generation:
    """Believes the context to be one longer, as a missing check would."""
    longer = {**bounds, "context_tokens": bounds["context_tokens"] + 1}
    return generate(prefill, decode, prompt, **longer)


@pytest.mark.parametrize(
    ("fault", "cases"),
    [
        (_choosing(_with_forbidden), {"pad_on_top", "bos_on_top"}),
        (_choosing(_highest_id_of_a_tie), {"tie"}),
        (_no_end, {"eos_at_step_2"}),
        (_one_more, {"context_end", "full_prompt"}),
    ],
)
def test_a_planted_loop_fails_its_cases(
    fault: Callable[..., Generation], cases: set[str]
) -> None:
    assert cases <= _unequal(fault)


def _prefilled(steps: list[int]) -> Callable[..., Any]:
    """A prefill whose most likely next token stands for the length so far."""
    return lambda tokens, length: (checks.logits_for(steps[int(length[0])])[None],)


def test_an_emitted_token_is_the_one_that_a_prefill_would_choose() -> None:
    row = {"prompt": "x", "token_ids": f"[70, 71, {EOS}]"}
    prefill = _prefilled([0, 0, 70, 71, EOS])
    found = check_recomputed(prefill, "fp32", [row], 12)
    assert [row["value_real"] for row in found] == [0.0, None]
    assert [row["value_count"] for row in found] == [None, 3]


@pytest.mark.parametrize(
    ("ids", "below"), [([70, 70], 10.0), ([71, 71], 10.0), ([PAD], None), ([BOS], None)]
)
def test_a_token_that_comes_of_an_old_cache_lies_below(ids, below) -> None:
    row = {"prompt": "x", "token_ids": str(ids)}
    found, _ = check_recomputed(_prefilled([0, 0, 70, 71]), "fp32", [row], 12)
    assert found["value_real"] == below


def test_no_completion_is_no_comparison() -> None:
    assert check_recomputed(_prefilled([]), "fp32", [], 12) == []
    row = {"prompt": "x", "token_ids": "[]"}
    assert check_recomputed(_prefilled([]), "fp32", [row], 12) == []


def test_a_seed_repeats_and_another_differs() -> None:
    logits = np.zeros(259, np.float32)
    model = checks.CraftedModel(steps=(logits,))
    same, distinct = sampling.check_sampling(model.prefill, model.decode, b"ab|", 12)
    assert same["expected"] == same["measured"]
    assert distinct["value_count"] > 1


def test_a_sampler_without_its_seed_is_seen() -> None:
    fresh = iter(range(1000))
    model = checks.CraftedModel(steps=(np.zeros(259, np.float32),))
    same, _ = sampling.check_sampling(
        model.prefill, model.decode, b"ab|", 12, lambda seed: sampler(next(fresh))
    )
    assert same["expected"] != same["measured"]


def test_sampling_follows_the_probabilities_and_never_the_forbidden() -> None:
    logits = allowed_logits(checks.logits_for(PAD, BOS, 50, 51))
    draw = sampler(7)
    drawn = [draw(logits) for _ in range(400)]
    assert PAD not in drawn
    assert BOS not in drawn
    share = np.exp(logits[50]) / np.exp(logits[np.isfinite(logits)]).sum()
    assert abs(drawn.count(50) / 400 - share) < 0.1


def test_decode_is_fed_exactly_the_emitted_tokens_but_the_last() -> None:
    model = checks.CraftedModel(
        steps=(checks.logits_for(70), checks.logits_for(71), checks.logits_for(EOS))
    )
    result = generate(
        model.prefill, model.decode, b"x", context_tokens=12, maximum_new_tokens=9
    )
    assert result.token_ids == (70, 71, EOS)
    assert model.fed == [70, 71]


def test_no_token_is_asked_for_when_none_is_wanted() -> None:
    model = checks.CraftedModel(steps=(checks.logits_for(70),))
    result = generate(
        model.prefill, model.decode, b"x", context_tokens=12, maximum_new_tokens=0
    )
    assert (result.token_ids, result.stop_reason) == ((), "requested_tokens")


def test_a_refusal_of_logits_names_the_token_and_the_value() -> None:
    logits = np.zeros(259, np.float32)
    logits[42] = -np.inf
    with pytest.raises(Refused, match="-inf for token 42") as refused:
        allowed_logits(logits)
    assert refused.value.code == ReasonCode.NON_FINITE_LOGITS


def test_a_demonstration_says_where_it_parts() -> None:
    documents = [b"ab|ba", b"cd|dc"]
    expected = checks.expected_completion("ab|", documents)
    model = checks.CraftedModel(
        steps=(checks.logits_for(ord("b") + 3), checks.logits_for(EOS, ord("a") + 3))
    )
    row = checks.demonstrate(
        model.prefill, model.decode, "fp32", "ab|", expected, 12, 6
    )
    assert (row["expected"], row["text"], row["is_expected"]) == ("ba", "b", False)
    assert row["note"] == "step 2: 'a' has rank 2, 1.000 logits below EOS"
    assert checks.expected_completion("ab|", [b"prose"]) is None


def test_exact_reversals_are_counted_and_the_others_are_quoted() -> None:
    """A model that always writes `ba` and ends is right for `ab|` alone."""
    model = checks.CraftedModel(
        steps=[checks.logits_for(token) for token in (*encode(b"ba"), EOS)]
    )
    counted = partial(checks.check_reversals, model.prefill, model.decode, "fp32")
    exact, prompts = counted([b"ab|ba", b"cd|dc", b"abc|cba"], 12)
    assert (exact["measure"], exact["value_count"]) == ("exact_reversals", 1)
    assert exact["detail"] == "cd| gives ba; abc| gives ba"
    assert (prompts["measure"], prompts["value_count"]) == ("reversal_prompts", 3)
    assert counted([b"prose", b"ab|ba"], 12) == []
