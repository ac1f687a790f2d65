"""Faults of dropout: keys that repeat, masks that repeat, and when it is on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from model.faults import INITIALIZATIONS, Fault

GROUP = "dropout"
fault = partial(Fault, group=GROUP, stages=("train_model",))


def _on_in_evaluation(original: Callable[..., jax.Array]) -> Any:
    def logits(*arguments: Any, dropout_key: Any = None, **named: Any) -> jax.Array:
        key = jax.random.key(0) if dropout_key is None else dropout_key
        return original(*arguments, dropout_key=key, **named)

    return logits


def _off_in_training(original: Callable[..., Any]) -> Any:
    return lambda parameters, tokens, key, model: original(
        parameters, tokens, None, model
    )


def _constant_key(original: Callable[[int, int], jax.Array]) -> Any:
    return lambda dropout_seed, update: original(dropout_seed, 1)


def _not_rescaled(original: Callable[..., jax.Array]) -> Any:
    def drop(x: jax.Array, key: Any, place: int, rate: float) -> jax.Array:
        thinned = original(x, key, place, rate)
        return thinned if key is None else thinned * jnp.float32(1.0 - rate)

    return drop


def _one_mask(original: Callable[..., jax.Array]) -> Any:
    return lambda x, key, place, rate: original(x, key, 0, rate)


def _key_restarted(original: Callable[..., Any]) -> Any:
    def run_updates(state: Any, progress: Any, *rest: Any) -> Any:
        from model.training import dropout_key, training_update

        tokens, model, train, final_update = rest
        restored = progress.step

        def make_update(state: Any, rows: Any, batch: Any, key: Any) -> Any:
            number = int(state.adam.step) + 1 - restored
            again = dropout_key(train.dropout_seed, number)
            return training_update(
                state, jnp.asarray(batch), again, model, train.optimizer
            )

        return original(
            state, progress, tokens, model, train, final_update, make_update
        )

    return run_updates


def _other_seed_when_restored(original: Callable[..., Any]) -> Any:
    def run_updates(state: Any, progress: Any, *rest: Any) -> Any:
        tokens, model, train, final_update = rest
        if progress.step:
            train = replace(train, dropout_seed=train.dropout_seed + 1)
        return original(state, progress, tokens, model, train, final_update)

    return run_updates


def _redrawn_in_backward(original: Callable[..., jax.Array]) -> Any:
    def drop(x: jax.Array, key: Any, place: int, rate: float) -> jax.Array:
        if key is None:
            return x
        thin = jax.custom_vjp(lambda x: original(x, key, place, rate))
        # A place that no forward pass has stands for a moved random state.
        thin.defvjp(
            lambda x: (original(x, key, place, rate), None),
            lambda _, above: (original(above, key, place + 100, rate),),
        )
        return thin(x)

    return drop


def _shared_by_positions(original: Callable[..., jax.Array]) -> Any:
    def drop(x: jax.Array, key: Any, place: int, rate: float) -> jax.Array:
        if key is None or x.ndim < 3:
            return original(x, key, place, rate)
        factors = original(jnp.ones_like(x), key, place, rate)
        return x * jnp.broadcast_to(factors[:, :1], x.shape)

    return drop


FAULTS = (
    fault(
        name="dropout-active-in-evaluation",
        summary="Logits are thinned where no key is given, as in evaluation.",
        source="asyml/texar-pytorch#311",
        claim="2.6",
        stages=("evaluate_heldout",),
        left_out=(INITIALIZATIONS,),
        replaces="model.transformer.logits",
        replacement=_on_in_evaluation,
    ),
    fault(
        name="dropout-off-in-training",
        summary="Training goes on in evaluation mode, without dropout.",
        source="pfnet/pytorch-pfn-extras#688",
        claim="2.9",
        replaces="model.training.summed_loss",
        replacement=_off_in_training,
    ),
    fault(
        name="dropout-key-constant",
        summary="Every update draws the masks of the first one.",
        source="jax-ml/jax#170",
        claim="2.1",
        replaces="model.training.dropout_key",
        replacement=_constant_key,
    ),
    fault(
        name="dropout-not-rescaled",
        summary="What is kept is not divided by the share that is kept.",
        source="elixir-nx/axon#423",
        claim="2.9",
        replaces="model.transformer.drop",
        replacement=_not_rescaled,
    ),
    fault(
        name="dropout-mask-shared-by-places",
        summary="Every place of the model draws one and the same mask.",
        source="google/flax#2631",
        claim="2.9",
        replaces="model.transformer.drop",
        replacement=_one_mask,
    ),
    fault(
        name="dropout-key-restarted-at-resume",
        summary="A restored training draws its masks from the first update's on.",
        source="huggingface/transformers#17032",
        claim="2.1",
        stages=("resume_training",),
        replaces="model.training_loop.run_updates",
        replacement=_key_restarted,
    ),
    fault(
        name="seed-changed-on-resume",
        summary="A restored training goes on with another dropout seed.",
        source="vllm-project/speculators#1027",
        claim="2.1",
        # In the drill of a restore it is an alarm where nothing was planted.
        stages=("resume_training", "drill_recovery"),
        replaces="model.training_loop.run_updates",
        replacement=_other_seed_when_restored,
    ),
    fault(
        name="dropout-redrawn-in-backward",
        summary="The backward pass draws masks of its own, not those of the forward.",
        source="openai/guided-diffusion#167",
        claim="1.10",
        replaces="model.transformer.drop",
        replacement=_redrawn_in_backward,
    ),
    fault(
        name="dropout-mask-shared-by-positions",
        summary="All positions of a document drop the same channels.",
        source="tensorflow/tensorflow#2789",
        claim="2.9",
        replaces="model.transformer.drop",
        replacement=_shared_by_positions,
    ),
)
