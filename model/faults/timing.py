"""Faults of timing: what lies between the start and the stop of a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax

from model.faults import Fault

GROUP = "timing"
fault = partial(Fault, group=GROUP, stages=("profile_runtime",))


def _dispatch_only(original: Callable[..., Any]) -> Any:
    def timed_call(function: Any, *arguments: Any) -> tuple[int, Any]:
        started = time.perf_counter_ns()
        outputs = function(*arguments)
        duration_ns = time.perf_counter_ns() - started
        jax.block_until_ready(outputs)
        return duration_ns, outputs

    return timed_call


def _fewer_samples(original: Callable[..., Any]) -> Any:
    def sample_policy(files: Any, policy: str, prompt: bytes, warm_samples: int) -> Any:
        return original(files, policy, prompt, warm_samples - warm_samples // 6)

    return sample_policy


def _prefix_grows(original: Callable[..., Any]) -> Any:
    def sample_endpoints(samples: Any, release: Any, names: Any, *rest: Any) -> None:
        original(samples, release, names, *rest)
        grown = samples.cache_lengths
        samples.cache_lengths = [length + n for n, length in enumerate(grown)]

    return sample_endpoints


FAULTS = (
    fault(
        name="dispatch-only-timing",
        summary="The clock stops when a call returns, before its result is ready.",
        source="p-doom/jasmine#47",
        claim="4.6",
        replaces="model.checks.timing.timed_call",
        replacement=_dispatch_only,
    ),
    fault(
        name="fewer-samples-than-declared",
        summary="A sixth of the declared samples is not taken.",
        source="none known; the fixture's own rule",
        claim="4.6",
        replaces="model.checks.timing.sample_policy",
        replacement=_fewer_samples,
    ),
)
