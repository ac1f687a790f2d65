"""Runs a release on this target: its placement, a trace, and only then timings.

What comes out is kept as arrays and counts; whether it is right is judged elsewhere.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from model import tracing
from model.config import ModelConfig, ProfileConfig, TrainConfig, from_dict
from model.parameters import load_parameters
from model.programs import entry
from model.target_endpoints import loaded_programs, training_program
from model.tokenizer import prompt_tokens
from model.tracing import CACHED_DECODE, PREFILL, TRAINING_UPDATE, Region
from model.training import dropout_key
from model.workload_trace import TRACE, keep, summary

POLICY = "fp32"
PLACEMENT = "placement.json"
TIMER = "time.perf_counter_ns, ns; from the call to every output being ready"


def main(request: dict[str, Any], out: Path) -> None:
    """Executes everything once for its place, then for a trace, then for its times.

    Args:
        request: ``model``, ``train``, ``profile`` (settings), ``lowered_for``,
            ``parameters``, ``tokens`` (paths).
        out: Result folder.
    """
    model = from_dict(ModelConfig, request["model"])
    train = from_dict(TrainConfig, request["train"])
    settings = from_dict(ProfileConfig, request["profile"])
    parameters = load_parameters(Path(request["parameters"]), model)
    with np.load(request["tokens"], allow_pickle=False) as archive:
        tokens = archive["train"]
    programs = loaded_programs(model, train, request["lowered_for"])
    workload = Workload(programs, parameters, tokens, train, settings)
    _write_json(out / PLACEMENT, workload.placement())
    _write_json(out / TRACE, trace(workload, out, settings.regions))
    # Times last: nothing that went wrong before may be hidden by a number.
    entry.write_rows(out, "target_timings", timed(workload, settings.warm_samples))


class Workload:
    """Training update, prefill and cached decode, their inputs on the device."""

    def __init__(
        self,
        programs: Mapping[str, Callable[..., Any]],
        parameters: Mapping[str, jax.Array],
        tokens: np.ndarray,
        train: TrainConfig,
        settings: ProfileConfig,
    ) -> None:
        zeros = {name: np.zeros_like(array) for name, array in parameters.items()}
        average = dict(parameters) if train.optimizer.is_averaged else None
        key = jax.random.key_data(dropout_key(train.dropout_seed, 1))
        batch = tokens[: train.batch_documents]
        self.update_arguments = jax.device_put(
            (parameters, zeros, zeros, np.int32(0), average, batch, np.asarray(key))
        )
        context = tokens.shape[1] - 1
        prompt, length = prompt_tokens(settings.prompt.encode(), context)
        prefix = jax.device_put((prompt[None], np.array([length], np.int32)))
        outputs = programs[f"prefill-{POLICY}"](parameters, *prefix)
        token = jax.device_put(prompt[length - 1 : length])
        self.calls: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
            TRAINING_UPDATE: (training_program(programs), self.update_arguments),
            PREFILL: (programs[f"prefill-{POLICY}"], (parameters, *prefix)),
            CACHED_DECODE: (
                programs[f"decode-{POLICY}"],
                (parameters, token, *outputs[1:]),
            ),
        }

    def placement(self) -> dict[str, Any]:
        """Where the state lies after an update, and what the batch counted."""
        function, arguments = self.calls[TRAINING_UPDATE]
        after = jax.block_until_ready(function(*arguments))
        places = {
            f"{device.platform}:{device.id}"
            for leaf in jax.tree.leaves(after)
            for device in leaf.devices()
        }
        batch = arguments[5]
        return {
            "devices_of_state": sorted(places),
            "global_batch": list(batch.shape),
            "device_batch": sorted(
                str(list(shard.data.shape)) for shard in batch.addressable_shards
            ),
            "valid_targets": int(after[6]),
            "loss_nats": float(after[5]),
        }


def trace(workload: Workload, kept: Path, regions: int) -> dict[str, Any]:
    """Counts regions in a trace, and events on the lanes of devices.

    Args:
        workload: What is traced.
        kept: Folder that the raw trace is kept in.
        regions: Occurrences of each region.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        tracing.start(folder)
        for number in range(1, regions + 1):
            for name, (function, arguments) in workload.calls.items():
                with Region(name, number) as region:
                    region.ready(function, *arguments)
        file = tracing.stop(folder)
        keep(file, kept)
        return summary(file)


def timed(workload: Workload, samples: int) -> list[dict[str, Any]]:
    """Warm durations of each call, one row a sample."""
    found = []
    for name, (function, arguments) in workload.calls.items():
        jax.block_until_ready(function(*arguments))
        for sample in range(1, samples + 1):
            started = time.perf_counter_ns()
            jax.block_until_ready(function(*arguments))
            found.append(
                {
                    "work": name,
                    "release_policy": POLICY,
                    "sample": sample,
                    "process_id": os.getpid(),
                    "duration_ns": time.perf_counter_ns() - started,
                    "timer": TIMER,
                }
            )
    return found


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True), "utf-8")


if __name__ == "__main__":
    entry.run(main)
