"""Exports the six endpoints of a release and writes the manifest that travels along.

Beside the artifacts it leaves what the jitted source computes on fixed inputs, for the
process that will reload the release without any source.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from model import release, runtime, tokenizer
from model.checks import endpoints as endpoint_checks
from model.checks import lowered as lowered_checks
from model.checks import rows
from model.config import POLICIES, ExportConfig, ModelConfig, from_dict
from model.endpoints import (
    KINDS,
    endpoint_function,
    export_endpoint,
    release_manifest,
)
from model.lowered import describe_endpoint
from model.parameters import Parameters, load_parameters
from model.programs import entry

SOURCE_OUTPUTS = "source_outputs.npz"
EXPECTED_SETTINGS = "expected_settings.json"


def main(request: dict[str, Any], out: Path) -> None:
    """Writes six artifacts, release.json and the outputs of the source.

    Args:
        request: ``model``, ``export`` (settings), ``parameters`` (path).
        out: Result folder.
    """
    model = from_dict(ModelConfig, request["model"])
    settings = from_dict(ExportConfig, request["export"])
    path = Path(request["parameters"])
    parameters = load_parameters(path, model)

    described, dots = {}, []
    for policy in POLICIES.values():
        for kind in KINDS:
            name = f"{kind}-{policy.name}"
            entry.report(event="export", message=f"exporting {name}")
            exported, data = export_endpoint(kind, model, policy, settings.platforms)
            file = f"{name}.jaxexport"
            entry.artifact(out, file).write_bytes(data)
            described[name] = {"file": file, **describe_endpoint(exported, data)}
            dots += lowered_checks.dot_rows(
                exported.mlir_module(), model, kind, policy.name, exported.platforms
            )
    manifest = release_manifest(
        model,
        parameters=release.describe_parameters(path, parameters),
        endpoints=described,
        maximum_new_tokens=settings.maximum_new_tokens,
        runtime=runtime.describe(),
    )
    text = json.dumps(manifest, indent=1, sort_keys=True)
    entry.artifact(out, release.MANIFEST_NAME).write_text(text + "\n", "utf-8")

    outputs = source_outputs(parameters, model, settings.prompts[0].encode())
    np.savez(out / SOURCE_OUTPUTS, allow_pickle=False, **outputs)
    kept = {name: value for name, value in manifest.items() if name != "endpoints"}
    (out / EXPECTED_SETTINGS).write_text(json.dumps(kept), "utf-8")
    entry.write_rows(out, "endpoints", _endpoint_rows(described))
    entry.write_rows(out, "release_settings", _setting_rows(manifest))
    entry.write_rows(out, "measurements", _measurements(described))
    entry.write_rows(out, "lowered_dots", dots)
    measured, compared = lowered_checks.check_dots(dots, model)
    entry.write_rows(out, "measurements", measured)
    entry.write_rows(out, "comparisons", compared)


def source_outputs(
    parameters: Parameters, model: ModelConfig, normal: bytes
) -> dict[str, np.ndarray]:
    """Arguments and outputs of the jitted source on the fixed prompts.

    Args:
        parameters: Parameters by name.
        model: Shape of the model.
        normal: An ordinary prompt of this corpus.

    Returns:
        Arrays by "endpoint/case/in/index" and "endpoint/case/out/index".
    """
    found: dict[str, np.ndarray] = {}
    prompts = endpoint_checks.boundary_prompts(model.context_tokens, normal)
    for policy in POLICIES.values():
        prefill = jax.jit(endpoint_function("prefill", model, policy))
        decode = jax.jit(endpoint_function("decode", model, policy))
        for case, prompt in prompts.items():
            tokens, length = tokenizer.prompt_tokens(prompt, model.context_tokens)
            arguments = (tokens[None], np.array([length], np.int32))
            outputs = prefill(parameters, *arguments)
            _keep(found, f"prefill-{policy.name}/{case}", arguments, outputs)
            if length < model.context_tokens:
                token = np.array([tokenizer.encode(b"a")[0]], np.int32)
                following = (token, *outputs[1:])
                outputs = decode(parameters, *following)
                _keep(found, f"decode-{policy.name}/{case}", following, outputs)
    return found


def _keep(
    found: dict[str, np.ndarray],
    prefix: str,
    arguments: tuple[Any, ...],
    outputs: tuple[Any, ...],
) -> None:
    for direction, arrays in (("in", arguments), ("out", outputs)):
        for index, array in enumerate(arrays):
            storable = endpoint_checks.as_storable(array)
            found[f"{prefix}/{direction}/{index}"] = storable


def _endpoint_rows(described: dict[str, dict[str, Any]]) -> list[rows.Row]:
    return [
        {
            "endpoint": name.partition("-")[0],
            "release_policy": name.partition("-")[2],
            "artifact": each["file"],
            "sha256": each["sha256"],
            "artifact_bytes": each["bytes"],
            "platforms": ",".join(each["platforms"]),
            "calling_convention_version": each["calling_convention_version"],
            "stablehlo_sha256": each["stablehlo_sha256"],
            "inputs": json.dumps(each["inputs"]),
            "outputs": json.dumps(each["outputs"]),
            "matrix_products": json.dumps(each["matrix_products"]),
            "float32_operations": ",".join(each["float32_operations"]),
        }
        for name, each in described.items()
    ]


def _setting_rows(manifest: dict[str, Any]) -> list[rows.Row]:
    """The manifest as names and values; arrays and endpoints have their own tables."""
    found = []
    for name, value in manifest.items():
        if name == "endpoints":
            continue
        parts = value.items() if isinstance(value, dict) else (("", value),)
        found += [
            {
                "name": f"{name}.{part}" if part else name,
                "value": each if isinstance(each, str) else json.dumps(each),
            }
            for part, each in parts
            if part != "arrays"
        ]
    return found


def _measurements(described: dict[str, dict[str, Any]]) -> list[rows.Row]:
    modules = endpoint_checks.TRAINING_MODULES
    known = endpoint_checks.importable(modules)
    found = [
        rows.count("4.1", "endpoints", "", len(described), "artifacts"),
        rows.count(
            "4.2",
            "training_modules_unknown_to_source",
            "",
            len(modules) - len(known),
            "modules",
            ",".join(modules),
        ),
    ]
    found += [
        rows.count("4.1", "artifact_bytes", name, each["bytes"], "bytes")
        for name, each in described.items()
    ]
    return found


if __name__ == "__main__":
    entry.run(main)
