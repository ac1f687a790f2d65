"""Faults of the release: what is exported, and what is verified before it is used."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from model.faults import Fault

GROUP = "export"
fault = partial(Fault, group=GROUP, stages=("export_endpoints",))


def _parameters_baked(original: Callable[..., Any]) -> Any:
    def endpoint_function(kind: str, model: Any, policy: Any) -> Any:
        from model.parameters import initial_parameters

        constants = initial_parameters(model, 11)
        function = original(kind, model, policy)

        def baked(parameters: Any, *arguments: Any) -> Any:
            return function(constants, *arguments)

        baked.__name__ = kind
        return baked

    return endpoint_function


def _inputs_narrowed(original: Callable[..., None]) -> Any:
    def require_inputs(name: str, inputs: Any, arguments: Any) -> None:
        narrowed = [
            each.astype(np.int32) if each.dtype == np.int64 else each
            for each in arguments
        ]
        original(name, inputs, narrowed)

    return require_inputs


def _bytes_not_hashed(original: Callable[..., None]) -> Any:
    return lambda name, data, expected: None


def _defaults_filled_in(original: Callable[..., Any]) -> Any:
    def read_manifest(path: Any) -> Any:
        return original(path) | {"decoding": {"method": "greedy"}}

    return read_manifest


def _only_successes(original: Callable[..., list[Any]]) -> Any:
    def demonstrations(*arguments: Any) -> list[Any]:
        return [row for row in original(*arguments) if row["is_expected"]]

    return demonstrations


def _differences_passed_over(original: Callable[..., None]) -> Any:
    return lambda code, what, found, allowed: None


def _a_year_promised(original: Callable[[str], str | None]) -> Any:
    def guaranteed_until(jax_version: str) -> str | None:
        promised = original(jax_version)
        if promised is None:
            return None
        year, _, day = promised.partition("-")
        return f"{int(year) + 1}-{day}"

    return guaranteed_until


FAULTS = (
    fault(
        name="parameters-baked-into-artifact",
        summary="An endpoint holds parameters of its own and ignores the given ones.",
        source="jax-ml/jax#6905",
        claim="4.2",
        replaces="model.endpoints.endpoint_function",
        replacement=_parameters_baked,
    ),
    fault(
        name="input-dtype-canonicalised",
        summary="Tokens of 64 bits are narrowed to 32 in silence.",
        source="jax-ml/jax#11895",
        claim="4.2",
        replaces="model.release._require_inputs",
        replacement=_inputs_narrowed,
    ),
    fault(
        name="artifact-hash-not-verified",
        summary="A program is read whatever its digest is.",
        source="NVIDIA/Megatron-LM#4378",
        claim="4.3",
        replaces="model.release._require_sha256",
        replacement=_bytes_not_hashed,
    ),
    fault(
        name="settings-defaulted-when-read",
        summary="How a release decodes is the reader's default, not what it says.",
        source="none known; named after what a reader of settings does",
        claim="4.1",
        replaces="model.release.read_manifest",
        replacement=_defaults_filled_in,
    ),
    fault(
        name="format-guaranteed-too-long",
        summary="Artifacts are promised to load a year longer than JAX promises.",
        source="none known; jax-ml/jax/docs/export/export.md promises six months",
        claim="4.1",
        replaces="model.endpoints.guaranteed_until",
        replacement=_a_year_promised,
    ),
    fault(
        name="failed-completions-hidden",
        summary="Completions that went wrong are left out of the demonstrations.",
        source="none known; the rule of the fixture asks for failures beside successes",
        claim="4.5",
        replaces="model.programs.reload_endpoints.demonstrations",
        replacement=_only_successes,
    ),
    fault(
        name="release-mismatch-warned-only",
        summary="A release of another tokenizer or preprocessing is opened.",
        source="ggml-org/llama.cpp#7476",
        claim="4.3",
        replaces="model.release._require_equal",
        replacement=_differences_passed_over,
    ),
)
