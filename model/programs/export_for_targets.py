"""Lowers everything that a target has to run for that target, without having one.

Claim 5.7: the bytes that a host of the platform would load are made, read back, and say
for what they are. Nothing is compiled here and nothing is executed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from jax import export

from model.checks import rows
from model.config import ModelConfig, TrainConfig, from_dict
from model.lowered import matrix_products
from model.programs import entry
from model.target_programs import LOWERED_FOR, exported_for, target_programs

CLAIM = "5.7"


def main(request: dict[str, Any], out: Path) -> None:
    """Exports the programs for every platform, and says what they are.

    Args:
        request: ``model``, ``train`` (settings).
        out: Result folder.
    """
    # Line numbers and paths of this host are no part of a program.
    jax.config.update("jax_traceback_in_locations_limit", 0)
    model = from_dict(ModelConfig, request["model"])
    train = from_dict(TrainConfig, request["train"])
    products, measured, compared = export_all(model, train, out)
    entry.write_rows(out, "target_programs", products)
    entry.write_rows(out, "measurements", measured)
    entry.write_rows(out, "comparisons", compared)


def export_all(
    model: ModelConfig,
    train: TrainConfig,
    out: Path,
    lower: Callable[..., tuple[Any, Any, bytes]] = exported_for,
) -> tuple[list[rows.Row], list[rows.Row], list[rows.Row]]:
    """Returns rows of target_programs, measurements and comparisons."""
    products, measured, compared = [], [], []
    for platform, lowered_for in LOWERED_FOR.items():
        for program in target_programs(model, train):
            case = f"{platform}/{program.name}"
            entry.report(event="export", message=f"exporting {case}")
            made, found, data = lower(program, lowered_for)
            file = f"{platform}-{program.name}.jaxexport"
            entry.artifact(out, file).write_bytes(data)
            product = describe(platform, program.name, file, found, data)
            products.append(product)
            compared += [
                rows.comparison(
                    *(CLAIM, "exported_platforms", case, lowered_for),
                    *(product["platforms"], "the target"),
                ),
                rows.comparison(
                    *(CLAIM, "program_read_back", case, _program_sha256(made)),
                    *(product["stablehlo_sha256"], "the program before its bytes"),
                ),
            ]
            measured += check_program(case, product)
    return products, measured, compared


def describe(
    platform: str, name: str, file: str, exported: export.Exported, data: bytes
) -> rows.Row:
    """What the bytes of a program say when they are read back."""
    products = matrix_products(exported.mlir_module())
    return {
        "platform": platform,
        "program": name,
        "artifact": file,
        "sha256": hashlib.sha256(data).hexdigest(),
        "program_bytes": len(data),
        "platforms": ",".join(exported.platforms),
        "calling_convention_version": exported.calling_convention_version,
        "devices": exported.nr_devices,
        "stablehlo_sha256": _program_sha256(exported),
        "matrix_products": json.dumps(products),
    }


def check_program(case: str, product: rows.Row) -> list[rows.Row]:
    """Whether this JAX could load the program, and how its products are computed."""
    version = product["calling_convention_version"]
    oldest = export.minimum_supported_calling_convention_version
    newest = export.maximum_supported_calling_convention_version
    products = json.loads(product["matrix_products"])
    float32 = {kind: n for kind, n in products.items() if kind.startswith("f32,f32->")}
    # On an accelerator the default is a product of rounded operands.
    below = sum(n for kind, n in float32.items() if not kind.endswith(" HIGHEST"))
    return [
        rows.count(
            *(CLAIM, "conventions_unsupported", case),
            *(int(not oldest <= version <= newest), "conventions"),
            f"version {version}; {oldest} to {newest} are supported",
        ),
        rows.count(
            *(CLAIM, "float32_products_below_highest", case),
            *(below, "products", f"of {sum(products.values())}: {products}"),
        ),
    ]


def _program_sha256(exported: export.Exported) -> str:
    return hashlib.sha256(exported.mlir_module_serialized).hexdigest()


if __name__ == "__main__":
    entry.run(main)
