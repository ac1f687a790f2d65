"""The environment every program runs under.

Numbers depend on it, so it is set in one place: platform, number of threads, and
JAX's strict settings. What a user sets on purpose (XLA_FLAGS, a platform) is kept
and shows up in the numerics fingerprint.
"""

import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tasks.errors import FolderUnusable
from tasks.target_platforms import GPU_FLAGS, STARTS_AS

DEFAULT_PLATFORM = "cpu"
DEFAULT_THREADS = "2"
VIRTUAL_DEVICES = re.compile(r"--xla_force_host_platform_device_count=\d+")


def program_environment(
    module_root: Path, changes: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Returns the environment of a program.

    Args:
        module_root: The folder its own modules are found in.
        changes: Variables that this program needs to be different.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PREFECT", "PYTEST"))
    }
    environment["JAX_PLATFORMS"] = os.environ.get("HARNESS_PLATFORM", DEFAULT_PLATFORM)
    # XLA sizes its thread pools, and with them the order of some sums, by NPROC.
    environment.setdefault("NPROC", DEFAULT_THREADS)
    environment.update(
        JAX_NUMPY_DTYPE_PROMOTION="strict",
        JAX_NUMPY_RANK_PROMOTION="raise",
        # Line numbers in lowered programs would change their bytes with a comment.
        JAX_TRACEBACK_IN_LOCATIONS_LIMIT="0",
        JAX_COMPILATION_CACHE_DIR=os.environ.get(
            "JAX_COMPILATION_CACHE_DIR", str(compilation_cache())
        ),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
        JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1",
        TF_CPP_MIN_LOG_LEVEL="2",
        # The NumPy references make thousands of tiny products; a second thread of
        # OpenBLAS only spins beside them. JAX does not use it.
        OPENBLAS_NUM_THREADS="1",
        PYTHONPATH=str(module_root),
        # A program finds modules by PYTHONPATH alone, not in the folder it starts in.
        PYTHONSAFEPATH="1",
    )
    environment.update(changes or {})
    return environment


def controller_environment(platform: str) -> dict[str, str]:
    """Returns the variables of a controller: its platform, and no made-up devices.

    Args:
        platform: What `JAX_PLATFORMS` says.
    """
    flags = VIRTUAL_DEVICES.sub("", os.environ.get("XLA_FLAGS", ""))
    if platform == STARTS_AS["gpu"]:
        flags = f"{flags} {GPU_FLAGS}"
    return {
        "JAX_PLATFORMS": platform,
        "XLA_FLAGS": " ".join(flags.split()),
        # Accelerators multiply float32 in less unless they are asked; CPUs do not.
        "JAX_DEFAULT_MATMUL_PRECISION": "highest",
    }


def root_of(module: str) -> Path:
    """Returns the folder that holds a module's top-level package, importing nothing."""
    package = module.partition(".")[0]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.has_location or spec.origin is None:
        raise ModuleNotFoundError(f"The package {package!r} cannot be found.")
    file = Path(spec.origin).resolve()
    return file.parents[1] if spec.submodule_search_locations else file.parent


def private_cache(name: str) -> Path:
    """Returns a folder only this user can read, one for each checkout.

    Compiled code is loaded and run from here: nobody else may write to it.

    Raises:
        FolderUnusable: The system refuses to make it.
    """
    checkout = hashlib.sha256(f"{root_of('model')}\0{sys.prefix}".encode()).hexdigest()
    folder = _cache_home() / "text-harness" / checkout[:16] / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for private in (folder, folder.parent, folder.parent.parent):
            private.chmod(0o700)
    except OSError as error:
        raise FolderUnusable(
            f"The cache folder {str(folder)!r} cannot be used ({error.strerror}); set "
            "XDG_CACHE_HOME to a folder that you can write to."
        ) from None
    return folder


def _cache_home() -> Path:
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        raise FolderUnusable(
            "There is no home folder for compiled code; set XDG_CACHE_HOME to a "
            "folder that you can write to."
        ) from None


def compilation_cache() -> Path:
    """Returns the folder of JAX's persistent compilation cache."""
    return private_cache("compiled")
