"""Built-in signatures over a user's functions on arrays.

Each adapter takes a watched function of a user's file and returns what
`model.replaced.replace` wants: a function from the original to its replacement. Where a
call asks for something that the user's function does not take, the original answers.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from model.adam import AdamState
from model.cache import Cache
from model.config import POLICIES
from model.evaluation import TokenEvaluation
from model.guarded import Guarded
from model.objective import check_documents, check_form
from model.schedule import has_weight_decay, learning_rate, weight_decay

Replacement = Callable[[Any], Any]
DENSE = frozenset(policy.dense for policy in POLICIES.values())
CACHES = frozenset(policy.cache for policy in POLICIES.values())


def initial_parameters(user: Guarded) -> Replacement:
    """Adapts `initial_parameters(model, seed)`."""
    return lambda original: lambda model, seed: _on_device(user(model, seed))


def logits(user: Guarded) -> Replacement:
    """Adapts `logits(parameters, tokens, model, *, dropout_key, policy, stored)`."""

    def replacement(original: Any) -> Any:
        def logits(
            parameters: Any,
            tokens: Any,
            model: Any,
            *,
            policy: str = "fp32",
            stored: Any = None,
            dropout_key: Any = None,
        ) -> Any:
            asked: dict[str, Any] = {} if policy == "fp32" else {"policy": policy}
            asked |= {} if stored is None else {"stored": stored}
            asked |= {} if dropout_key is None else {"dropout_key": dropout_key}
            if asked.keys() <= user.options and policy in DENSE:
                return user(parameters, tokens, model, **asked)
            return original(parameters, tokens, model, **asked)

        return logits

    return replacement


def attention_weights(user: Guarded) -> Replacement:
    """Adapts `attention_weights(parameters, tokens, model)`."""
    return lambda original: (
        lambda parameters, tokens, model: user(parameters, tokens, model)
    )


def token_losses(user: Guarded) -> Replacement:
    """Adapts `token_losses(logits, targets)`; malformed targets do not reach it."""
    return _of_targets(user)


def loss_sum_and_count(user: Guarded) -> Replacement:
    """Adapts `loss_sum_and_count(logits, targets)`, as `token_losses`."""
    return _of_targets(user)


def _of_targets(user: Guarded) -> Replacement:
    def replacement(original: Any) -> Any:
        def of_targets(logits: Any, targets: Any) -> Any:
            check_form(targets, logits.shape[:-1])
            return user(logits, targets)

        return of_targets

    return replacement


def update(user: Guarded) -> Replacement:
    """Adapts `update(parameters, gradients, moments..., step, settings)`."""

    def replacement(original: Any) -> Any:
        def adam_update(
            parameters: Any, gradients: Any, state: AdamState, optimizer: Any
        ) -> tuple[Any, AdamState]:
            step = state.step + jnp.int32(1)
            decay = weight_decay(step, optimizer)
            settings = SimpleNamespace(
                beta1=optimizer.beta1,
                beta2=optimizer.beta2,
                epsilon=optimizer.epsilon,
                learning_rate=learning_rate(step, optimizer),
                weight_decay=decay if has_weight_decay(optimizer) else jnp.float32(0.0),
            )
            moved, first, second = user(
                parameters,
                gradients,
                state.first_moment,
                state.second_moment,
                step,
                settings,
            )
            return moved, AdamState(first, second, step)

        return adam_update

    return replacement


def save(user: Guarded) -> Replacement:
    """Adapts `save(arrays)`."""
    return lambda original: (
        lambda arrays: user({name: arrays[name] for name in sorted(arrays)})
    )


def restore(user: Guarded) -> Replacement:
    """Adapts `restore(data)`; what is owed of the arrays is checked by the caller."""

    def replacement(original: Any) -> Any:
        def unpack_arrays(content: bytes, wanted: set[str]) -> Any:
            held = {name: np.asarray(array) for name, array in user(content).items()}
            known = {name: held[name] for name in sorted(held.keys() & wanted)}
            return set(held), known, []

        return unpack_arrays

    return replacement


def evaluate(user: Guarded) -> Replacement:
    """Adapts `evaluate(parameters, tokens, model, batch_documents)`."""

    def replacement(original: Any) -> Any:
        def evaluate_tokens(
            parameters: Any,
            tokens: Any,
            model: Any,
            batch_documents: int,
            policy: str = "fp32",
        ) -> TokenEvaluation:
            if policy != "fp32":
                found: TokenEvaluation = original(
                    parameters, tokens, model, batch_documents, policy
                )
                return found
            check_documents(tokens, model.vocabulary_tokens, model.context_tokens)
            given = parameters, tokens, model, batch_documents
            return TokenEvaluation(*(np.asarray(each) for each in user(*given)))

        return evaluate_tokens

    return replacement


def quantize(user: Guarded) -> Replacement:
    """Adapts `quantize(vectors, cache_policy)`."""

    def replacement(original: Any) -> Any:
        def store(vectors: Any, cache_policy: str) -> Any:
            function = user if cache_policy in CACHES else original
            return function(vectors, cache_policy)

        return store

    return replacement


def dequantize(user: Guarded) -> Replacement:
    """Adapts `dequantize(codes, scales)`."""
    return lambda original: lambda codes, scales: user(codes, scales)


def dense(user: Guarded) -> Replacement:
    """Adapts `dense(x, weight, bias, policy)` for the policies of releases."""

    def replacement(original: Any) -> Any:
        def dense(x: Any, weight: Any, bias: Any, policy: str) -> Any:
            function = user if policy in DENSE else original
            return function(x, weight, bias, policy)

        return dense

    return replacement


def prefill(user: Guarded) -> Replacement:
    """Adapts `prefill(parameters, tokens, length, model, policy)`."""
    return _cached(user)


def decode_token(user: Guarded) -> Replacement:
    """Adapts `decode_token(parameters, token, cache, model, policy)`."""
    return _cached(user)


def _cached(user: Guarded) -> Replacement:
    def replacement(original: Any) -> Any:
        def with_vectors(
            parameters: Any, tokens: Any, state: Any, model: Any, policy: Any
        ) -> Any:
            if policy.dense not in DENSE or policy.cache not in CACHES:
                return original(parameters, tokens, state, model, policy)
            found, cache, keys, values = user(parameters, tokens, state, model, policy)
            return found, Cache(*cache), (keys, values)

        return with_vectors

    return replacement


def _on_device(parameters: dict[str, Any]) -> dict[str, jax.Array]:
    return {name: jnp.asarray(array) for name, array in parameters.items()}
