"""What a precision costs: logits under each policy against those of float32.

This is approximation error, a property of the policy on this text. It says nothing
about the mechanics of the cache, and a smaller error is no sign of correctness.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import numpy as np

from model import transformer
from model.checks import rows
from model.checks.cache import CachedModel, walk
from model.checks.differences import largest_value
from model.config import ModelConfig, Policy
from model.parameters import Parameters
from model.tokenizer import EOS, PAD

if TYPE_CHECKING:
    from jaxtyping import Bool, Float32, Float64, Int32


@dataclass(frozen=True, kw_only=True)
class LogitErrors:
    """Difference of two sets of logits at every valid target, arrays [n]."""

    document: Int32[np.ndarray, " n"]
    """Row of the document."""
    position: Int32[np.ndarray, " n"]
    """Position of the target in the document, 1 for the first after BOS."""
    largest: Float64[np.ndarray, " n"]
    """Largest absolute difference over the vocabulary, in logits."""
    mean: Float64[np.ndarray, " n"]
    """Mean absolute difference over the vocabulary, in logits."""
    divergence_nats: Float64[np.ndarray, " n"]
    """Kullback-Leibler divergence of the policy's distribution from float32's."""
    loss_nats: Float64[np.ndarray, " n"]
    """Loss of the target under the policy."""
    is_top_changed: Bool[np.ndarray, " n"]
    """Whether the most likely token is another one."""
    margin: Float64[np.ndarray, " n"]
    """Distance between the two largest float32 logits."""


def log_softmax(logits: Float64[np.ndarray, "... V"]) -> Float64[np.ndarray, "... V"]:
    """Logarithm of the softmax over the last axis, in float64."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def compare_logits(
    exact: Float32[np.ndarray, "N T V"],
    rounded: Float32[np.ndarray, "N T V"],
    targets: Int32[np.ndarray, "N T"],
) -> LogitErrors:
    """Errors of ``rounded`` against ``exact`` wherever a target is valid.

    Args:
        exact: Logits under float32.
        rounded: Logits under the policy.
        targets: Next tokens; PAD marks positions that do not count.
    """
    document, index = np.nonzero(targets != PAD)
    left = exact[document, index].astype(np.float64)
    right = rounded[document, index].astype(np.float64)
    error = np.abs(left - right)
    log_left, log_right = log_softmax(left), log_softmax(right)
    chosen = targets[document, index]
    ordered = np.sort(left, axis=-1)
    return LogitErrors(
        document=document.astype(np.int32),
        position=(index + 1).astype(np.int32),
        largest=error.max(axis=-1),
        mean=error.mean(axis=-1),
        divergence_nats=np.sum(np.exp(log_left) * (log_left - log_right), axis=-1),
        loss_nats=-log_right[np.arange(len(chosen)), chosen],
        is_top_changed=left.argmax(axis=-1) != right.argmax(axis=-1),
        margin=ordered[:, -1] - ordered[:, -2],
    )


def cached_logits(
    system: CachedModel,
    parameters: Parameters,
    tokens: Int32[np.ndarray, "N T"],
    model: ModelConfig,
    policy: Policy,
) -> Float32[np.ndarray, "N T V"]:
    """Logits of every position through the cache: BOS prefilled, the rest appended."""
    one = np.ones(len(tokens), np.int32)
    found = [
        step.logits for step in walk(system, parameters, tokens, one, model, policy)
    ]
    return np.stack(found, axis=1)


def exact_logits(
    parameters: Parameters, tokens: Int32[np.ndarray, "N T"], model: ModelConfig
) -> Float32[np.ndarray, "N T V"]:
    """Logits of the full model in float32, without any cache."""
    full = jax.jit(transformer.logits, static_argnames=("model",))
    return np.asarray(full(parameters, tokens, model=model))


def check_logit_errors(
    policy: str,
    exact: Float32[np.ndarray, "N T V"],
    rounded: Float32[np.ndarray, "N T V"],
    targets: Int32[np.ndarray, "N T"],
    document_ids: list[str],
) -> tuple[list[rows.Row], list[rows.Row]]:
    """Claim 3.6 for one policy.

    Args:
        policy: Name of the compared precision.
        exact: Logits under float32.
        rounded: Logits under the policy, through its cache.
        targets: int32 [N, T] next tokens; PAD does not count.
        document_ids: Ids of the documents, in row order.

    Returns:
        Rows of ``logit_errors`` and of ``measurements``.
    """
    errors = error_rows(policy, compare_logits(exact, rounded, targets), document_ids)
    return errors, summary_rows(policy, errors)


def error_rows(
    policy: str, found: LogitErrors, document_ids: list[str]
) -> list[rows.Row]:
    """Rows of ``logit_errors`` of one precision, one a valid target."""
    return [
        {
            "release_policy": policy,
            "document_id": document_ids[int(found.document[index])],
            "position": int(found.position[index]),
            "largest_error": float(found.largest[index]),
            "mean_error": float(found.mean[index]),
            "divergence_nats": float(found.divergence_nats[index]),
            "loss_nats": float(found.loss_nats[index]),
            "is_top_changed": bool(found.is_top_changed[index]),
            "margin": float(found.margin[index]),
        }
        for index in range(len(found.document))
    ]


def place_row(
    policy: str,
    errors: Sequence[rows.Row],
    tokens: Int32[np.ndarray, "N T1"],
    document_ids: Sequence[str],
) -> rows.Row:
    """Which targets were compared, against those that the documents have.

    A document ends with its end token: its targets are the places up to there, each
    once. That is read without asking what is padding, which the errors did ask.

    Args:
        policy: Name of the compared precision.
        errors: Rows of ``logit_errors`` of it.
        tokens: The documents, from their begin token on.
        document_ids: Ids of the documents, in row order.
    """
    ends = np.argmax(tokens == EOS, axis=1)
    owed = {
        name: list(range(1, int(end) + 1))
        for name, end in zip(document_ids, ends, strict=True)
    }
    found: dict[str, list[int]] = {}
    for row in errors:
        found.setdefault(row["document_id"], []).append(row["position"])
    return rows.comparison(
        *("3.6", "compared_places", policy, _places(owed), _places(found)),
        "the end token of each document",
    )


def _places(positions: Mapping[str, Sequence[int]]) -> str:
    """Returns positions by document as their numbers and a digest."""
    text = json.dumps(positions, sort_keys=True)
    return (
        f"{sum(map(len, positions.values()))} targets of {len(positions)} documents, "
        f"{hashlib.sha256(text.encode()).hexdigest()}"
    )


def summary_rows(policy: str, errors: list[rows.Row]) -> list[rows.Row]:
    """Rows of ``measurements`` of claim 3.6 over rows of ``logit_errors``."""
    changed = [row for row in errors if row["is_top_changed"]]
    # A changed token needs errors that add up to the margin: at most twice the largest.
    beyond = [row for row in changed if row["margin"] > 2 * row["largest_error"]]
    detail = ""
    if changed:
        widest = max(row["margin"] for row in changed)
        detail = f"largest margin among changed tokens {widest:.4f} logits"

    def mean(name: str) -> float:
        return float(np.mean([row[name] for row in errors]))

    largest = largest_value(row["largest_error"] for row in errors)
    return [
        rows.count("3.6", "compared_targets", policy, len(errors), "targets"),
        rows.real("3.6", "largest_logit_error", policy, largest, "logits"),
        rows.real("3.6", "mean_logit_error", policy, mean("mean_error"), "logits"),
        rows.real(
            "3.6", "mean_divergence_nats", policy, mean("divergence_nats"), "nats"
        ),
        rows.count(
            "3.6", "changed_top_tokens", policy, len(changed), "targets", detail
        ),
        rows.count(
            "3.6", "changed_top_tokens_beyond_margin", policy, len(beyond), "targets"
        ),
    ]
