"""Times the reloaded endpoints in one process, its first calls apart.

The first process of a stage starts with an empty compilation cache, so its first calls
compile; later ones find what it compiled, and their first calls say so.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax

from model.checks import rows, timing
from model.config import POLICIES, ProfileConfig, from_dict
from model.programs import entry


def main(request: dict[str, Any], out: Path) -> None:
    """Measures claim 4.6 in this process.

    Args:
        request: ``profile`` (settings), ``files`` (paths by artifact name),
            ``process`` (number of this process, from 1).
        out: Result folder.
    """
    settings = from_dict(ProfileConfig, request["profile"])
    prompt, process = settings.prompt.encode(), request["process"]
    cached = compiled_programs()
    jax.devices()  # starting the backend is no part of any sample
    measured = [
        timing.check_timer(),
        rows.count(
            "4.6",
            "programs_compiled_before" if process == 1 else "programs_found_compiled",
            f"{process}",
            cached,
            "programs",
        ),
        rows.real(
            "4.6", "load_average_at_start", f"{process}", os.getloadavg()[0], "1"
        ),
    ]
    taken = []
    for policy in POLICIES:
        samples = timing.sample_policy(
            request["files"], policy, prompt, settings.warm_samples
        )
        taken += timing.timing_rows(
            samples, policy, process, os.getpid(), is_cold=not cached
        )
        measured += timing.check_samples(
            samples, policy, process, len(prompt) + 1, is_cold=not cached
        )
    entry.write_rows(out, "timings", taken)
    entry.write_rows(out, "measurements", measured)


def compiled_programs() -> int:
    """Programs in the persistent compilation cache of this process; 0 without one."""
    folder = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    if not folder or not Path(folder).is_dir():
        return 0
    return sum(1 for file in Path(folder).iterdir() if file.name.endswith("-cache"))


if __name__ == "__main__":
    entry.run(main)
