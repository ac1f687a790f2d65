"""What a compiled program says about itself: its products, its collectives, its size.

The text is XLA's own after all of its passes, so it shows what a device would run and
not what was asked for.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any

_METADATA = re.compile(r", metadata=\{[^}]*\}")
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?[\w.-]+ = ", re.MULTILINE)
_PRODUCT = re.compile(
    r"= (?P<result>\w+)\[[^\]]*\]\S* (?:convolution|dot)\((?P<rest>.*)$", re.MULTILINE
)
_OPERAND = re.compile(r"(\w+)\[[\d,]*\](?:\{[^}]*\})? %")
_DEFINED = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (\w+)\[", re.MULTILINE)
_NAME = re.compile(r"%?([\w.-]+)")
_PRECISION = re.compile(r"operand_precision=\{([^}]*)\}")
_COLLECTIVE = re.compile(
    r" (all-reduce|all-gather|reduce-scatter|collective-permute|all-to-all)"
    r"(?:-start)?\("
)


def program_sha256(text: str) -> str:
    """Digest of a compiled program without its source locations."""
    return hashlib.sha256(_METADATA.sub("", text).encode()).hexdigest()


def instruction_count(text: str) -> int:
    """Number of instructions of a compiled program, those in its parts included."""
    return len(_INSTRUCTION.findall(text))


def products(text: str) -> dict[str, int]:
    """How many products of each kind a compiled program holds.

    Returns:
        Count by "lhs,rhs->result precision", such as "f32,f32->f32 highest,highest".
    """
    types = dict(_DEFINED.findall(text))
    found: Counter[str] = Counter()
    for match in _PRODUCT.finditer(text):
        precision = _PRECISION.search(match["rest"])
        operands = _OPERAND.findall(match["rest"]) or [
            types.get(name, "?") for name in _NAME.findall(match["rest"])[:2]
        ]
        found[
            f"{','.join(operands[:2])}->{match['result']} "
            f"{precision[1] if precision else 'default'}"
        ] += 1
    return dict(sorted(found.items()))


def collectives(text: str) -> dict[str, int]:
    """How many collective operations of each kind a compiled program holds."""
    return dict(sorted(Counter(_COLLECTIVE.findall(text)).items()))


def costs(compiled: Any) -> dict[str, float]:
    """What the compiler expects a run to cost: operations and bytes it touches."""
    analysis = compiled.cost_analysis() or {}
    names = {"flops": "flops", "bytes accessed": "bytes_accessed"}
    return {name: float(analysis.get(key, 0.0)) for key, name in names.items()}


def memory(compiled: Any) -> dict[str, int]:
    """Bytes of a device that a run takes, by what they are for."""
    analysis = compiled.memory_analysis()
    return {
        "argument_bytes": int(analysis.argument_size_in_bytes),
        "output_bytes": int(analysis.output_size_in_bytes),
        "temporary_bytes": int(analysis.temp_size_in_bytes),
        "code_bytes": int(analysis.generated_code_size_in_bytes),
    }
