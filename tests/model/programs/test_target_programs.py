"""All that a target has to run is lowered and, where the compiler is, compiled."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from model.config import to_dict
from model.lowered import read_dots
from model.presets import fixture
from model.programs import compile_for_topology, export_for_targets
from model.target_programs import (
    LOWERED_FOR,
    TargetProgram,
    exported_for,
    target_programs,
)
from tasks.tpu_compiler import ENVIRONMENT
from tests.services import libtpu

CONFIG = fixture()
PROGRAMS = 7


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    out = tmp_path_factory.mktemp("exported")
    return out, export_for_targets.export_all(CONFIG.model, CONFIG.train, out)


def test_every_program_is_lowered_for_each_platform_alone(exported) -> None:
    out, (products, measured, compared) = exported
    assert len(products) == PROGRAMS * len(LOWERED_FOR)
    assert all(row["expected"] == row["measured"] for row in compared)
    assert all(row["value_count"] == 0 for row in measured)
    assert {row["platforms"] for row in products} == {"tpu", "cuda"}
    assert len({row["sha256"] for row in products}) == len(products)
    for row in products:
        assert (out / "artifacts" / row["artifact"]).stat().st_size == (
            row["program_bytes"]
        )


def test_a_program_of_the_cpu_is_noticed(tmp_path: Path) -> None:
    """A host would refuse these bytes, whatever the file is called."""
    _, _, compared = export_for_targets.export_all(
        CONFIG.model,
        CONFIG.train,
        tmp_path,
        lambda program, _: exported_for(program, "cpu"),
    )
    wrong = [row for row in compared if row["measured"] == "cpu"]
    assert len(wrong) == PROGRAMS * len(LOWERED_FOR)
    assert all(row["first_difference"] for row in wrong)


def test_a_product_of_default_precision_is_noticed() -> None:
    shape = jax.ShapeDtypeStruct((4, 4), jnp.float32)
    program = TargetProgram("plain", jnp.dot, (shape, shape))
    _, found, data = exported_for(program, "tpu")
    row = export_for_targets.describe("tpu", "plain", "file", found, data)
    (_, products) = export_for_targets.check_program("tpu/plain", row)
    assert products["value_count"] == 1


def test_the_training_update_multiplies_in_highest_precision(exported) -> None:
    for program in target_programs(CONFIG.model, CONFIG.train):
        if program.name == "training-update":
            made, _, _ = exported_for(program, "tpu")
            dots = read_dots(made.mlir_module())
    assert len(dots) > 10
    assert {dot.precision for dot in dots} == {"HIGHEST"}


def test_a_compiled_program_without_its_precision_is_noticed() -> None:
    row = {
        "program": "prefill-fp32",
        "matrix_products": json.dumps({"f32,f32->f32 default": 2}),
        "label": "compiled, not executed",
        "compiler": "made up",
        "instructions": 3,
        "argument_bytes": 1,
        "output_bytes": 1,
        "temporary_bytes": 1,
        "collectives": "{}",
    }
    found = {
        each["measure"]: each["value_count"]
        for each in compile_for_topology.check_compiled(row)
    }
    assert found == {
        "compiled_instructions": 3,
        "compiled_products_below_highest": 2,
        "device_bytes": 3,
    }


@pytest.mark.needs("libtpu")
def test_libtpu_compiles_everything_for_a_topology(tmp_path: Path) -> None:
    """Sixteen devices that are not there; nothing is executed."""
    request = {
        "out": str(tmp_path),
        "model": to_dict(CONFIG.model),
        "train": to_dict(CONFIG.train),
        "topology": "v5e:4x4",
    }
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request))
    done = subprocess.run(
        [sys.executable, "-m", "model.programs.compile_for_topology", str(path)],
        env={**os.environ, **ENVIRONMENT, "TPU_LIBRARY_PATH": str(libtpu())},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "records" / "compiled_programs.json").read_text())
    assert len(rows) == PROGRAMS
    assert all(row["instructions"] > 100 for row in rows)
    assert {row["label"] for row in rows} == {"compiled for v5e:4x4, not executed"}
    training = rows[-1]
    assert training["devices"] == 16
    assert json.loads(training["collectives"])["all-reduce"] >= 1
    products = json.loads(training["matrix_products"])
    assert set(products) == {"f32,f32->f32 highest,highest"}
