"""What hosts of a TPU and a GPU might answer, made up and marked: it never counts.

No target was at hand when this was written: the shape of the answers is what the
documentation and the source of the runtimes say.
"""

import copy
from typing import Any

from model.target_signs import SIGNS

_COMMON: dict[str, Any] = {
    "is_synthetic": True,
    "host": "made-up",
    "process_id": 4242,
    "python": "3.12.3",
    "driver_versions": {},
    "driver_devices": [],
    "start_error": "",
    "process_index": 0,
    "process_count": 1,
    "not_computed": "",
    "matmul_precision": "None",
    "nonce": "0123456789abcdef0123456789abcdef",
    "code_sha256_demanded": "",
    "code_sha256": "",
}
_TPU: dict[str, Any] = {
    "platform": "tpu",
    "accelerator": "v5litepod-4",
    "versions": {"jax": "0.10.2", "jaxlib": "0.10.2", "libtpu": "0.0.42.1"},
    "environment": {"JAX_PLATFORMS": "tpu", "TPU_WORKER_ID": "0"},
    "chips": [
        {"vendor": "0x1ae0", "device": "0x0063", "class": "0x120000", "name": "v5e"}
    ]
    * 4,
    "default_backend": "tpu",
    "devices": [
        {
            "id": number,
            "platform": "tpu",
            "kind": "TPU v5 lite",
            "process_index": 0,
            "coordinates": f"[{number % 2}, {number // 2}, 0]",
        }
        for number in range(4)
    ],
    "local_devices": [0, 1, 2, 3],
    "platform_version": "PJRT C API\nTFRT TPU v5 lite\nBuilt on Jun 1 2026 cl/1",
    "computed": [{"on": ["tpu"], "value": 256.0}] * 4,
    "trace_planes": {
        "/host:CPU": {"python": 3},
        "/device:TPU:0": {"XLA Modules": 4, "XLA Ops": 12},
    },
    "trace_metadata": {"tpu_version": "cl/1"},
}
_GPU: dict[str, Any] = {
    "platform": "gpu",
    "accelerator": "nvidia-h200",
    "versions": {
        "jax": "0.11.0",
        "jaxlib": "0.11.0",
        "jax-cuda13-plugin": "0.11.0",
        "jax-cuda13-pjrt": "0.11.0",
    },
    "environment": {"JAX_PLATFORMS": "cuda"},
    "chips": [
        {
            "vendor": "0x10de",
            "device": "0x2335",
            "class": "0x030200",
            "name": "0x10de:0x2335",
        }
    ],
    "driver_versions": {"nvidia": "NVRM version: NVIDIA UNIX x86_64 580.1"},
    "driver_devices": ["NVIDIA H200"],
    "default_backend": "gpu",
    "devices": [
        {
            "id": 0,
            "platform": "gpu",
            "kind": "NVIDIA H200",
            "process_index": 0,
            "coordinates": "[]",
        }
    ],
    "local_devices": [0],
    "platform_version": "PJRT C API\ncuda 13000",
    "computed": [{"on": ["gpu"], "value": 256.0}],
    "trace_planes": {
        "/host:CPU": {"python": 3},
        "/device:GPU:0": {"Stream #13(Compute)": 2},
    },
    "trace_metadata": {},
}

# Each takes one sign away, and no other.
_TPU_WITHOUT: dict[str, dict[str, Any]] = {
    "default_backend": {"default_backend": "cpu"},
    "device_platforms": {
        "devices": [*_TPU["devices"][:3], {**_TPU["devices"][3], "platform": "cpu"}]
    },
    "device_kinds": {
        "devices": [*_TPU["devices"][:3], {**_TPU["devices"][3], "kind": "cpu"}]
    },
    "runtime_version": {"platform_version": "cpu"},
    "chips_on_bus": {"chips": [{**_TPU["chips"][0], "device": "0x9999"}]},
    "runtime_library": {"versions": {"jax": "0.10.2", "jaxlib": "0.10.2"}},
    "driver_version": {"trace_metadata": {}},
    "computed_devices": {"computed": _TPU["computed"][:3]},
    "computed_values": {"computed": [{"on": ["tpu"], "value": 255.0}] * 4},
    "device_lane": {
        "trace_planes": {
            "/device:TPU:x": {"XLA Modules": 4},
            "/host:CPU": {"XLA Modules": 4},
        }
    },
    "lane_events": {"trace_planes": {"/device:TPU:0": {"XLA Modules": 0, "Steps": 2}}},
}
_GPU_WITHOUT: dict[str, dict[str, Any]] = {
    "default_backend": {"default_backend": "cpu"},
    "device_platforms": {"devices": [{**_GPU["devices"][0], "platform": "cpu"}]},
    "device_kinds": {"devices": [{**_GPU["devices"][0], "kind": "cpu"}]},
    "runtime_version": {"platform_version": "PJRT C API\nrocm 7"},
    "chips_on_bus": {
        "chips": [{**_GPU["chips"][0], "class": "0x040300"}],
        "driver_devices": [],
    },
    "runtime_library": {"versions": {"jax": "0.11.0", "jaxlib": "0.11.0"}},
    "driver_version": {"driver_versions": {}},
    "computed_devices": {"computed": [{"on": ["cpu"], "value": 256.0}]},
    "computed_values": {"computed": [{"on": ["gpu"], "value": 0.0}]},
    "device_lane": {"trace_planes": {"/host:CPU": {"Stream #13(Compute)": 2}}},
    "lane_events": {"trace_planes": {"/device:GPU:0": {"XLA Modules": 3}}},
}
# Without a lane there are no events in one either.
IMPLIED = {"device_lane": {"device_lane", "lane_events"}}
WITHOUT = {"tpu": _TPU_WITHOUT, "gpu": _GPU_WITHOUT}
assert set(_TPU_WITHOUT) == set(_GPU_WITHOUT) == set(SIGNS)


def observed_target(platform: str, without: str | None = None) -> dict[str, Any]:
    """Returns what a host of a target might answer, perhaps without one sign."""
    whole = {**_COMMON, **{"tpu": _TPU, "gpu": _GPU}[platform]}
    changes = WITHOUT[platform][without] if without else {}
    return copy.deepcopy({**whole, **changes})
