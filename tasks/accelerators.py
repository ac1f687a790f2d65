"""The accelerators that can be asked for: what they are, and how one gets them."""

import dataclasses
import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from model.config import TrainConfig
from model.limits import require
from model.refusal import ReasonCode, Refused


@dataclasses.dataclass(frozen=True, kw_only=True)
class Accelerator:
    """One kind of target."""

    name: str
    """Name by which its provider sells it."""
    platform: str
    """Platform that JAX reports for it: tpu or gpu."""
    hosts: int
    """Machines, each with a controller of its own."""
    devices: int
    """Devices on all of them, as JAX counts them."""
    way: str
    """How it is had: `queued` resources, an `instances` group, or at `hand`."""
    image: str = ""
    """Runtime version (queued) or image family (instances)."""
    machine: str = ""
    """Machine type of an instance."""
    topology: str = ""
    """Shape of the slice, such as 4x4."""
    generation: str = ""
    """How its compiler calls the generation of chips, such as v5e."""
    kinds: tuple[str, ...] = ()
    """What its runtime may call a device of it; none where any device will do."""

    def with_hosts(self, count: int) -> "Accelerator":
        """Returns it with as many hosts as stand at hand; what is sold has its own."""
        if self.way != "hand":
            return self
        devices = self.devices * count
        return dataclasses.replace(self, hosts=count, devices=devices)

    @property
    def compiled_for(self) -> str:
        """Name of its topology for the compiler, such as v5e:4x4."""
        return f"{self.generation}:{self.topology}"

    def sold(self) -> dict[str, Any]:
        """Returns what a result of it is held against, as plain JSON data."""
        return {
            "accelerator": self.name,
            "platform": self.platform,
            "hosts": self.hosts,
            "devices": self.devices,
            "kinds": list(self.kinds),
            "chip": self.generation,
        }


# Both names of each, as JAX reads them: v5p says TPU v5, which v5e does not.
# Source: jax/_src/pallas/mosaic/tpu_info.py, JAX 0.10.2
_TPU_KINDS = {
    "v5e": ("TPU v5 lite", "TPU v5e"),
    "v5p": ("TPU v5", "TPU v5p"),
    "v6e": ("TPU v6 lite", "TPU v6e"),
    "tpu7x": ("TPU7x",),
}
# Whole cards only: a part of one (MIG) has another name.
# Source: NVIDIA's driver, README, supported products
_GPU_KINDS: dict[str, tuple[str, ...]] = {
    "nvidia-gpu": (),
    "nvidia-t4": ("Tesla T4",),
    "nvidia-l4": ("NVIDIA L4",),
    "nvidia-a100": (
        *("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB"),
        *("NVIDIA A100-PCIE-40GB", "NVIDIA A100 80GB PCIe"),
    ),
    "nvidia-h100": ("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H100 NVL"),
    "nvidia-h200": ("NVIDIA H200", "NVIDIA H200 NVL"),
    "nvidia-b200": ("NVIDIA B200",),
}


def _v5e(chips: int, hosts: int, topology: str) -> Accelerator:
    return Accelerator(
        name=f"v5litepod-{chips}",
        platform="tpu",
        hosts=hosts,
        devices=chips,
        way="queued",
        image="v2-alpha-tpuv5-lite",
        topology=topology,
        generation="v5e",
        kinds=_TPU_KINDS["v5e"],
    )


# Four chips a machine. Source: Cloud TPU, machine types of each version.
def _instances(
    name: str, hosts: int, devices: int, machine: str, topology: str, image: str
) -> Accelerator:
    generation = name.partition("-")[0]
    return Accelerator(
        name=name,
        platform="tpu",
        hosts=hosts,
        devices=devices,
        way="instances",
        image=image,
        machine=machine,
        topology=topology,
        generation=generation,
        kinds=_TPU_KINDS[generation],
    )


_KNOWN = (
    _v5e(1, 1, "1x1"),
    _v5e(4, 1, "2x2"),
    _v5e(8, 1, "2x4"),
    _v5e(16, 4, "4x4"),
    _v5e(32, 8, "4x8"),
    # names of v5p count cores, two a chip, which JAX shows as one device
    _instances("v5p-8", 1, 4, "ct5p-hightpu-4t", "2x2x1", "$IMAGE_FAMILY"),
    _instances("v5p-16", 2, 8, "ct5p-hightpu-4t", "2x2x2", "$IMAGE_FAMILY"),
    _instances("v6e-4", 1, 4, "ct6e-standard-4t", "2x2", "$IMAGE_FAMILY"),
    _instances("v6e-16", 4, 16, "ct6e-standard-4t", "4x4", "$IMAGE_FAMILY"),
    _instances(
        # two devices a chip
        *("tpu7x-8", 1, 8, "tpu7x-standard-4t", "2x2x1"),
        "ubuntu-accel-2404-amd64-tpu-tpu7x",
    ),
    *(
        Accelerator(
            name=name, platform="gpu", hosts=1, devices=1, way="hand", kinds=kinds
        )
        for name, kinds in _GPU_KINDS.items()
    ),
)
ACCELERATORS: Mapping[str, Accelerator] = MappingProxyType(
    {each.name: each for each in _KNOWN}
)
"""Every known accelerator by its name."""
DEFAULTS: Mapping[str, str] = MappingProxyType(
    {"tpu": "v5litepod-16", "gpu": "nvidia-gpu"}
)
"""The accelerator that is meant where only a platform is named."""


def known_accelerator(name: str, platform: str | None = None) -> Accelerator:
    """Returns what is known about an accelerator.

    Args:
        name: Its name.
        platform: Platform that it has to be of; None takes any.

    Raises:
        Refused: setting_invalid for an unknown one, with the list of the known, or for
            one of another platform.
    """
    known = [
        each.name for each in _KNOWN if platform is None or each.platform == platform
    ]
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        kind = "" if platform is None else f" of platform {platform}"
        raise Refused(
            ReasonCode.SETTING_INVALID,
            f"accelerator {name!r}{kind} is unknown.{hint} Known: {', '.join(known)}",
        )
    return ACCELERATORS[name]


def chosen_accelerator(name: str | None, platform: str | None) -> Accelerator:
    """Returns the accelerator that is meant by a name, a platform, both or neither.

    Raises:
        Refused: setting_invalid, as `known_accelerator`.
    """
    return known_accelerator(name or DEFAULTS[platform or "tpu"], platform)


def accelerator_of(name: str | None, platform: str, hosts: int) -> Accelerator:
    """Returns the accelerator that so many hosts are together.

    Raises:
        Refused: setting_invalid for an unknown one, or for another number of hosts than
            it has: fewer would be something else under its name.
    """
    sold = chosen_accelerator(name, platform).with_hosts(hosts)
    require(
        hosts == sold.hosts and hosts > 1,
        f"queues names {hosts} hosts, and {sold.name} has {sold.hosts}",
        "a queue for each host of a slice; one host is qualified by "
        f"`harness target plan --accelerator {sold.name}`",
    )
    return sold


def require_documents(sold: Accelerator, train: TrainConfig, preset: str) -> None:
    """Refuses a slice that has more devices than a batch has documents.

    Known before a machine is had: its split program would refuse on every host.

    Args:
        sold: What is to be qualified.
        train: Recipe of what it trains.
        preset: Name of the preset that it is the recipe of.

    Raises:
        Refused: setting_invalid, for a device that would have no document.
    """
    fitting = [
        each.name
        for each in _KNOWN
        if each.platform == sold.platform and each.devices <= train.batch_documents
    ]
    require(
        sold.hosts == 1 or sold.devices <= train.batch_documents,
        f"accelerator is {sold.name!r} with {sold.devices} devices, and a batch of "
        f"preset {preset!r} has {train.batch_documents} documents",
        f"one with a document for each device: {', '.join(fitting)}",
    )
