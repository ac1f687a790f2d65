"""How long the endpoints take, and whether the timer measures what it says.

JAX returns before the work is done; a timer that does not wait measures the dispatch.
On a model this small the two are nearly equal, so the timer itself is checked on a
result that takes a known time to become ready.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from model.checks import rows
from model.release import Release, load_verified
from model.tokenizer import prompt_tokens

CLOCK = "time.perf_counter_ns"
# What lies between start and stop, by endpoint; all else is outside.
TIMED = {
    "prefill": (
        f"{CLOCK}, ns: call of the jitted endpoint until every output is ready; "
        "without tokenisation, copies to the device and loading; a first call "
        "includes tracing and compilation"
    ),
    "decode": (
        f"{CLOCK}, ns: call of the jitted endpoint until every output is ready, "
        "always from the prefix cache of the prompt; without copies to the device and "
        "loading; a first call includes tracing and compilation"
    ),
    "time-to-first-token": (
        f"{CLOCK}, ns: prompt bytes to the id of the first token on the host: "
        "tokenisation, copy, prefill, argmax; a first one includes loading and "
        "verifying the release, tracing and compilation"
    ),
}
STUB_WAIT_NS = 20_000_000


def timed_call(
    function: Callable[..., Any],
    *arguments: Any,
    clock: Callable[[], int] = time.perf_counter_ns,
    wait: Callable[[Any], Any] = jax.block_until_ready,
) -> tuple[int, Any]:
    """Nanoseconds until every output of a call is ready, and the outputs."""
    started = clock()
    outputs = function(*arguments)
    wait(outputs)
    return clock() - started, outputs


class SlowResult:
    """A result that becomes ready 20 ms after the call that made it returned."""

    def block_until_ready(self) -> SlowResult:
        """Waits, as a device array does."""
        time.sleep(STUB_WAIT_NS / 1e9)
        return self


def check_timer(timed: Callable[..., tuple[int, Any]] | None = None) -> rows.Row:
    """Claim 4.6: the timer holds the wait for a result, in nanoseconds."""
    duration_ns, _ = (timed or timed_call)(lambda: [SlowResult()])
    detail = f"a result that is ready {STUB_WAIT_NS} ns after the call"
    return rows.count(
        "4.6", "timer_includes_wait_ns", "", duration_ns, "nanoseconds", detail
    )


@dataclass(kw_only=True)
class Samples:
    """Durations in nanoseconds by endpoint name, first call and later ones."""

    first: dict[str, int] = field(default_factory=dict)
    warm: dict[str, list[int]] = field(default_factory=dict)
    cache_lengths: list[int] = field(default_factory=list)


def sample_policy(
    files: dict[str, str], policy: str, prompt: bytes, warm_samples: int
) -> Samples:
    """Times one release policy on one prompt; must be its first use in this process.

    Args:
        files: Paths by artifact name.
        policy: Release policy.
        prompt: The timing workload's prompt.
        warm_samples: Samples after the first call of each endpoint.
    """
    names = (f"prefill-{policy}", f"decode-{policy}")
    samples = Samples()
    opened: list[Release] = []

    def first_token() -> int:
        if not opened:
            opened.append(load_verified(files, names))
        release = opened[0]
        tokens, length = prompt_tokens(prompt, release.context_tokens)
        arguments = (tokens[None], np.array([length], np.int32))
        endpoint = release.endpoints[names[0]]
        duration_ns, outputs = timed_call(
            endpoint.compiled, endpoint.parameters, *jax.device_put(arguments)
        )
        samples.first.setdefault("prefill", duration_ns)
        return int(np.argmax(np.asarray(outputs[0])))

    samples.first["time-to-first-token"], _ = timed_call(first_token)
    samples.warm["time-to-first-token"] = [
        timed_call(first_token)[0] for _ in range(warm_samples)
    ]
    _sample_endpoints(samples, opened[0], names, prompt, warm_samples)
    return samples


def _sample_endpoints(
    samples: Samples,
    release: Release,
    names: tuple[str, str],
    prompt: bytes,
    warm_samples: int,
) -> None:
    prefill, decode = (release.endpoints[name] for name in names)
    tokens, length = prompt_tokens(prompt, release.context_tokens)
    arguments = jax.device_put((tokens[None], np.array([length], np.int32)))
    samples.warm["prefill"] = []
    for _ in range(warm_samples):
        duration_ns, outputs = timed_call(
            prefill.compiled, prefill.parameters, *arguments
        )
        samples.warm["prefill"].append(duration_ns)
    token = jax.device_put(np.argmax(np.asarray(outputs[0]), axis=1).astype(np.int32))
    state = outputs[1:]
    samples.first["decode"], _ = timed_call(
        decode.compiled, decode.parameters, token, *state
    )
    samples.warm["decode"] = []
    for _ in range(warm_samples):
        samples.cache_lengths.append(int(np.asarray(state[-1])[0]))
        duration_ns, _ = timed_call(decode.compiled, decode.parameters, token, *state)
        samples.warm["decode"].append(duration_ns)


def timing_rows(
    samples: Samples, policy: str, process: int, process_id: int, is_cold: bool
) -> list[rows.Row]:
    """Every sample as a row of ``timings``; ``is_cold``: the first calls compiled."""
    first_phase = "first" if is_cold else "first-cached"

    def row(endpoint: str, sample: int, phase: str, duration_ns: int) -> rows.Row:
        return {
            "endpoint": endpoint,
            "release_policy": policy,
            "process": process,
            "process_id": process_id,
            "sample": sample,
            "phase": phase,
            "duration_ns": duration_ns,
            "timer": TIMED[endpoint],
        }

    found = [row(name, 0, first_phase, each) for name, each in samples.first.items()]
    for name, durations in samples.warm.items():
        found += [
            row(name, index, "warm", each) for index, each in enumerate(durations, 1)
        ]
    return found


def check_samples(
    samples: Samples, policy: str, process: int, prompt_length: int, is_cold: bool
) -> list[rows.Row]:
    """Claim 4.6 over the samples of one process and policy."""
    found = []
    for name in samples.warm:
        case = f"{name}/{policy}/{process}"
        warm, first = samples.warm[name], samples.first[name]
        median = int(statistics.median(warm))
        found += [
            rows.count("4.6", "warm_samples", case, len(warm), "samples"),
            rows.count("4.6", "first_call_ns", case, first, "nanoseconds"),
            rows.count("4.6", "median_warm_ns", case, median, "nanoseconds"),
            rows.count("4.6", "shortest_sample_ns", case, min(warm), "nanoseconds"),
        ]
        if is_cold:
            share = first / max(median, 1)
            found.append(rows.real("4.6", "first_call_over_warm", case, share, "1"))
    drift = max(abs(each - prompt_length) for each in samples.cache_lengths)
    case = f"decode/{policy}/{process}"
    found.append(rows.count("4.6", "cache_length_drift", case, drift, "tokens"))
    return found
