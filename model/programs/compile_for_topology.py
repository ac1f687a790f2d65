"""Compiles what a target has to run for a named topology of it, without having one.

Claim 5.8: libtpu, the compiler of the platform, makes real programs for real chips out
of a description alone. They are compiled and never executed here, and say nothing about
a target; but what cannot be compiled for it could not run on it either.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from model import compiled
from model.checks import rows
from model.config import ModelConfig, TrainConfig, from_dict
from model.programs import entry
from model.target_programs import TRAINING_UPDATE, TargetProgram, target_programs

CLAIM = "5.8"
TOKENS_ARGUMENT = 5


def main(request: dict[str, Any], out: Path) -> None:
    """Compiles the programs and says what came of them.

    Args:
        request: ``model``, ``train`` (settings), ``topology``, such as "v5e:4x4".
        out: Result folder.
    """
    model = from_dict(ModelConfig, request["model"])
    train = from_dict(TrainConfig, request["train"])
    topology = topologies.get_topology_desc(
        platform="tpu", topology_name=request["topology"]
    )
    described: list[rows.Row] = []
    measured: list[rows.Row] = []
    for program in target_programs(model, train):
        entry.report(event="compile", message=f"compiling {program.name}")
        started_ns = time.perf_counter_ns()
        made = compile_program(program, list(topology.devices))
        duration_ns = time.perf_counter_ns() - started_ns
        text = made.as_text()
        entry.artifact(out, f"tpu-{program.name}.hlo.txt").write_text(text, "utf-8")
        row = describe(program.name, request["topology"], topology, made, text)
        described.append({**row, "duration_ns": duration_ns})
        measured += check_compiled(row)
    entry.write_rows(out, "compiled_programs", described)
    entry.write_rows(out, "measurements", measured)


def compile_program(program: TargetProgram, devices: list[Any]) -> Any:
    """An endpoint for one device, the training update for all devices together."""
    if program.name != TRAINING_UPDATE:
        one = SingleDeviceSharding(devices[0])
        arguments = _placed(program.arguments, one)
    else:
        mesh = Mesh(np.array(devices), ("data",))
        whole = NamedSharding(mesh, PartitionSpec())
        parted = NamedSharding(mesh, PartitionSpec("data"))
        arguments = tuple(
            _placed(argument, parted if number == TOKENS_ARGUMENT else whole)
            for number, argument in enumerate(program.arguments)
        )
    traced = jax.jit(program.function).trace(*arguments)
    return traced.lower(lowering_platforms=("tpu",)).compile()


def _placed(tree: Any, sharding: Any) -> Any:
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        tree,
    )


def describe(
    name: str, topology_name: str, topology: Any, made: Any, text: str
) -> rows.Row:
    """What a compiled program says about itself, as a row but for its duration."""
    devices = topology.devices
    built = " ".join(str(devices[0].client.platform_version).split())
    return {
        "platform": "tpu",
        "program": name,
        "topology": topology_name,
        "device_kind": devices[0].device_kind,
        "devices": len(devices) if name == TRAINING_UPDATE else 1,
        "compiler": f"libtpu {compiler_version()}, {built}",
        "label": f"compiled for {topology_name}, not executed",
        "hlo_sha256": compiled.program_sha256(text),
        "instructions": compiled.instruction_count(text),
        "matrix_products": json.dumps(compiled.products(text)),
        "collectives": json.dumps(compiled.collectives(text)),
        **compiled.costs(made),
        **compiled.memory(made),
    }


def compiler_version() -> str:
    """Version of the distribution; one that is found by its path alone has none."""
    # A plain import, so that another version is another key of the stage.
    try:
        import libtpu
    except ImportError:
        return "from TPU_LIBRARY_PATH"
    return str(libtpu.__version__)


def check_compiled(row: rows.Row) -> list[rows.Row]:
    """Claim 5.8 of one compiled program."""
    case = f"tpu/{row['program']}"
    products = json.loads(row["matrix_products"])
    below = sum(
        number
        for kind, number in products.items()
        if kind.startswith("f32,f32->f32") and not kind.endswith(" highest,highest")
    )
    detail = f"{row['label']}; {row['compiler']}"
    total = row["argument_bytes"] + row["output_bytes"] + row["temporary_bytes"]
    found = [
        rows.count(
            *(CLAIM, "compiled_instructions", case),
            *(row["instructions"], "instructions", detail),
        ),
        rows.count(
            *(CLAIM, "compiled_products_below_highest", case),
            *(below, "products", json.dumps(products)),
        ),
        rows.count(CLAIM, "device_bytes", case, total, "bytes", detail),
    ]
    if row["program"] == TRAINING_UPDATE:
        sums = json.loads(row["collectives"])
        name, number = "gradient_sums", sum(sums.values())
        found.append(rows.count(CLAIM, name, case, number, "collectives", str(sums)))
    return found


if __name__ == "__main__":
    entry.run(main)
