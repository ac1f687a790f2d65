"""Finds libtpu, an optional part that compiles for a TPU where there is none."""

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

INSTALL = "pip install 'text-harness[tpu-compile]'"
# Compile-only use asks no metadata server, and several processes may compile at once.
ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_WORKER_ID": "0",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }
)
"""Variables under which a program compiles for a topology."""


def has_compiler() -> bool:
    """Whether libtpu is installed, or TPU_LIBRARY_PATH names it."""
    named = os.environ.get("TPU_LIBRARY_PATH")
    if named:
        return Path(named).is_file()
    return importlib.util.find_spec("libtpu") is not None
