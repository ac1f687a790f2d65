"""Scenes about the programs of a target: lowered for it, and compiled without it.

Lowering needs no target and is real here. What libtpu would have compiled is a small
text in its form, because the compiler is an extra that few have.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from model.presets import fixture
from tests.faults import Scene, Stage

STAGE = "qualify_tpu"
BLOCK = """
ENTRY %main {
  %x = f32[2,2]{1,0} parameter(0)
  %y = f32[2,2]{1,0} convolution(%x, %x), operand_precision={highest,highest}
"""
SUM = "  %z = f32[2,2]{1,0} all-reduce(%y), to_apply=%add\n"
TOPOLOGY = "v5e:4x4"


def lowered_programs(stage: Stage) -> None:
    """Everything that a target has to run, lowered for each platform and read back."""
    from model.programs import export_for_targets
    from model.target_programs import exported_for

    config = fixture()
    _, measured, compared = export_for_targets.export_all(
        config.model, config.train, stage.folder, exported_for
    )
    stage.record(STAGE, "measurements", *measured)
    stage.record(STAGE, "comparisons", *compared)


def compiled_programs(stage: Stage) -> None:
    """The texts that a compiler made of the same programs, and what they say."""
    from model.programs.compile_for_topology import check_compiled, describe
    from model.target_programs import TRAINING_UPDATE, target_programs

    config = fixture()
    names = [each.name for each in target_programs(config.model, config.train)]
    texts = dict.fromkeys(names, BLOCK) | {TRAINING_UPDATE: BLOCK + SUM}
    stage.spoil(texts)
    client = SimpleNamespace(platform_version="made up")
    device = SimpleNamespace(client=client, device_kind="made up")
    topology = SimpleNamespace(devices=[device] * 16)
    for name, text in texts.items():
        row = describe(name, TOPOLOGY, topology, _compiled(), text)
        stage.record(STAGE, "measurements", *check_compiled(row))


def _compiled() -> Any:
    memory = SimpleNamespace(
        argument_size_in_bytes=1,
        output_size_in_bytes=1,
        temp_size_in_bytes=1,
        generated_code_size_in_bytes=1,
    )
    return SimpleNamespace(cost_analysis=dict, memory_analysis=lambda: memory)


SCENES = tuple(
    Scene(name=play.__name__, play=play)
    for play in (lowered_programs, compiled_programs)
)
