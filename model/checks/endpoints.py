"""Do reloaded endpoints, without any source, compute what the source computed?

This module and all it imports run in a process that cannot import the training code.
What the source computed arrives as arrays, made by the exporting process.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from model import tokenizer
from model.checks import rows
from model.digests import first_difference, first_not_finite, tree_sha256
from model.reference.endpoints import guaranteed_until
from model.refusal import ReasonCode
from model.release import Endpoint, Release

if TYPE_CHECKING:
    from jaxtyping import Int32

# The code a release must not need, by module.
TRAINING_MODULES = tuple(
    f"model.{name}"
    for name in (
        "adam",
        "batches",
        "checkpoint",
        "decoding",
        "dense",
        "endpoints",
        "evaluation",
        "objective",
        "parameters",
        "schedule",
        "training",
        "training_loop",
        "training_request",
        "transformer",
    )
)

NOT_PROMISED = "nothing is promised"
"""What a release says of a JAX whose date of build nobody knows."""


def importable(modules: tuple[str, ...]) -> list[str]:
    """Those of the modules that this process can import (it tries).

    A module whose own import fails for want of another one is within reach all the
    same, and counts.
    """
    found = []
    for name in modules:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if f"{name}.".startswith(f"{error.name}."):
                continue
        found.append(name)
    return found


def loaded(modules: tuple[str, ...]) -> list[str]:
    """Those of the modules that this process holds already."""
    return [name for name in modules if name in sys.modules]


def boundary_prompts(context_tokens: int, normal: bytes) -> dict[str, bytes]:
    """Prompts for comparing endpoints: normal, empty, multibyte, as long as allowed.

    ``last_slot`` leaves one place, so that a decode fills the last slot of the cache.
    """
    fits = context_tokens - 1
    return {
        "normal": normal[:fits],
        "empty": b"",
        "multibyte": ("é" * (fits // 3)).encode(),
        "last_slot": (b"fedcba|" * fits)[: fits - 1],
        "maximum_length": (b"abcdef|" * fits)[:fits],
    }


def as_storable(array: Any) -> np.ndarray:
    """The array as NPZ can hold it: bfloat16 becomes its bits, uint16."""
    values = np.asarray(array)
    return values.view(np.uint16) if values.dtype.name == "bfloat16" else values


def as_argument(array: np.ndarray, declared: str) -> np.ndarray:
    """The array in the dtype that an endpoint declares, such as "bfloat16[1,2]"."""
    is_bits = declared.startswith("bfloat16") and array.dtype == np.uint16
    return array.view(jnp.bfloat16) if is_bits else array


def check_outputs(release: Release, source: Mapping[str, np.ndarray]) -> list[rows.Row]:
    """Claim 4.2: outputs of reloaded endpoints, bit by bit those of the source.

    Args:
        release: Verified release.
        source: Arrays by "endpoint/case/in/3" and "endpoint/case/out/0".

    Returns:
        Rows of ``comparisons``, one an endpoint and case.
    """
    cases = sorted({tuple(name.split("/")[:2]) for name in source})
    found = []
    for name, case in cases:
        endpoint = release.endpoints[name]
        arguments = _numbered(source, f"{name}/{case}/in")
        expected = _numbered(source, f"{name}/{case}/out")
        outputs = endpoint(
            *(
                as_argument(array, declared)
                for array, declared in zip(arguments, endpoint.inputs, strict=True)
            )
        )
        measured = [as_storable(array) for array in outputs]
        parted = (
            f"output {index}: {place}"
            for index, (left, right) in enumerate(zip(expected, measured, strict=True))
            if (place := first_difference(left, right) or first_not_finite(right))
        )
        found.append(
            rows.comparison(
                "4.2",
                "reloaded_outputs",
                f"{name}/{case}",
                _digest(expected),
                _digest(measured),
                "jitted source function in the exporting process",
                next(parted, ""),
            )
        )
    return found


def _numbered(source: Mapping[str, np.ndarray], prefix: str) -> list[np.ndarray]:
    names = [name for name in source if name.startswith(f"{prefix}/")]
    names.sort(key=lambda name: int(name.rpartition("/")[2]))
    return [source[name] for name in names]


def _digest(arrays: list[np.ndarray]) -> str:
    return tree_sha256({f"{index}": array for index, array in enumerate(arrays)})


def check_parameters(release: Release, normal: bytes) -> list[rows.Row]:
    """Claim 4.2: how many parameters an endpoint computes without.

    An endpoint that carries its own equals the source, which has them too.

    Args:
        release: Verified release.
        normal: An ordinary prompt of this corpus.
    """
    tokens, length = tokenizer.prompt_tokens(normal, release.context_tokens)
    prompt = (tokens[None], np.array([length], np.int32))
    found = []
    for policy in release.manifest["policies"]:
        prefill = release.endpoints[f"prefill-{policy}"]
        decode = release.endpoints[f"decode-{policy}"]
        following = (tokens[length - 1][None], *prefill(*prompt)[1:])
        for endpoint, arguments in ((prefill, prompt), (decode, following)):
            unused = _without_effect(endpoint, arguments)
            measure, detail = "parameters_without_effect", ",".join(unused)
            found.append(
                rows.count(
                    "4.2", measure, endpoint.name, len(unused), "parameters", detail
                )
            )
    return found


def _without_effect(endpoint: Endpoint, arguments: tuple[Any, ...]) -> list[str]:
    given = endpoint.parameters
    if not given:
        raise ValueError(f"{endpoint.name} has no parameters to do without")

    def compute(parameters: Mapping[str, Any]) -> str:
        outputs = endpoint.compiled(parameters, *arguments)
        return _digest([as_storable(array) for array in outputs])

    own = compute(given)
    # The same step everywhere: no tensor is so large that it would round it away.
    return [
        name
        for name, array in given.items()
        if compute({**given, name: array + jnp.float32(0.5)}) == own
    ]


def check_loss(
    release: Release, policy: str, tokens: Int32[np.ndarray, "N S"]
) -> list[rows.Row]:
    """Held-out loss through the endpoints of one policy, token by token.

    Args:
        release: Verified release.
        policy: Release policy.
        tokens: int32 [N, T + 1] documents.

    Returns:
        Rows of ``measurements`` for claim 4.2.
    """
    prefill = release.endpoints[f"prefill-{policy}"]
    decode = release.endpoints[f"decode-{policy}"]
    losses = [
        loss for document in tokens for loss in _token_losses(prefill, decode, document)
    ]
    mean = float(np.sum(losses)) / len(losses)
    return [
        rows.count("4.2", "heldout_targets", policy, len(losses), "targets"),
        rows.real("4.2", "heldout_nats_per_token", policy, mean, "nats/token"),
    ]


def _token_losses(
    prefill: Endpoint, decode: Endpoint, document: Int32[np.ndarray, " S"]
) -> list[float]:
    """Loss in nats of every valid target of a document, float64 log-softmax."""
    targets = document[1:][document[1:] != tokenizer.PAD]
    start = np.full((1, len(document) - 1), tokenizer.PAD, np.int32)
    start[0, 0] = document[0]
    logits, *state = prefill(start, np.array([1], np.int32))
    losses = []
    for index, target in enumerate(targets):
        exact = np.asarray(logits, np.float64)[0]
        peak = exact.max()
        total = peak + np.log(np.sum(np.exp(exact - peak)))
        losses.append(float(total - exact[target]))
        if index + 1 < len(targets):
            logits, *state = decode(np.array([target], np.int32), *state)
    return losses


def check_settings(
    manifest: Mapping[str, Any], expected: Mapping[str, Any]
) -> list[rows.Row]:
    """Claim 4.1: what travels with the artifacts is what the system has.

    Args:
        manifest: Manifest as read back from the release.
        expected: The same settings, from the task that made the release.

    Returns:
        Rows of ``comparisons``, one a setting.
    """
    return [
        rows.comparison(
            "4.1",
            "release_setting",
            name,
            json.dumps(value, sort_keys=True),
            json.dumps(manifest.get(name), sort_keys=True),
            "the exporting process",
        )
        for name, value in expected.items()
    ]


def check_guarantee(manifest: Mapping[str, Any]) -> rows.Row:
    """Claim 4.1: how long the format of the artifacts is promised to load.

    Args:
        manifest: Manifest as read back from the release.
    """
    told = manifest["serialization"]["guaranteed_until"]
    version = manifest["runtime"]["jax"]
    return rows.comparison(
        "4.1",
        "guaranteed_until",
        "",
        guaranteed_until(version) or NOT_PROMISED,
        told or NOT_PROMISED,
        f"six months after JAX {version} was built",
    )


def check_boundary(release: Release, policy: str) -> list[rows.Row]:
    """Inputs that JAX would narrow in silence and the release refuses (claim 4.2)."""
    prefill = release.endpoints[f"prefill-{policy}"]
    tokens = np.ones((1, release.context_tokens), np.int32)
    length = np.array([1], np.int32)
    cases = {
        "int64_tokens": (tokens.astype(np.int64), length),
        "float_tokens": (tokens.astype(np.float32), length),
        "two_rows": (np.concatenate([tokens, tokens]), length),
    }
    return [
        rows.refusal(
            "4.2",
            "endpoint_input",
            f"{policy}/{case}",
            ReasonCode.TOKENS_MALFORMED,
            partial(prefill, *arguments),
        )
        for case, arguments in cases.items()
    ]
