"""The signs by which a target is known, and whether what was observed has each of them.

A platform is never taken from a name: JAX falls back to the CPU in silence when no
accelerator is found, and a topology description calls itself a TPU without one. So
every sign has to be there: backend, devices, kinds, runtime, chips on the bus, driver,
values computed there, and the devices' own lanes in a trace. Nothing here asks a
machine: what one answered is held against what a target answers, here or elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from model.refusal import ReasonCode, Refused

Observed = Mapping[str, Any]
"""What `model.target_observation.observe` returned, as plain JSON data."""

PROBE_SIZE = 256
"""Rows of the product that every device computes: each entry is this number."""

# PCI device ids of TPU chips. Source: jax/_src/hardware_utils.py, JAX 0.10.2
TPU_CHIPS: Mapping[str, str] = MappingProxyType(
    {
        "0x0027": "v3",
        "0x005e": "v4",
        "0x0062": "v5p",
        "0x0063": "v5e",
        "0x006f": "v6e",
        "0x0076": "tpu7x",
    }
)


@dataclass(frozen=True, kw_only=True)
class TargetPlatform:
    """What is known about a platform that can be a target."""

    name: str
    """What JAX calls the platform of a device."""
    starts_as: str
    """What JAX_PLATFORMS has to be, so that nothing else can start."""
    kinds: tuple[str, ...]
    """How the kind of every device begins."""
    runtime: str
    """What the version of the runtime names."""
    vendor: str
    """PCI vendor of the chips."""
    library: str
    """How the distribution that holds the runtime begins."""
    lane: str
    """How the plane of a device in a trace begins."""
    kernels: str
    """How the line of such a plane begins that holds what the device ran."""


PLATFORMS: Mapping[str, TargetPlatform] = MappingProxyType(
    {
        "tpu": TargetPlatform(
            name="tpu",
            starts_as="tpu",
            kinds=("TPU",),
            runtime="TPU",
            vendor="0x1ae0",
            library="libtpu",
            lane="/device:TPU:",
            kernels="XLA Modules",
        ),
        "gpu": TargetPlatform(
            name="gpu",
            starts_as="cuda",
            kinds=("NVIDIA", "Tesla", "Quadro", "GeForce"),
            runtime="CUDA",
            vendor="0x10de",
            library="jax-cuda",
            lane="/device:GPU:",
            kernels="Stream",
        ),
    }
)
"""The platforms that can be a target; a CPU is where the reference runs."""


@dataclass(frozen=True, kw_only=True)
class Sign:
    """One condition of a target, and what was found."""

    name: str
    """Name of the sign."""
    is_there: bool
    """Whether what was found is what a target shows."""
    wanted: str
    """What a target shows."""
    found: str
    """What was found."""


def target_platform(name: str) -> TargetPlatform:
    """Returns what is known about a platform.

    Raises:
        Refused: platform_mismatch for one that cannot be a target, whatever it is
            called.
    """
    if name not in PLATFORMS:
        raise Refused(
            ReasonCode.PLATFORM_MISMATCH,
            f"platform {name!r} is no target; allowed are {', '.join(PLATFORMS)}: the "
            "CPU run is the reference",
        )
    return PLATFORMS[name]


def signs_of(observed: Observed, platform: TargetPlatform) -> list[Sign]:
    """Returns every sign of a target, each judged by itself.

    Args:
        observed: What a machine answered.
        platform: The platform that is expected.
    """
    return [
        Sign(name=name, is_there=bool(is_there), wanted=wanted, found=found)
        for name, look in SIGNS.items()
        for is_there, wanted, found in [look(observed, platform)]
    ]


_Look = Callable[[Observed, TargetPlatform], tuple[bool, str, str]]


def _backend(observed: Observed, platform: TargetPlatform) -> tuple[bool, str, str]:
    found = observed["default_backend"]
    return (
        found == platform.name,
        platform.name,
        found or observed["start_error"] or "none started",
    )


def _devices(observed: Observed, platform: TargetPlatform) -> tuple[bool, str, str]:
    found = [device["platform"] for device in observed["devices"]]
    return (
        set(found) == {platform.name},
        f"every device is {platform.name}",
        ", ".join(found) or "no device",
    )


def _kinds(observed: Observed, platform: TargetPlatform) -> tuple[bool, str, str]:
    found = [device["kind"] for device in observed["devices"]]
    return (
        bool(found) and all(kind.startswith(platform.kinds) for kind in found),
        f"every kind begins with {' or '.join(platform.kinds)}",
        ", ".join(sorted(set(found))) or "no device",
    )


def _runtime(observed: Observed, platform: TargetPlatform) -> tuple[bool, str, str]:
    found = observed["platform_version"]
    return (
        platform.runtime in found.upper(),
        f"the runtime names {platform.runtime}",
        " ".join(found.split()) or "no runtime",
    )


def _chips(observed: Observed, platform: TargetPlatform) -> tuple[bool, str, str]:
    """On the bus, or as the kernel's own driver lists them where a bus is hidden."""
    on_bus = [chip["name"] for chip in observed["chips"] if _is_chip(chip, platform)]
    of_driver = observed["driver_devices"] if platform.name == "gpu" else []
    return (
        bool(on_bus or of_driver),
        f"a chip of PCI vendor {platform.vendor}",
        ", ".join([*on_bus, *of_driver]) or "no chip",
    )


def _is_chip(chip: Mapping[str, str], platform: TargetPlatform) -> bool:
    if chip["vendor"] != platform.vendor:
        return False
    if platform.name == "tpu":
        return chip["device"] in TPU_CHIPS
    # display controllers: VGA, 3D
    return chip["class"].startswith("0x03")


def _library(observed: Observed, platform: TargetPlatform) -> tuple[bool, str, str]:
    found = {
        name: version
        for name, version in observed["versions"].items()
        if name.startswith(platform.library)
    }
    return (
        bool(found),
        f"a distribution {platform.library}*",
        ", ".join(f"{name} {version}" for name, version in found.items())
        or "not installed",
    )


def _driver(observed: Observed, platform: TargetPlatform) -> tuple[bool, str, str]:
    """A TPU's driver names its version in a trace, a GPU's in the system."""
    is_tpu = platform.name == "tpu"
    found = observed["trace_metadata" if is_tpu else "driver_versions"]
    name = "tpu_version" if is_tpu else "nvidia"
    return bool(found.get(name)), f"a version of {name}", found.get(name) or "none"


def _computed_on(observed: Observed, platform: TargetPlatform) -> tuple[bool, str, str]:
    found = [platform_of for each in observed["computed"] for platform_of in each["on"]]
    expected = len(observed["local_devices"])
    return (
        set(found) == {platform.name} and len(observed["computed"]) == expected,
        f"a value on each of {expected} local devices, all {platform.name}",
        ", ".join(found) or observed["not_computed"] or "nothing was computed",
    )


def _values(observed: Observed, platform: TargetPlatform) -> tuple[bool, str, str]:
    del platform
    found = [each["value"] for each in observed["computed"]]
    return (
        bool(found) and all(value == PROBE_SIZE for value in found),
        str(PROBE_SIZE),
        ", ".join(map(str, found)) or "nothing was computed",
    )


def _lanes(observed: Observed, platform: TargetPlatform) -> tuple[bool, str, str]:
    planes = observed["trace_planes"]
    return (
        any(_is_lane(name, platform) for name in planes),
        f"a plane {platform.lane}N in a trace",
        ", ".join(planes) or "no trace",
    )


def _kernels(observed: Observed, platform: TargetPlatform) -> tuple[bool, str, str]:
    events = sum(
        count
        for plane, lines in observed["trace_planes"].items()
        if _is_lane(plane, platform)
        for line, count in lines.items()
        if line.startswith(platform.kernels)
    )
    return (
        events > 0,
        f"events in a line {platform.kernels}* of that plane",
        f"{events} events",
    )


def _is_lane(plane: str, platform: TargetPlatform) -> bool:
    number = plane.removeprefix(platform.lane).partition(" ")[0]
    return plane.startswith(platform.lane) and number.isdecimal()


SIGNS: Mapping[str, _Look] = MappingProxyType(
    {
        "default_backend": _backend,
        "device_platforms": _devices,
        "device_kinds": _kinds,
        "runtime_version": _runtime,
        "chips_on_bus": _chips,
        "runtime_library": _library,
        "driver_version": _driver,
        "computed_devices": _computed_on,
        "computed_values": _values,
        "device_lane": _lanes,
        "lane_events": _kernels,
    }
)
"""Every sign by its name; the contract lists the same."""
