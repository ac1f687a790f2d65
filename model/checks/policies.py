"""Claim 3.8: one table of precision policies, experiments and further formats.

All of them take the same way: a dense layer is lowered and compiled, then held-out text
runs through the cached decode. A format is supported when it comes to the end and its
logits stay within `LOGIT_ERROR_LIMIT` of float32; whether this machine multiplies it or
widens it first stands beside that, read off the compiled program.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from model.adam import initial_adam
from model.cache import cache_arrays, empty_cache
from model.checks import formats
from model.checks.cache import CachedModel
from model.checks.formats import TriedProduct
from model.checks.precision import (
    LogitErrors,
    cached_logits,
    compare_logits,
    error_rows,
)
from model.checks.rows import Row
from model.config import ModelConfig, Policy
from model.endpoints import KINDS, endpoint_bytes
from model.parameters import Parameters
from model.tokenizer import BOS, PAD

if TYPE_CHECKING:
    from jaxtyping import Float32, Int32

EXPERIMENTS = tuple(
    Policy(name=name, dense=name, cache="fp32") for name in ("w8", "fp16")
)
FORMATS = tuple(
    Policy(name=name, dense=name, cache="fp32")
    for name in ("int4", "float8_e4m3", "float8_e5m2")
)
# Errors of e in two logits change the ratio of their probabilities by exp(2 e) at most:
# below this limit, no probability doubles against another one.
LOGIT_ERROR_LIMIT = math.log(2.0) / 2.0
EXPORTED_FOR = ("cpu", "tpu")
TIMED_CALLS = 20
_UNMEASURED = (
    *("heldout_nats_per_token", "heldout_targets", "largest_logit_error"),
    *("changed_top_tokens", "decode_ns", "decode_rows"),
)


class PolicyEvidence(NamedTuple):
    """What was found of one policy."""

    row: Row
    """Row of ``policies``."""
    arrays: list[Row]
    """Rows of ``policy_arrays``."""
    errors: list[Row]
    """Rows of ``logit_errors``; none where it did not run to finite logits."""


@dataclass(frozen=True, kw_only=True)
class PolicyCheck:
    """The text, the model and the functions that every policy is measured with."""

    parameters: Parameters
    tokens: Int32[np.ndarray, "N T1"]
    """Held-out documents."""
    document_ids: list[str]
    """Their ids."""
    model: ModelConfig
    exact: Float32[np.ndarray, "N T V"]
    """Logits of the full model under float32."""
    system: CachedModel = field(default_factory=CachedModel)

    def measure(self, kind: str, policy: Policy) -> PolicyEvidence:
        """Returns all rows of one policy.

        Args:
            kind: "release", "experiment" or "format".
            policy: The policy.
        """
        weight = self.parameters["h.0.attn.c_attn.weight"]
        tried = formats.try_product(policy.dense, len(self.tokens), weight)
        logits, failure = self._run(policy) if not tried.failure else (None, "")
        errors, quality = None, dict.fromkeys(_UNMEASURED)
        if logits is not None and np.isfinite(logits[self._is_target]).all():
            errors = compare_logits(self.exact, logits, self.tokens[:, 1:])
            quality = _quality(errors) | self._timed(policy)
        reached = tried.reached if logits is None else "ran"
        reason = _reason(reached, errors)
        stored = formats.stored_weights(self.parameters, self.model, policy.dense)
        arrays = self._arrays(policy, stored)
        row = self._facts(kind, policy, tried) | quality
        row |= {
            "reached": reached,
            "weights": np.dtype(next(iter(stored.values())).dtype).name,
            "weight_bytes": _bytes(arrays, "weights"),
            "optimizer_bytes": _bytes(arrays, "optimizer"),
            "reason": reason,
            "detail": _detail(reason, tried, failure, errors),
        }
        ids = self.document_ids
        found = error_rows(policy.name, errors, ids) if errors is not None else []
        return PolicyEvidence(row, arrays, found)

    @property
    def _is_target(self) -> np.ndarray:
        return self.tokens[:, 1:] != PAD

    def _run(self, policy: Policy) -> tuple[np.ndarray | None, str]:
        """Logits through the cached decode, or what the runtime said."""
        inputs = self.tokens[:, :-1]
        try:
            return (
                cached_logits(self.system, self.parameters, inputs, self.model, policy),
                "",
            )
        except formats.FAILURES as error:
            return None, formats.failure_text(error)

    def _timed(self, policy: Policy) -> Row:
        rows = len(self.tokens)
        common = self.system, self.parameters, rows, self.model, policy
        return {"decode_ns": decode_median_ns(*common), "decode_rows": rows}

    def _facts(self, kind: str, policy: Policy, tried: TriedProduct) -> Row:
        """What stands still: types as they were read, and what no array shows."""
        names = ("scale_granularity", "zero_point", "clipping", "calibration")
        cache = cache_arrays(empty_cache(self.model, 1, policy.cache))
        return {
            "policy": policy.name,
            "kind": kind,
            "activations": tried.activations,
            "accumulation": tried.accumulation,
            "cache": policy.cache,
            "lowered_operands": tried.lowered_operands,
            "compiled_operands": tried.compiled_operands,
            **dict(zip(names, formats.FACTS[policy.dense], strict=True)),
            "cache_bytes": sum(int(array.nbytes) for array in cache.values()),
            "artifact_bytes": self._artifact_bytes(policy),
            "logit_error_limit": LOGIT_ERROR_LIMIT,
            "device": jax.devices()[0].device_kind,
        }

    def _artifact_bytes(self, policy: Policy) -> int | None:
        """Bytes of both endpoints when exported, without parameters."""
        try:
            return sum(
                len(endpoint_bytes(kind, self.model, policy, EXPORTED_FOR))
                for kind in KINDS
            )
        except formats.FAILURES:
            return None

    def _arrays(self, policy: Policy, stored: Mapping[str, jax.Array]) -> list[Row]:
        adam = initial_adam(self.parameters)
        moments: dict[str, Any] = {"step": adam.step}
        for name in ("first_moment", "second_moment"):
            tree = getattr(adam, name)
            moments |= {f"{name}/{leaf}": array for leaf, array in tree.items()}
        return [
            *formats.array_rows(policy.name, "weights", stored),
            *formats.array_rows(policy.name, "optimizer", moments),
        ]


def _bytes(arrays: Sequence[Row], part: str) -> int:
    return sum(row["array_bytes"] for row in arrays if row["part"] == part)


def _quality(errors: LogitErrors) -> Row:
    losses = errors.loss_nats
    return {
        # One loss after another, so that SQL can repeat every bit.
        "heldout_nats_per_token": float(np.cumsum(losses)[-1]) / len(losses),
        "heldout_targets": len(losses),
        "largest_logit_error": float(errors.largest.max()),
        "changed_top_tokens": int(errors.is_top_changed.sum()),
    }


def _reason(reached: str, errors: LogitErrors | None) -> str | None:
    """Why it is not supported; None when it is."""
    if reached != "ran":
        return "not_supported"
    if errors is None:
        return "non_finite_logits"
    # Not `>`: an error that is no number is within no limit.
    return None if errors.largest.max() <= LOGIT_ERROR_LIMIT else "beyond_limit"


def _detail(
    reason: str | None, tried: TriedProduct, failure: str, errors: LogitErrors | None
) -> str:
    """What was observed, in words."""
    said = tried.failure or failure
    if reason == "beyond_limit" and errors is not None:
        largest = errors.largest.max()
        said = f"a logit is off by {largest:.3f}, more than {LOGIT_ERROR_LIMIT:.3f}"
    if tried.compiled_operands == formats.UNREAD:
        return said or "the compiled program spells no product out"
    if tried.compiled_operands in (tried.lowered_operands, formats.NONE):
        return said
    widened = f"rounded to its format, then multiplied as {tried.compiled_operands}"
    return f"{widened}; {said}" if said else widened


def decode_median_ns(
    system: CachedModel,
    parameters: Parameters,
    rows: int,
    model: ModelConfig,
    policy: Policy,
) -> int:
    """Median time in nanoseconds of one synchronised, warm decode of ``rows`` rows.

    Other stages may run beside it; the timings of the releases stand apart.
    """
    tokens = np.full((rows, model.context_tokens), PAD, np.int32)
    tokens[:, 0] = BOS
    one = jnp.ones((rows,), jnp.int32)
    _, cache, _ = system.prefill(parameters, jnp.asarray(tokens), one, model, policy)
    token, durations = jnp.asarray(tokens[:, 0]), []
    for _ in range(TIMED_CALLS):
        started_ns = time.perf_counter_ns()
        jax.block_until_ready(system.decode(parameters, token, cache, model, policy))
        durations.append(time.perf_counter_ns() - started_ns)
    return int(statistics.median(durations))
