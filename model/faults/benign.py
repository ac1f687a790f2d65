"""Variants that are no defect: every check has to stay silent on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from model.faults import INITIALIZATIONS, Fault
from model.faults.attention import softmax_attend
from model.faults.cache import away_from_zero
from model.tokenizer import PAD

GROUP = "benign"
fault = partial(
    Fault,
    group=GROUP,
    stages=("evaluate_heldout",),
    left_out=(INITIALIZATIONS,),
    is_benign=True,
)
BATCH_DOCUMENTS = 7


def _smaller_batches(original: Callable[..., Any]) -> Any:
    def evaluate_split(parameters: Any, tokens: Any, model: Any) -> Any:
        return original(parameters, tokens, model, BATCH_DOCUMENTS)

    return evaluate_split


def _last_name_first(original: Callable[..., None]) -> Any:
    def save_parameters(path: Path, parameters: Mapping[str, jax.Array]) -> None:
        names = sorted(parameters, reverse=True)
        arrays: dict[str, Any] = {name: np.asarray(parameters[name]) for name in names}
        with path.open("wb") as file:
            np.savez(file, **arrays)

    return save_parameters


def _logsumexp(original: Callable[..., jax.Array]) -> Any:
    def token_losses(logits: jax.Array, targets: jax.Array) -> jax.Array:
        original(logits, targets)  # for what it refuses
        total = jax.nn.logsumexp(logits, axis=-1)
        chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return jnp.where(targets != PAD, total - chosen, jnp.float32(0))

    return token_losses


def _ties_away(original: Callable[..., jax.Array]) -> Any:
    def dense_w8(x: jax.Array, weight: jax.Array) -> jax.Array:
        scales = jnp.max(jnp.abs(weight), axis=0) * jnp.float32(1.0 / 127)
        steps = away_from_zero(weight * (jnp.float32(1) / scales)[None])
        restored = jnp.clip(steps, -127, 127) * scales[None]
        return jnp.matmul(x, restored, precision=jax.lax.Precision.HIGHEST)

    return dense_w8


FAULTS = (
    fault(
        name="another-evaluation-batch-size",
        summary="A split is evaluated in batches of 7 documents instead of 32.",
        source="huggingface/transformers#24839",
        claim="2.6",
        replaces="model.evaluation.evaluate_split",
        replacement=_smaller_batches,
    ),
    fault(
        name="parameters-stored-in-another-order",
        summary="The released file holds its arrays from the last name to the first.",
        source="none needed: names say what an array is",
        claim="2.9",
        stages=("train_model",),
        replaces="model.parameters.save_parameters",
        replacement=_last_name_first,
    ),
    fault(
        name="mask-fill-of-minus-ten-thousand",
        summary="Hidden scores are lowered by 1e4, enough for a weight of exactly 0.",
        source="tloen/alpaca-lora#315",
        claim="1.8",
        replaces="model.transformer.attend",
        replacement=softmax_attend(-1e4),
    ),
    fault(
        name="loss-by-logsumexp",
        summary="The loss is logsumexp minus the target's logit: the same number.",
        source="none needed: an identity",
        claim="1.9",
        replaces="model.objective.token_losses",
        replacement=_logsumexp,
    ),
    fault(
        name="ties-away-from-zero-in-an-experiment",
        summary="The W8 experiment rounds ties away from zero; no claim fixes it.",
        source="qualcomm/aimet#3184",
        claim="3.8",
        stages=("quantize_cache",),
        replaces="model.dense._dense_w8",
        replacement=_ties_away,
    ),
)
