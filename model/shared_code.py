"""Compiled code of controller 0 for all controllers of a machine, on CPUs.

JAX names compiled code in its cache by the device that it is for, and process 0 alone
writes there: on CPUs every other controller of a gang would compile the same programs
again, in each gang. The code itself knows no device. So controllers that share a
machine and a cache look for it under the name that controller 0 gives it. JAX has no
setting for that (on GPUs it leaves the device out of the name itself), which is why
private names of it stand here, and nowhere else.
"""

from __future__ import annotations

import json
import platform
from typing import Any

import jax
import numpy as np
from jax._src import cache_key, distributed

from model.runtime import describe

WAIT_MILLISECONDS = 60_000
"""Longest wait for what another controller, which has joined already, says at once."""


def share() -> bool:
    """Shares compiled code with controller 0, once all have joined; all have to call.

    Controllers of other machines, or with a cache of their own, keep what they compile:
    to JAX each of them is process 0. Nothing else looks at that number once devices are
    known.

    Returns:
        Whether all controllers share one cache.
    """
    client: Any = distributed.global_state.client
    own = {"place": _place(), "devices": _devices().hex()}
    client.key_value_set(f"code/{jax.process_index()}", json.dumps(own))
    told = [
        json.loads(client.blocking_key_value_get(f"code/{number}", WAIT_MILLISECONDS))
        for number in range(jax.process_count())
    ]
    is_shared = all(each["place"] == told[0]["place"] for each in told)
    if not is_shared:
        distributed.global_state.process_id = 0
    elif jax.process_index() > 0:
        _look_for_code_of_first(bytes.fromhex(told[0]["devices"]))
    return is_shared


def _place() -> list[Any]:
    """Returns what has to be alike for code to be found, and to run."""
    cache = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    return [platform.node(), describe()["cpu_isa"], cache]


class _Heard:
    """Hears what JAX would hash."""

    def __init__(self) -> None:
        self.content = b""

    def update(self, content: bytes) -> None:
        self.content += content


def _devices() -> bytes:
    """Returns what the devices of this controller add to a name."""
    heard: Any = _Heard()
    cache_key._hash_accelerator_config(heard, np.array(jax.devices()))
    return heard.content


def _look_for_code_of_first(devices: bytes) -> None:
    """Has JAX name code as controller 0 does.

    Args:
        devices: What the devices of controller 0 add to a name.
    """
    hash_options = cache_key._hash_serialized_compile_options

    def named(heard: Any, options: Any, strip_device_assignment: bool = False) -> None:
        assigned = options.device_assignment
        is_for_one = assigned is not None and _count(assigned) == 1
        hash_options(heard, options, strip_device_assignment or is_for_one)

    private: Any = cache_key
    private._hash_serialized_compile_options = named
    private._hash_accelerator_config = lambda heard, _: heard.update(devices)


def _count(assigned: Any) -> int:
    return int(assigned.replica_count() * assigned.computation_count())
