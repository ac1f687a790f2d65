"""What a run found out about the target that its release is meant for."""

from flows.reading import open_run, view_rows
from tasks.reuse import store_root

ASKED = "platform_expected"
"""The case in which the probe runs as the target would."""


def target_finding(run_id: str) -> str:
    """Returns what the probe found, as a sentence.

    Args:
        run_id: A run with the stage `qualify_tpu`.
    """
    connection = open_run(store_root(), run_id)
    # where the target was found, another platform was asked for under another case
    asked = view_rows(connection, "refusals", case_name=ASKED)
    steps = view_rows(connection, "target_plan")
    accelerator = steps[0]["accelerator"]
    if not asked or asked[0]["received"] is None:
        return (
            f"Not demonstrated: {accelerator} is there; what it computes was not "
            "measured yet."
        )
    found = asked[0]["message"].rstrip(".")
    return (
        f"Not demonstrated: {accelerator} was asked for; {found}. The {len(steps)} "
        "steps that would demonstrate it are in target_plan."
    )
