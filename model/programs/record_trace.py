"""Records one profiler trace of training update, prefill and cached decode.

The update runs on a shadow of the training state that begins at the released
parameters; what is released is digested before and after and must be the same.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np

from model import tracing
from model.checks import rows
from model.checks import tracing as trace_checks
from model.checks.timing import SlowResult
from model.config import ModelConfig, ProfileConfig, TrainConfig, from_dict
from model.digests import tree_sha256
from model.programs import entry
from model.release import PARAMETERS_NAME, Release, load_verified
from model.tokenizer import prompt_tokens
from model.tracing import (
    CACHED_DECODE,
    PREFILL,
    SLOW_RESULT,
    TRAINING_UPDATE,
    Region,
)
from model.training import dropout_key, fresh_state, training_update

TRACE_NAME = "trace.xplane.pb"
POLICY = "fp32"


def main(request: dict[str, Any], out: Path) -> None:
    """Measures claim 4.7.

    Args:
        request: ``model``, ``train``, ``profile`` (settings), ``files`` (paths by
            artifact name), ``tokens`` (path).
        out: Result folder.
    """
    settings = from_dict(ProfileConfig, request["profile"])
    names = (f"prefill-{POLICY}", f"decode-{POLICY}")
    release = load_verified(request["files"], names)
    parameters = release.endpoints[names[0]].parameters
    before = _released_digest(request["files"], parameters)

    workload = _Workload(request, release)
    workload.run(settings.prompt.encode(), regions=1)  # compiles outside the trace
    folder = out / "trace"
    tracing.start(folder)
    ran = workload.run(settings.prompt.encode(), settings.regions)
    with Region(SLOW_RESULT, 1) as region:
        region.ready(lambda: [SlowResult()])
    file = tracing.stop(folder)

    after = _released_digest(request["files"], parameters)
    traced = trace_checks.read_regions(file)
    slow = trace_checks.read_regions(file, (SLOW_RESULT,))
    shutil.copyfile(file, entry.artifact(out, TRACE_NAME))
    entry.write_rows(out, "trace_regions", trace_checks.region_rows(traced))
    entry.write_rows(
        out,
        "measurements",
        [*trace_checks.check_trace(traced, ran), trace_checks.check_slow_region(slow)],
    )
    unchanged = rows.comparison(
        "4.7", "released_state", "", before, after, "before the trace"
    )
    entry.write_rows(out, "comparisons", [unchanged])


class _Workload:
    """The three traced computations, with their inputs on the device."""

    def __init__(self, request: dict[str, Any], release: Release) -> None:
        self.model = from_dict(ModelConfig, request["model"])
        self.train = from_dict(TrainConfig, request["train"])
        self.release = release
        with np.load(request["tokens"], allow_pickle=False) as archive:
            self.batch = jax.device_put(archive["train"][: self.train.batch_documents])

    def run(self, prompt: bytes, regions: int) -> list[Region]:
        """Runs each region so often, on a fresh shadow state, and returns them all."""
        prefill = self.release.endpoints[f"prefill-{POLICY}"]
        decode = self.release.endpoints[f"decode-{POLICY}"]
        tokens, length = prompt_tokens(prompt, self.release.context_tokens)
        arguments = jax.device_put((tokens[None], np.array([length], np.int32)))
        token = jax.device_put(np.array([tokens[length - 1]], np.int32))
        shadow = dict(prefill.parameters)
        state = fresh_state(shadow, is_averaged=self.train.optimizer.is_averaged)
        ran = []
        for number in range(1, regions + 1):
            key = dropout_key(self.train.dropout_seed, number)
            fixed = (self.batch, key, self.model, self.train.optimizer)
            with Region(TRAINING_UPDATE, number) as region:
                state, _ = region.ready(training_update, state, *fixed)
            ran.append(region)
            with Region(PREFILL, number) as region:
                prefix = region.ready(prefill.compiled, prefill.parameters, *arguments)
            ran.append(region)
            following = (token, *prefix[1:])
            with Region(CACHED_DECODE, number) as region:
                region.ready(decode.compiled, decode.parameters, *following)
            ran.append(region)
        return ran


def _released_digest(files: dict[str, str], parameters: Any) -> str:
    """Digest of the released file and of the parameters held on the device."""
    data = Path(files[PARAMETERS_NAME]).read_bytes()
    return f"{hashlib.sha256(data).hexdigest()} {tree_sha256(parameters)}"


if __name__ == "__main__":
    entry.run(main)
