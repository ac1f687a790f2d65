"""Faults of the objective: what a loss is a loss of, and what it is divided by."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from model.faults import INITIALIZATIONS, Fault
from model.tokenizer import BYTE_OFFSET, EOS, PAD

GROUP = "objective"
fault = partial(
    Fault,
    group=GROUP,
    stages=("evaluate_heldout",),
    left_out=(INITIALIZATIONS,),
)

SumAndCount = tuple[jax.Array, jax.Array]
Objective = Callable[[jax.Array, jax.Array], SumAndCount]


def _targets_are_inputs(original: Callable[..., SumAndCount]) -> Any:
    def summed_loss(
        parameters: Any, tokens: jax.Array, key: Any, model: Any
    ) -> SumAndCount:
        # The last token has no place among the inputs; the first stands there twice.
        doubled = jnp.concatenate([tokens[:, :1], tokens[:, :-1]], axis=1)
        from model.objective import loss_sum_and_count
        from model.transformer import logits

        predicted = logits(parameters, tokens[:, :-1], model, dropout_key=key)
        return loss_sum_and_count(predicted, doubled[:, 1:])

    return summed_loss


def _shifted_twice(original: Callable[..., jax.Array]) -> Any:
    def token_losses(logits: jax.Array, targets: jax.Array) -> jax.Array:
        nothing = jnp.full_like(targets[:, :1], PAD)
        return original(logits, jnp.concatenate([targets[:, 1:], nothing], axis=1))

    return token_losses


def _kept_from_zero(original: Callable[..., jax.Array]) -> Any:
    def token_losses(logits: jax.Array, targets: jax.Array) -> jax.Array:
        likely = jax.nn.softmax(logits, axis=-1) + jnp.float32(1e-9)
        chosen = jnp.take_along_axis(likely, targets[..., None], axis=-1)[..., 0]
        return jnp.where(targets != PAD, -jnp.log(chosen), jnp.float32(0.0))

    return token_losses


def _maximum_not_taken(original: Callable[..., jax.Array]) -> Any:
    def token_losses(logits: jax.Array, targets: jax.Array) -> jax.Array:
        total = jnp.log(jnp.sum(jnp.exp(logits), axis=-1))
        chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return jnp.where(targets != PAD, total - chosen, jnp.float32(0.0))

    return token_losses


def _padding_counts(original: Objective) -> Objective:
    def loss_sum_and_count(logits: jax.Array, targets: jax.Array) -> SumAndCount:
        known = jax.nn.log_softmax(logits, axis=-1)
        chosen = jnp.take_along_axis(known, targets[..., None], axis=-1)
        return -jnp.sum(chosen), jnp.int32(targets.size)

    return loss_sum_and_count


def _ends_do_not_count(original: Objective) -> Objective:
    def loss_sum_and_count(logits: jax.Array, targets: jax.Array) -> SumAndCount:
        return original(logits, jnp.where(targets == EOS, PAD, targets))

    return loss_sum_and_count


def _divided_by(count: Callable[[jax.Array], int]) -> Callable[[Objective], Objective]:
    """Returns what divides by another count than that of valid targets."""

    def replacement(original: Objective) -> Objective:
        def loss_sum_and_count(logits: jax.Array, targets: jax.Array) -> SumAndCount:
            return original(logits, targets)[0], jnp.int32(count(targets))

        return loss_sum_and_count

    return replacement


def _mean_of_means(original: Callable[..., Any]) -> Any:
    def mean_and_parts(parameters: Any, tokens: jax.Array, *rest: Any) -> Any:
        key, model = rest
        halves = jnp.array_split(tokens, 2)
        keys = [None, None] if key is None or key.ndim == 0 else jnp.array_split(key, 2)
        found = [
            original(parameters, half, key if own is None else own, model)
            for half, own in zip(halves, keys, strict=True)
        ]
        means, parts = zip(*found, strict=True)
        sums, counts = zip(*parts, strict=True)
        return sum(means) / jnp.float32(2), (sum(sums), sum(counts))

    return mean_and_parts


def _normalised_twice(original: Callable[..., jax.Array]) -> Any:
    return lambda total, count: original(total, count) / jnp.float32(2)


def _gradients_clipped(original: Callable[..., Any]) -> Any:
    def finish_update(state: Any, loss: Any, *rest: Any) -> Any:
        loss_sum, count, gradients, optimizer = rest
        squares = [jnp.sum(jnp.square(gradient)) for gradient in gradients.values()]
        norm = jnp.sqrt(jnp.sum(jnp.stack(squares)))
        share = jnp.minimum(jnp.float32(0.2) / norm, jnp.float32(1))
        clipped = {name: gradient * share for name, gradient in gradients.items()}
        return original(state, loss, loss_sum, count, clipped, optimizer)

    return finish_update


def _loss_after_update(original: Callable[..., Any]) -> Any:
    def training_update(state: Any, tokens: Any, key: Any, *rest: Any) -> Any:
        from model.training import mean_loss

        after, outcome = original(state, tokens, key, *rest)
        late = jax.jit(mean_loss, static_argnums=3)
        loss, _ = late(after.parameters, tokens, key, rest[0])
        return after, outcome._replace(loss=loss)

    return training_update


def _any_shape(original: Callable[..., dict[str, Any]]) -> Any:
    def wrong_form(targets: Any, shape: tuple[int, ...]) -> dict[str, Any]:
        wrong = original(targets, shape)
        wrong.pop("shape", None)
        return wrong

    return wrong_form


def _any_id(original: Callable[..., None]) -> Any:
    def check_targets(targets: np.ndarray, shape: Any, vocabulary_tokens: int) -> None:
        original(targets, shape, vocabulary_tokens=2**31)

    return check_targets


def _special_rows_frozen(original: Callable[..., jax.Array]) -> Any:
    def embed(parameters: Any, tokens: jax.Array, positions: jax.Array) -> jax.Array:
        table = parameters["wte.weight"]
        special, rest = table[:BYTE_OFFSET], table[BYTE_OFFSET:]
        frozen = jnp.concatenate([jax.lax.stop_gradient(special), rest])
        return original({**parameters, "wte.weight": frozen}, tokens, positions)

    return embed


FAULTS = (
    fault(
        name="target-shift-zero",
        summary="The target of a position is its own input, not the next token.",
        source="Project-MONAI/GenerativeModels#314",
        claim="1.10",
        replaces="model.training.summed_loss",
        replacement=_targets_are_inputs,
    ),
    fault(
        name="target-double-shift",
        summary="Targets that are shifted already are shifted again in the loss.",
        source="huggingface/transformers#37830",
        claim="1.9",
        replaces="model.objective.token_losses",
        replacement=_shifted_twice,
    ),
    fault(
        name="probability-kept-from-zero",
        summary="The loss is the logarithm of a probability plus 1e-9.",
        source="MarvinTeichmann/tensorflow-fcn#18",
        claim="1.9",
        replaces="model.objective.token_losses",
        replacement=_kept_from_zero,
    ),
    fault(
        name="logsumexp-without-maximum",
        summary="Logits are exponentiated as they are, which a large one overflows.",
        source="lzx1413/PytorchSSD#22",
        claim="1.9",
        replaces="model.objective.token_losses",
        replacement=_maximum_not_taken,
    ),
    fault(
        name="pad-counted-in-loss",
        summary="Padding is predicted and counted like any other target.",
        source="ml-explore/mlx-lm#1855",
        claim="1.10",
        replaces="model.objective.loss_sum_and_count",
        replacement=_padding_counts,
    ),
    fault(
        name="eos-excluded-by-pad-value",
        summary="The end token counts as padding and is never learned.",
        source="huggingface/trl#6357",
        claim="1.10",
        replaces="model.objective.loss_sum_and_count",
        replacement=_ends_do_not_count,
    ),
    fault(
        name="denominator-padded-length",
        summary="The summed loss is divided by all positions, padded ones included.",
        source="d2l-ai/d2l-en#2076",
        claim="1.10",
        replaces="model.objective.loss_sum_and_count",
        replacement=_divided_by(lambda targets: targets.size),
    ),
    fault(
        name="denominator-batch-size",
        summary="The summed loss is divided by the documents of the batch.",
        source="OpenNMT/OpenNMT-py#526",
        claim="1.10",
        replaces="model.objective.loss_sum_and_count",
        replacement=_divided_by(len),
    ),
    fault(
        name="microbatch-mean-of-means",
        summary="The loss is the mean of the means of two halves of the batch.",
        source="huggingface/transformers#34191",
        claim="1.10",
        replaces="model.training._mean_and_parts",
        replacement=_mean_of_means,
    ),
    fault(
        name="microbatch-normalised-twice",
        summary="The loss is divided by its targets and by the number of parts again.",
        source="unslothai/unsloth-zoo#1023",
        claim="1.10",
        replaces="model.training.mean_of",
        replacement=_normalised_twice,
    ),
    fault(
        name="gradient-clipped-unasked",
        summary="Gradients are clipped to a norm of 0.2 that no setting names.",
        source="huggingface/transformers#1563",
        claim="1.10",
        stages=("train_model",),
        replaces="model.training.finish_update",
        replacement=_gradients_clipped,
    ),
    fault(
        name="loss-recorded-after-update",
        summary="The recorded loss is that of the parameters after the update.",
        source="none known; the fixture's own rule",
        claim="2.9",
        stages=("train_model",),
        replaces="model.training.training_update",
        replacement=_loss_after_update,
    ),
    fault(
        name="malformed-targets-broadcast",
        summary="Targets of another shape pass and are broadcast.",
        source="none known; the fixture's own rule",
        claim="1.11",
        replaces="model.objective._wrong_form",
        replacement=_any_shape,
    ),
    fault(
        name="out-of-vocabulary-id-accepted",
        summary="An id beyond the vocabulary passes and reads its last row.",
        source="jax-ml/jax#34257",
        claim="1.11",
        replaces="model.objective.check_targets",
        replacement=_any_id,
    ),
    fault(
        name="special-tokens-not-trained",
        summary="The embeddings of PAD, BOS and EOS get no gradient.",
        source="feizc/Visual-LLaMA#2",
        claim="1.10",
        replaces="model.transformer.embed",
        replacement=_special_rows_frozen,
    ),
)
