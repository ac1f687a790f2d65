"""What a lowered update divides by, and what its devices add up: read off the program.

That a loss is a mean over the valid targets of the whole batch, and not a mean of the
means of devices, stands in the text of the program: in the shape of the counts that are
summed into its denominator.
"""

from __future__ import annotations

import re

_COUNT = re.compile(
    r"(%\S+) = stablehlo\.reduce\(.*applies stablehlo\.add across.*"
    r"\(tensor<((?:\d+x)+)i32>, tensor<i32>\) -> tensor<i32>"
)
_AS_REAL = re.compile(
    r"(%\S+) = stablehlo\.convert (%\S+) : \(tensor<i32>\) -> tensor<f32>"
)
_DIVISION = re.compile(r"stablehlo\.divide %\S+, (%\S+) : tensor<f32>")
_DEVICES = re.compile(r"mhlo\.num_partitions = (\d+)")
_SUMMED_COUNT = re.compile(r"= s32\[\]\S* all-reduce(?:-start)?\(")


def normalisation(lowered: str, compiled: str) -> str:
    """Returns what an update divides by, and whether devices add their counts up.

    Args:
        lowered: StableHLO text of the update.
        compiled: HLO text of the same, for the devices it runs on.

    Returns:
        For instance "sum of i32[16x12], added up over 2 devices"; "nothing counted"
        where no denominator comes from counted targets.
    """
    found: set[str] = set()
    for function in lowered.split("func.func"):
        counts = {name: shape.rstrip("x") for name, shape in _COUNT.findall(function)}
        reals = dict(_AS_REAL.findall(function))
        for denominator in _DIVISION.findall(function):
            shape = counts.get(reals.get(denominator, ""))
            if shape is not None:
                found.add(f"i32[{shape}]")
    if not found:
        return "nothing counted"
    devices = _DEVICES.search(lowered)
    number = int(devices[1]) if devices else 1
    is_added = _SUMMED_COUNT.search(compiled) is not None
    over = f", added up over {number} devices" if is_added else ""
    return f"sum of {' and '.join(sorted(found))}{over}"
