"""The functions a release ships, lowered and serialised so that no source is needed.

An endpoint is a pure function of parameters and arrays at fixed shapes. Parameters
are arguments and not constants: an artifact holds the computation alone, and the
weights are hashed once instead of lying six times in bytes that no one can compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
from jax import export

from model import decoding, release, tokenizer
from model.cache import Cache, empty_cache
from model.config import POLICIES, to_dict
from model.generation import NEVER_EMITTED
from model.parameters import parameter_table

if TYPE_CHECKING:
    from model.config import ModelConfig, Policy

Kind = Literal["prefill", "decode"]
KINDS: tuple[Kind, ...] = ("prefill", "decode")


def endpoint_function(
    kind: Kind, model: ModelConfig, policy: Policy
) -> Callable[..., tuple[jax.Array, ...]]:
    """The function of an endpoint on plain arrays, named after its kind.

    ``prefill(parameters, tokens [1, T], length [1])`` and ``decode(parameters,
    token [1], keys, values, key_scales, value_scales, length)`` both return logits
    [1, V] and the five arrays of the cache.
    """

    def prefill(
        parameters: dict[str, jax.Array], tokens: jax.Array, length: jax.Array
    ) -> tuple[jax.Array, ...]:
        logits, cache = decoding.prefill(parameters, tokens, length, model, policy)
        return logits, *cache

    def decode(
        parameters: dict[str, jax.Array], token: jax.Array, *state: jax.Array
    ) -> tuple[jax.Array, ...]:
        logits, cache = decoding.decode(parameters, token, Cache(*state), model, policy)
        return logits, *cache

    return prefill if kind == "prefill" else decode


def endpoint_arguments(
    kind: Kind, model: ModelConfig, policy: Policy
) -> tuple[object, ...]:
    """Shapes and dtypes of an endpoint's arguments, parameters first."""
    shape = jax.ShapeDtypeStruct
    parameters = {
        spec.name: shape(spec.shape, jnp.dtype(spec.dtype))
        for spec in parameter_table(model)
    }
    if kind == "prefill":
        tokens = shape((1, model.context_tokens), jnp.int32)
        return parameters, tokens, shape((1,), jnp.int32)
    cache = jax.eval_shape(lambda: empty_cache(model, 1, policy.cache))
    return parameters, shape((1,), jnp.int32), *cache


@contextmanager
def _without_source_locations() -> Iterator[None]:
    """Keeps paths and line numbers out of the bytes, whatever the process is set to."""
    before = jax.config.values["jax_traceback_in_locations_limit"]
    jax.config.update("jax_traceback_in_locations_limit", 0)
    try:
        yield
    finally:
        jax.config.update("jax_traceback_in_locations_limit", before)


def endpoint_bytes(
    kind: Kind, model: ModelConfig, policy: Policy, platforms: Sequence[str]
) -> bytes:
    """An endpoint lowered for all platforms at once, serialised.

    The bytes depend on the model's shape, the policy and the JAX version, and on no
    path, clock or process.

    Args:
        kind: "prefill" or "decode".
        model: Shape of the model.
        policy: Release policy.
        platforms: JAX platform names, such as ("cpu", "tpu").
    """
    function = jax.jit(endpoint_function(kind, model, policy))
    arguments = endpoint_arguments(kind, model, policy)
    with _without_source_locations():
        exported = export.export(function, platforms=tuple(platforms))(*arguments)
    # No gradient travels: a release is not trained further.
    return bytes(exported.serialize(vjp_order=0))


def export_endpoint(
    kind: Kind, model: ModelConfig, policy: Policy, platforms: Sequence[str]
) -> tuple[export.Exported, bytes]:
    """An endpoint as it is read back from its bytes, and the bytes."""
    data = endpoint_bytes(kind, model, policy, platforms)
    return export.deserialize(bytearray(data)), data


# When JAX was built, by version, as its wheels are dated. The promise for serialised
# programs counts from there: readers built up to six months later can load them.
_BUILT_ON = {
    "0.9.2": date(2026, 3, 18),
    "0.10.0": date(2026, 4, 16),
    "0.10.2": date(2026, 6, 17),
}
_GUARANTEED_MONTHS = 6


def guaranteed_until(jax_version: str) -> str | None:
    """Last build date (ISO) of a JAX that is guaranteed to load what this one exports.

    Returns:
        None for a JAX whose build date is not known here; then nothing is promised.

    Source: jax.export documentation, compatibility guarantees.
    """
    built = _BUILT_ON.get(jax_version)
    if built is None:
        return None
    months = built.month - 1 + _GUARANTEED_MONTHS
    later = built.replace(year=built.year + months // 12, month=1 + months % 12)
    return later.isoformat()


def release_manifest(
    model: ModelConfig,
    *,
    parameters: dict[str, Any],
    endpoints: dict[str, dict[str, Any]],
    maximum_new_tokens: int,
    runtime: dict[str, str],
) -> dict[str, Any]:
    """Everything that has to travel with the artifacts, as JSON values.

    Args:
        model: Shape of the model.
        parameters: ``release.describe_parameters`` of the trained parameters.
        endpoints: ``lowered.describe_endpoint`` by endpoint name, with its file.
        maximum_new_tokens: Default bound of a generation.
        runtime: ``runtime.describe`` of the exporting process.
    """
    return {
        "format": release.FORMAT,
        "format_version": release.FORMAT_VERSION,
        "model": to_dict(model),
        "context_tokens": model.context_tokens,
        "tokenizer": tokenizer.describe(),
        "preprocessing": tokenizer.describe_preprocessing(model.context_tokens),
        "special_tokens": {
            "never_emitted": list(NEVER_EMITTED),
            "stop": [tokenizer.EOS],
            "begin_every_prompt": tokenizer.BOS,
            "padding": "right, never attended",
        },
        "decoding": {
            "method": "greedy",
            "tie": "lowest token id",
            "maximum_new_tokens": maximum_new_tokens,
            "not_finite": "refused",
            "prompt_beyond_context": "refused",
        },
        "policies": {
            name: {"dense": policy.dense, "cache": policy.cache}
            for name, policy in POLICIES.items()
        },
        "parameters": parameters,
        "runtime": runtime,
        "serialization": {
            "calling_convention_versions": sorted(
                {each["calling_convention_version"] for each in endpoints.values()}
            ),
            "guaranteed_until": guaranteed_until(jax.__version__),
            "guarantee": "loadable by JAX built up to this date",
        },
        "endpoints": endpoints,
    }
