"""What travels with a released model, and how it is opened without trusting it.

Parameters, policy, tokenizer and endpoints belong together: with any one of them
changed the others still run and answer something else. The manifest names each by
digest. Loading hashes before it parses, because four in ten flipped bits of a
serialised program load without complaint and some crash the process. No part of the
training code is needed or imported.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from model import tokenizer
from model.digests import array_sha256, tree_sha256
from model.lowered import describe_endpoint
from model.refusal import ReasonCode, Refused

FORMAT = "text-harness release"
FORMAT_VERSION = 1
MANIFEST_NAME = "release.json"
PARAMETERS_NAME = "parameters.npz"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A verified endpoint with the parameters of its release."""

    name: str
    """"prefill-fp32", "decode-w8a8" and so on."""
    inputs: tuple[str, ...]
    """Dtype and shape of each argument, such as "int32[1,12]"."""
    parameters: Mapping[str, jax.Array]
    """Parameters by name, on the device."""
    compiled: Any
    """The jitted function of parameters and arguments."""

    def __call__(self, *arguments: Any) -> tuple[jax.Array, ...]:
        """Logits [1, V] and the five arrays of the cache.

        Raises:
            Refused: tokens_malformed; JAX itself narrows int64 tokens in silence.
        """
        _require_inputs(self.name, self.inputs, arguments)
        return self.compiled(self.parameters, *arguments)


@dataclass(frozen=True, kw_only=True)
class Release:
    """A verified release: its manifest and the endpoints that were asked for."""

    manifest: Mapping[str, Any]
    endpoints: Mapping[str, Endpoint]

    @property
    def context_tokens(self) -> int:
        """Most tokens a sequence may hold, BOS included."""
        return int(self.manifest["context_tokens"])


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a release, held against this version of the system.

    Raises:
        Refused: artifact_missing, artifact_altered (no JSON), tokenizer_changed,
            preprocessing_changed, or artifact_metadata_mismatch (unknown format).
    """
    data = _read_bytes(path)
    try:
        manifest = json.loads(data)
    except ValueError as error:
        raise Refused(
            ReasonCode.ARTIFACT_ALTERED,
            f"{path.name} is no JSON ({error}); make the release again",
        ) from error
    found = manifest.get("format"), manifest.get("format_version")
    if found != (FORMAT, FORMAT_VERSION):
        raise Refused(
            ReasonCode.ARTIFACT_METADATA_MISMATCH,
            f"{path.name} has format {found!r}; this system reads "
            f"{(FORMAT, FORMAT_VERSION)!r}",
        )
    context = manifest["context_tokens"]
    _require_equal(
        ReasonCode.TOKENIZER_CHANGED,
        "tokenizer",
        manifest["tokenizer"],
        tokenizer.describe(),
    )
    _require_equal(
        ReasonCode.PREPROCESSING_CHANGED,
        "preprocessing",
        manifest["preprocessing"],
        tokenizer.describe_preprocessing(context),
    )
    return manifest


def load_verified(
    files: Mapping[str, str | Path],
    names: tuple[str, ...] | None = None,
    *,
    parse: Callable[[bytearray], export.Exported] = export.deserialize,
) -> Release:
    """A release whose every byte in use was held against its manifest.

    Args:
        files: Paths by artifact name: release.json, parameters.npz, *.jaxexport.
        names: Endpoints to load; all of the manifest by default.
        parse: Reads an endpoint whose bytes were verified.

    Raises:
        Refused: With the code of the first thing that does not agree.
    """
    manifest = read_manifest(_path(files, MANIFEST_NAME))
    parameters = load_parameters(_path(files, PARAMETERS_NAME), manifest["parameters"])
    described = manifest["endpoints"]
    endpoints = {}
    for name in tuple(described) if names is None else names:
        if name not in described:
            raise Refused(
                ReasonCode.ARTIFACT_MISSING,
                f"the release has no endpoint {name!r}; it has {sorted(described)}",
            )
        path = _path(files, described[name]["file"])
        endpoints[name] = _load_endpoint(name, path, described[name], parameters, parse)
    return Release(manifest=manifest, endpoints=endpoints)


def load_parameters(path: Path, described: Mapping[str, Any]) -> dict[str, jax.Array]:
    """Parameters whose file and arrays have the digests of the manifest.

    Raises:
        Refused: parameters_mismatch for intact parameters of another run,
            artifact_altered for a damaged file.
    """
    data = _read_bytes(path)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (
        # The last is what a flipped bit of the archive's flags gives.
        *(OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error),
        RuntimeError,
    ) as error:
        raise Refused(
            ReasonCode.ARTIFACT_ALTERED,
            f"{path.name} cannot be read ({error}); fetch the release again",
        ) from error
    digest = tree_sha256(arrays)
    if digest != described["tree_sha256"]:
        raise Refused(
            ReasonCode.PARAMETERS_MISMATCH,
            f"{path.name} holds parameters {digest[:16]}; the release was made from "
            f"{described['tree_sha256'][:16]}: give the parameters of the same run",
        )
    _require_sha256(path.name, data, described["sha256"])
    return {name: jnp.asarray(array) for name, array in arrays.items()}


def describe_parameters(path: Path, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest says about parameters: file digest, identity, every array."""
    return {
        "file": PARAMETERS_NAME,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "tree_sha256": tree_sha256(arrays),
        "arrays": {
            name: {
                "dtype": np.asarray(array).dtype.name,
                "shape": list(np.shape(array)),
                "sha256": array_sha256(array),
            }
            for name, array in sorted(arrays.items())
        },
    }


def _load_endpoint(
    name: str,
    path: Path,
    described: Mapping[str, Any],
    parameters: Mapping[str, jax.Array],
    parse: Callable[[bytearray], export.Exported],
) -> Endpoint:
    data = _read_bytes(path)
    _require_sha256(path.name, data, described["sha256"])
    kind = name.partition("-")[0]
    if described["function"] != kind:
        raise Refused(
            ReasonCode.ENDPOINT_MISMATCH,
            f"endpoint {name} is described as the function {described['function']!r}; "
            f"allowed is {kind!r}",
        )
    _require_supported(name, described)
    exported = parse(bytearray(data))
    found = describe_endpoint(exported, data)
    for field, value in found.items():
        _require_equal(
            ReasonCode.ARTIFACT_METADATA_MISMATCH,
            f"{name} {field}",
            described.get(field),
            value,
        )
    return Endpoint(
        name=name,
        inputs=tuple(described["inputs"][len(parameters) :]),
        parameters=parameters,
        # Bare `exported.call` would trace again at every call.
        compiled=jax.jit(exported.call),
    )


def _require_supported(name: str, described: Mapping[str, Any]) -> None:
    """Refuses what this JAX cannot run, before any byte is parsed."""
    version = described["calling_convention_version"]
    oldest = export.minimum_supported_calling_convention_version
    newest = export.maximum_supported_calling_convention_version
    if not oldest <= version <= newest:
        raise Refused(
            ReasonCode.ARTIFACT_METADATA_MISMATCH,
            f"endpoint {name} has calling convention {version}; JAX {jax.__version__} "
            f"supports {oldest} to {newest}: export it again",
        )
    platform = jax.default_backend()
    if platform not in described["platforms"]:
        raise Refused(
            ReasonCode.PLATFORM_MISMATCH,
            f"endpoint {name} is lowered for {described['platforms']} and this process "
            f"runs on {platform!r}; export it for this platform",
        )


def _path(files: Mapping[str, str | Path], name: str) -> Path:
    if name not in files:
        raise Refused(
            ReasonCode.ARTIFACT_MISSING,
            f"{name!r} was not given; the release needs it beside {sorted(files)}",
        )
    return Path(files[name])


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused(
            ReasonCode.ARTIFACT_MISSING,
            f"{path.name} cannot be read ({error.strerror}); fetch the release again",
        ) from error


def _require_sha256(name: str, data: bytes, expected: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        raise Refused(
            ReasonCode.ARTIFACT_ALTERED,
            f"{name} has SHA-256 {found[:16]} and the manifest names {expected[:16]}; "
            "fetch the release again",
        )


def _require_inputs(name: str, inputs: tuple[str, ...], arguments: Any) -> None:
    found = tuple(
        f"{each.dtype.name}[{','.join(map(str, each.shape))}]" for each in arguments
    )
    if found != inputs:
        raise Refused(
            ReasonCode.TOKENS_MALFORMED,
            f"endpoint {name} was called with {list(found)}; allowed are "
            f"arguments of dtype and shape {list(inputs)}",
        )


def _require_equal(code: ReasonCode, what: str, found: Any, allowed: Any) -> None:
    if found != allowed:
        raise Refused(
            code,
            f"{what} of the release is {found!r}; this system has {allowed!r}: make "
            "the release again with this version",
        )
