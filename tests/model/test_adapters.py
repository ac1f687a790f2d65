"""Between a user's signature and the built-in one: what reaches a user's function."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from model import array_adapters, text_adapters
from model.config import POLICIES, ModelConfig, Policy
from model.guarded import Guarded
from model.refusal import ReasonCode, Refused
from model.system import BY_NAME
from model.tokenizer import BOS, EOS, PAD
from model.watch import Watch

WATCH = Watch(60.0, lambda refused: None)
MODEL = ModelConfig()
PARAMETERS = {"wte.weight": jnp.zeros((259, 24))}


def _guarded(name: str, call: Any) -> Guarded:
    return Guarded(BY_NAME[name], call, Path("mine.py"), WATCH)


def _original(*arguments: Any, **options: Any) -> str:
    return "built-in"


def _zeros(parameters: Any, tokens: Any, model: Any) -> Any:
    return jnp.zeros((*tokens.shape, model.vocabulary_tokens))


def test_logits_with_an_option_that_nobody_wrote_are_the_built_in_ones() -> None:
    """And those without are the user's."""
    logits = array_adapters.logits(_guarded("logits", _zeros))(_original)
    tokens = jnp.zeros((2, 3), jnp.int32)

    assert logits(PARAMETERS, tokens, MODEL).shape == (2, 3, 259)
    assert logits(PARAMETERS, tokens, MODEL, policy="fp32").shape == (2, 3, 259)
    for option in ({"policy": "bf16"}, {"stored": abs}, {"dropout_key": 1}):
        assert logits(PARAMETERS, tokens, MODEL, **option) == "built-in"


def test_logits_with_an_option_that_somebody_wrote_are_theirs() -> None:
    """A policy of an experiment stays built-in all the same."""
    seen = []

    def own(parameters: Any, tokens: Any, model: Any, *, policy: str = "fp32") -> Any:
        seen.append(policy)
        return _zeros(parameters, tokens, model)

    logits = array_adapters.logits(_guarded("logits", own))(_original)
    tokens = jnp.zeros((2, 3), jnp.int32)
    logits(PARAMETERS, tokens, MODEL, policy="w8a8")

    assert logits(PARAMETERS, tokens, MODEL, policy="int4") == "built-in"
    assert seen == ["w8a8"]


@pytest.mark.parametrize("name", ["token_losses", "loss_sum_and_count"])
def test_malformed_targets_never_reach_a_users_loss(name: str) -> None:
    """They are refused before, with the code of the claim that asks for it."""
    called = []
    adapter = getattr(array_adapters, name)
    losses = adapter(_guarded(name, lambda *given: called.append(given)))(_original)
    with pytest.raises(Refused) as refused:
        losses(jnp.zeros((2, 3, 259)), jnp.zeros((2, 3), jnp.float32))

    assert refused.value.code is ReasonCode.TARGETS_DTYPE
    assert called == []


def test_policies_of_experiments_stay_built_in() -> None:
    """A user's file owes the three policies of a release, and no others."""
    refuse = _guarded("dense", lambda *given: None)
    x = jnp.zeros((1, 2))
    assert array_adapters.dense(refuse)(_original)(x, x, None, "int4") == "built-in"
    prefill = array_adapters.prefill(_guarded("prefill", lambda *given: None))
    other = Policy(name="other", dense="fp16", cache="fp32")
    given = PARAMETERS, jnp.zeros((1, 12), jnp.int32), jnp.ones(1, jnp.int32), MODEL

    assert prefill(_original)(*given, other) == "built-in"
    with pytest.raises(Refused, match="`prefill` returns None"):
        prefill(_original)(*given, POLICIES["fp32"])


def _generate(reason: str) -> Any:
    def generate(
        prefill: Any,
        decode: Any,
        prompt: bytes,
        context_tokens: int,
        maximum_new_tokens: int,
        choose: Any,
    ) -> tuple[list[Any], str]:
        logits, *_ = prefill(np.full((1, context_tokens), PAD), np.array([1]))
        return [choose(np.asarray(logits)[0])], reason

    return text_adapters.generate(_guarded("generate", generate))(_original)


def _prefill(tokens: Any, length: Any) -> tuple[Any, ...]:
    return (np.eye(1, 259, EOS, dtype=np.float32),)


def test_generated_ids_are_put_together_with_their_text() -> None:
    """The most likely token is chosen where the caller says nothing else."""
    made = _generate("end_of_sequence")(
        _prefill, None, b"ab", context_tokens=12, maximum_new_tokens=3
    )

    assert made.prompt_ids == (BOS, 100, 101)
    assert (made.token_ids, made.text) == ((EOS,), "")
    assert made.stop_reason == "end_of_sequence"


def test_a_reason_that_nobody_knows_is_told() -> None:
    """The three reasons are in the sentence."""
    with pytest.raises(Refused, match=r"gives 'stop' as the reason .* context_end"):
        _generate("stop")(_prefill, None, b"", context_tokens=12, maximum_new_tokens=3)


def test_a_users_file_of_a_checkpoint_says_which_arrays_it_holds() -> None:
    """Names beyond those that are wanted are told and their arrays left out."""
    held = {"a": [1.0], "extra": [2.0]}
    restore = _guarded("restore", lambda data: held)
    unpack = array_adapters.restore(restore)(_original)
    names, arrays, refusals = unpack(b"", {"a", "missing"})

    assert names == {"a", "extra"}
    assert list(arrays) == ["a"]
    assert refusals == []


def test_logits_that_are_not_finite_are_refused_before_anybody_chooses() -> None:
    """With the code of the claim that asks for it, whatever a user's loop does."""

    def broken(tokens: Any, length: Any) -> tuple[Any, ...]:
        return (np.full((1, 259), np.nan, np.float32),)

    with pytest.raises(Refused) as refused:
        _generate("end_of_sequence")(
            broken, None, b"", context_tokens=12, maximum_new_tokens=3
        )
    assert refused.value.code is ReasonCode.NON_FINITE_LOGITS
