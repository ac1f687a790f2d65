"""The numerics fingerprint: everything that may change the bits of a result.

Bitwise claims hold inside one fingerprint only (another jaxlib, instruction set, XLA
flag or core count gives other digits), so checkpoints, releases and stage keys carry
it, and a restore under another one is refused by the field that differs.
"""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

import jax
import jaxlib
import numpy as np


def _cpu_isa() -> str:
    """Digest of the instruction set extensions, or the machine name without /proc."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            flags = " ".join(sorted(value.split()))
            return hashlib.sha256(flags.encode()).hexdigest()
    return platform.machine()


def describe() -> dict[str, str]:
    """Returns the numerics fingerprint of this process by field, all values as text.

    Starts the JAX backend when none has started yet.
    """
    device = jax.devices()[0]
    settings = jax.config.values
    return {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": np.__version__,
        "platform": device.platform,
        "device_kind": device.device_kind,
        "device_count": str(jax.device_count()),
        "cpu_isa": _cpu_isa(),
        "nproc": os.environ.get("NPROC", "") or str(os.cpu_count()),
        "xla_flags": " ".join(sorted(os.environ.get("XLA_FLAGS", "").split())),
        "dtype_promotion": str(settings["jax_numpy_dtype_promotion"]),
        "rank_promotion": str(settings["jax_numpy_rank_promotion"]),
        "threefry_partitionable": str(settings["jax_threefry_partitionable"]),
        "key_implementation": str(settings["jax_default_prng_impl"]),
        "enable_x64": str(settings["jax_enable_x64"]),
        "matmul_precision": str(settings["jax_default_matmul_precision"]),
    }
