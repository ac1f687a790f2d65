"""The platforms that can be a target, as the orchestrator has to name them."""

from collections.abc import Mapping
from types import MappingProxyType

STARTS_AS: Mapping[str, str] = MappingProxyType({"tpu": "tpu", "gpu": "cuda"})
"""What JAX_PLATFORMS has to be, so that nothing but this platform can start."""
OTHER: Mapping[str, str] = MappingProxyType({"tpu": "gpu", "gpu": "tpu"})
"""The one that is not asked for, so that its probe is refused on every machine."""
GPU_FLAGS = "--xla_gpu_deterministic_ops=true"
"""What makes a repeated update bit-identical there, as `qualify_target` sets it."""
