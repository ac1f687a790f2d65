"""What is asked of a machine that has the target, where others have none to refuse.

That a platform is refused where it is not there can be shown on every machine, because
none has a TPU and a GPU of both makers at once: one that has the target is asked for
the other platform, in the same environment but for what that one starts as.
"""

from collections.abc import Mapping
from typing import Any

from tasks.accelerators import DEFAULTS
from tasks.errors import ProgramRefused
from tasks.target_platforms import OTHER, STARTS_AS
from tasks.work import Work
from warehouse.records.targets import TargetDevice

PROBE = "model.programs.probe_target"
ENVIRONMENTS = ("platform_unset", "platform_expected")
"""Cases of an environment in which a machine may start its own platform."""


def is_here(work: Work, request: Mapping[str, Any]) -> bool:
    """Returns whether a probe found devices of the platform that it asked for.

    Args:
        work: The working side of the stage, with what the probe left.
        request: What the probe was asked. In any other of its cases nothing but a CPU
            may start, and a device of a target is a probe that lies.
    """
    platform, case = request["target"]["platform"], request["case"]
    return case in ENVIRONMENTS and any(
        row.case_name == case and row.platform == platform
        for row in work.records
        if isinstance(row, TargetDevice)
    )


def ask_elsewhere(
    work: Work, request: Mapping[str, Any]
) -> tuple[str, str | None, str]:
    """Asks for the other platform, and returns the case, its reason and the message.

    Args:
        work: The working side of the stage.
        request: What a probe was asked that found the target.
    """
    other = OTHER[request["target"]["platform"]]
    case = f"{request['case']}/{other}"
    target = {"platform": other, "accelerator": DEFAULTS[other]}
    is_unset = request["case"] == "platform_unset"
    environment = {"JAX_PLATFORMS": "" if is_unset else STARTS_AS[other]}
    asked = {**request, "case": case, "target": target}
    try:
        work.run(PROBE, asked, label=case.replace("/", "-"), environment=environment)
    except ProgramRefused as refused:
        work.gather(refused.run)
        return case, refused.code, str(refused)
    return case, None, ""
