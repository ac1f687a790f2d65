"""The rows about one controller of a target, alone or among those of a slice.

One host and a slice are held to the same measures by the same arithmetic; a slice adds
to each case the controller that it is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from model.checks import rows
from model.checks.differences import largest_value
from model.checks.target_reference import logit_difference, parameter_differences
from model.config import POLICIES, ModelConfig
from model.target_signs import PLATFORMS, Observed, Sign, signs_of
from model.tracing import REGIONS


def about(case: str, controller: str) -> str:
    """Returns the name of a case that may be about one controller of several."""
    return "/".join(part for part in (case, controller) if part)


def sold_row(sold: Mapping[str, Any]) -> rows.Row:
    """Returns what was asked for as a row; SQL holds the answers against it."""
    return {**sold, "kinds": ", ".join(sold["kinds"])}


def sign_counts(found: Sequence[Sign], controller: str = "") -> list[rows.Row]:
    """Claim 5.1: every sign, a row each.

    Args:
        found: What was found.
        controller: Which of several it is about.
    """
    return [
        rows.count(
            *("5.1", "sign_missing", about(sign.name, controller)),
            *(int(not sign.is_there), "signs"),
            f"found {sign.found}; a target shows {sign.wanted}",
        )
        for sign in found
    ]


def challenge_rows(found: Mapping[str, tuple[str, str]]) -> list[rows.Row]:
    """Claim 5.2: what was asked beside what was answered; nothing asked is no row.

    Args:
        found: Both by case. Without a nonce that was given out, no text of a result
            can be the answer to one, and the claim is missing what shows it.
    """
    return [
        rows.comparison(
            *("5.2", "challenge_answered", case, expected),
            *(measured or "none", "the launcher"),
        )
        for case, (expected, measured) in found.items()
        if expected
    ]


def workload_rows(
    observed: Observed, trace: Mapping[str, Any], controller: str = ""
) -> list[rows.Row]:
    """Claim 5.1: regions of the workload, and its events on the lanes of devices.

    Args:
        observed: What the host of the trace answered; empty where it did not.
        trace: What its trace holds; empty where it left none, which shows nothing.
        controller: Which of several it is about.
    """
    regions = trace["regions"] if trace else {}
    counted = {name: regions.get(name, 0) for name in REGIONS} | dict(regions)
    return [
        rows.count(
            *("5.1", "workload_lane_events", controller),
            *(_lane_events(observed, trace), "events"),
        ),
        *(
            rows.count(
                *("5.1", "traced_regions", about(name, controller), number, "regions")
            )
            for name, number in counted.items()
        ),
    ]


def _lane_events(observed: Observed, trace: Mapping[str, Any]) -> int:
    if not (observed and trace):
        return 0
    traced = {**observed, "trace_planes": trace["planes"]}
    platform = PLATFORMS[observed["platform"]]
    (lane,) = [s for s in signs_of(traced, platform) if s.name == "lane_events"]
    return int(lane.found.partition(" ")[0])


def trained_row(trained: int, devices: int) -> rows.Row:
    """Claim 5.2: devices of the accelerator that took no part in the training.

    What some of them did is nothing against the others, and shows nothing of them.

    Args:
        trained: Devices that the state of the training lay on.
        devices: Devices that the accelerator has.
    """
    told = f"{trained} of {devices} devices trained"
    row = rows.count("5.2", "devices_untrained", "", 0, "devices", told)
    if trained < devices:
        return row | {"value_count": None, "reason": "devices_untrained"}
    return row


def training_rows(
    expected: Sequence[Any],
    measured: Sequence[Mapping[str, Any]],
    parameters: Mapping[str, np.ndarray],
    model: ModelConfig,
    case: str = "",
) -> list[rows.Row]:
    """Claim 5.3: how far a training parts from that of this machine.

    Args:
        expected: Updates of the reference, all of them.
        measured: `valid_targets` and `loss_nats` of as many updates of the target.
        parameters: What it had at the end, by name.
        model: Shape of the model.
        case: Which training it is, where there are several.
    """
    pairs = list(zip(expected, measured, strict=True))
    targets = [
        abs(int(own.outcome.valid_targets) - row["valid_targets"]) for own, row in pairs
    ]
    losses = [abs(float(own.outcome.loss) - row["loss_nats"]) for own, row in pairs]
    reference = dict(expected[-1].state.parameters)
    apart, key_bias = parameter_differences(parameters, reference, model)
    detail = f"over {len(pairs)} updates"
    return [
        rows.count(
            *("5.3", "valid_targets_beyond_reference", case, sum(targets)),
            *("targets", detail),
        ),
        rows.real(
            "5.3", "loss_difference", case, largest_value(losses), "nats", detail
        ),
        rows.real(
            *("5.3", "largest_parameter_difference", case),
            *(largest_value(apart.values()), "1"),
            f"{max(apart, key=lambda name: apart[name])}, {detail}",
        ),
        rows.real("5.3", "key_bias_difference", case, key_bias, "1", detail),
    ]


def endpoint_rows(
    expected: Mapping[str, np.ndarray],
    measured: Mapping[str, np.ndarray],
    controller: str = "",
) -> list[rows.Row]:
    """Claim 5.3: logits of a target against this CPU's, for the same parameters.

    Args:
        expected: Logits of the reference by policy and case.
        measured: Those of the target.
        controller: Which of several it is about.
    """
    found = []
    for policy in POLICIES:
        names = [name for name in expected if name.startswith(f"{policy}/")]
        apart = {
            name: logit_difference(expected[name], measured.get(name)) for name in names
        }
        worst = max(apart, key=lambda name: apart[name])
        found.append(
            rows.real(
                *("5.3", "endpoint_logit_difference", about(policy, controller)),
                *(apart[worst], "logits", f"{worst}; {len(names)} cases"),
            )
        )
    return found
