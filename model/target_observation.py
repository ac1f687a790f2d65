"""Asks the machine everything by which a target is known; judges nothing.

What is asked of the system (bus, driver, distributions) does not start a backend; what
is asked of JAX does. A value is computed on every local device and a trace is taken of
that, because a list of devices can be had without any device.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform as machine
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.extend.backend
import jax.numpy as jnp
from jax.profiler import ProfileData

from model.target_signs import PROBE_SIZE, TPU_CHIPS, TargetPlatform

PCI = Path("/sys/bus/pci/devices")
NVIDIA = Path("/proc/driver/nvidia")
_VARIABLES = ("TPU_", "JAX_", "XLA_", "LIBTPU_", "CUDA_", "NVIDIA_", "MEGASCALE_")
# An address says where a machine is, which is nobody's business; equal ones stay equal.
_ADDRESSES = ("HOSTNAME", "ADDRESS", "ENDPOINT", "COORDINATOR")
_DISTRIBUTIONS = ("jax", "jaxlib", "libtpu", "numpy", "flatbuffers", "ml-dtypes")


def observe(platform: TargetPlatform) -> dict[str, Any]:
    """Returns what this machine answers, as plain JSON data.

    Args:
        platform: The platform that is expected; on another one nothing is computed.
    """
    observed = _of_system()
    try:
        devices = jax.devices()
    except (RuntimeError, AssertionError) as error:
        # JAX asserts where no plugin of the platform that was asked for is installed.
        reason = str(error).partition("\n")[0]
        return observed | {"start_error": reason or "no plugin of it is installed"}
    backend = jax.default_backend()
    local = jax.local_devices()
    observed |= {
        "default_backend": backend,
        "devices": [_device(each) for each in devices],
        "local_devices": [each.id for each in local],
        "platform_version": jax.extend.backend.get_backend().platform_version,
        "process_index": jax.process_index(),
        "process_count": jax.process_count(),
    }
    if backend != platform.name:
        return observed | {"not_computed": f"not asked, because it runs on {backend}"}
    planes, metadata = traced(lambda: computed(local))
    return observed | {
        "computed": computed(local),
        "trace_planes": planes,
        "trace_metadata": metadata,
    }


def _of_system() -> dict[str, Any]:
    """What needs no backend, and what is not known before one has started."""
    return {
        "host": machine.node(),
        "process_id": os.getpid(),
        "python": machine.python_version(),
        "versions": versions(),
        "environment": environment(os.environ),
        "chips": chips(),
        "driver_versions": driver_versions(),
        "driver_devices": driver_devices(),
        "start_error": "",
        "default_backend": "",
        "devices": [],
        "local_devices": [],
        "platform_version": "",
        "process_index": 0,
        "process_count": 0,
        "not_computed": "",
        "computed": [],
        "trace_planes": {},
        "trace_metadata": {},
        "matmul_precision": str(jax.config.values["jax_default_matmul_precision"]),
    }


def _device(device: Any) -> dict[str, Any]:
    return {
        "id": device.id,
        "platform": device.platform,
        "kind": device.device_kind,
        "process_index": device.process_index,
        "coordinates": str(list(getattr(device, "coords", None) or [])),
    }


def computed(devices: list[Any]) -> list[dict[str, Any]]:
    """Returns, a local device each, where a product was computed and what it is."""
    product = jax.jit(lambda x: jnp.dot(x, x, preferred_element_type=jnp.float32))
    found = []
    for device in devices:
        # Sums of 256 ones are exact in float32.
        ones = jnp.ones((PROBE_SIZE, PROBE_SIZE), jnp.bfloat16)
        value = jax.block_until_ready(product(jax.device_put(ones, device)))
        entries = {float(value.min()), float(value.max())}
        found.append(
            {
                "on": [each.platform for each in value.devices()],
                "value": entries.pop() if len(entries) == 1 else str(sorted(entries)),
            }
        )
    return found


def traced(work: Any) -> tuple[dict[str, dict[str, int]], dict[str, str]]:
    """Returns events a line of each plane of a trace of some work, and its metadata."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            work()
        (file,) = Path(folder).rglob("*.xplane.pb")
        return traced_file(file)


def traced_file(file: Path) -> tuple[dict[str, dict[str, int]], dict[str, str]]:
    """Returns events a line of each plane of a trace file, and its metadata."""
    planes: dict[str, dict[str, int]] = {}
    metadata: dict[str, str] = {}
    for plane in ProfileData.from_file(str(file)).planes:
        lines = planes.setdefault(plane.name, {})
        for line in plane.lines:
            lines[line.name] = lines.get(line.name, 0) + sum(1 for _ in line.events)
        if plane.name == "/host:metadata":
            metadata |= {str(name): str(value) for name, value in plane.stats}
    return planes, metadata


def chips(root: Path = PCI) -> list[dict[str, str]]:
    """Returns the chips of Google and NVIDIA on the PCI bus."""
    found = []
    for vendor in sorted(root.glob("*/vendor")):
        read = {name: _line(vendor.with_name(name)) for name in ("device", "class")}
        maker = _line(vendor)
        if maker in ("0x1ae0", "0x10de"):
            name = TPU_CHIPS.get(read["device"], f"{maker}:{read['device']}")
            found.append({"vendor": maker, "name": name, **read})
    return found


def driver_versions(root: Path = NVIDIA) -> dict[str, str]:
    """Returns what a driver of the system says that it is."""
    lines = _line(root / "version")
    return {"nvidia": lines} if lines else {}


def driver_devices(root: Path = NVIDIA) -> list[str]:
    """Returns the models of the devices that NVIDIA's driver has found."""
    found = []
    for information in sorted(root.glob("gpus/*/information")):
        for line in information.read_text("utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "Model":
                found.append(value.strip())
    return found


def versions() -> dict[str, str]:
    """Returns the installed distributions that compute, and their versions."""
    found = {}
    for each in importlib.metadata.distributions():
        name = str(each.metadata["Name"]).lower().replace("_", "-")
        if name in _DISTRIBUTIONS or name.startswith(("jax-", "nvidia-")):
            found[name] = each.version
    return dict(sorted(found.items()))


def environment(variables: Any) -> dict[str, str]:
    """Returns the variables that steer a runtime, addresses by their digest alone."""
    found = {}
    for name in sorted(variables):
        if name.startswith(_VARIABLES) or name == "NPROC":
            value = variables[name]
            if any(word in name for word in _ADDRESSES):
                value = f"sha256:{hashlib.sha256(value.encode()).hexdigest()}"
            found[name] = value
    return found


def _line(path: Path) -> str:
    """Returns the first line of a file of the kernel; nothing where there is none."""
    try:
        return path.read_text("utf-8").strip().partition("\n")[0]
    except OSError:
        return ""
