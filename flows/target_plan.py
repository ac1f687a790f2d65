"""The steps to a target as lines: what to run, and the row that it has to leave."""

from collections.abc import Sequence

from flows.reading import Row


def step_lines(steps: Sequence[Row]) -> list[str]:
    """Returns the lines of some steps, two or three each.

    Args:
        steps: Rows of the record `target_steps`.
    """
    lines = []
    for step in steps:
        claim = f"claim {step['claim']}: " if step["claim"] else ""
        lines.append(f"{step['step']:2}. {step['command']}")
        if step["expected_row"]:
            lines.append(f"    -> {claim}{step['expected_row']}")
    return lines
