"""Faults of the programs of a target: lowered or compiled for something else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.faults import NO_REPORT
from tests.faults.declaring import of_file, of_function

_component, _file = partial(of_function, "target"), partial(of_file, "target")


def _for_the_cpu(original: Callable[..., Any]) -> Any:
    return lambda program, platform: original(program, "cpu")


def _default_precision(original: Callable[..., Any]) -> Any:
    return lambda x, weight, result, *rest: original(x, weight, result)


def _one_file(original: Callable[..., Any]) -> Any:
    kept: dict[str, tuple[Any, Any]] = {}

    def exported_for(program: Any, platform: str) -> Any:
        made, found, data = original(program, platform)
        return (made, *kept.setdefault(platform, (found, data)))

    return exported_for


LOWER = "model.target_programs.exported_for"
LOWERED = (
    _component(
        "lowered-for-the-host",
        *("lowered_programs", "5.7", LOWER),
        "The programs of a target are lowered for the CPU of the host that does it.",
        "jax-ml/jax#12642",
        _for_the_cpu,
    ),
    _component(
        "default-matmul-precision-when-lowered",
        *("lowered_programs", "5.7", "model.dense._contract"),
        "Dense products name no precision, so that a target rounds their operands.",
        "jax-ml/jax#9973",
        _default_precision,
    ),
    _component(
        "file-of-another-program",
        *("lowered_programs", "5.7", LOWER),
        "The bytes of the first program are written under every name.",
        NO_REPORT,
        _one_file,
    ),
)


def _each(old: str, new: str) -> Callable[[dict[str, str]], None]:
    def change(texts: dict[str, str]) -> None:
        for name, text in texts.items():
            texts[name] = text.replace(old, new)

    return change


TEXT = "the text of a compiled program"
COMPILED = (
    _file(
        "precision-lost-when-compiled",
        *("compiled_programs", "5.8", TEXT),
        "The compiler multiplies float32 in a lower precision than was asked for.",
        "jax-ml/jax#9973",
        _each("operand_precision={highest,highest}", "operand_precision={default}"),
    ),
    _file(
        "gradients-never-summed",
        *("compiled_programs", "5.8", TEXT),
        "The update is compiled without a collective: each device trains alone.",
        "pytorch/pytorch#22584",
        _each("all-reduce", "copy"),
    ),
    _file(
        "compiled-to-nothing",
        *("compiled_programs", "5.8", TEXT),
        "What was compiled holds no instruction.",
        NO_REPORT,
        lambda texts: texts.update(dict.fromkeys(texts, "")),
    ),
)

FAULTS = (*LOWERED, *COMPILED)
