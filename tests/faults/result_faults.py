"""Faults of what a target computes: its sums, its restart and its settings."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from model.target_result import TRAINED_UPDATES, UNCOMMITTED_UPDATE
from tests.faults import NO_REPORT
from tests.faults.declaring import of_file

_file = partial(of_file, "target")


def _other(step: str, kind: str, first: int) -> Callable[[Any], None]:
    """Returns what gives a kind other digests from an update of a step on."""

    def change(home: Any) -> None:
        for line in home.traces[step][1:]:
            for digest in line["digests"]:
                if line["update"] >= first and digest["kind"] == kind:
                    digest["sha256"] += "-other"

    return change


def _no_end(home: Any) -> None:
    """All three end early, and agree in all that they lack."""
    for lines in home.traces.values():
        del lines[-1]


def _copied(home: Any) -> None:
    folder = home.folder / "repeated"
    shutil.rmtree(folder)
    shutil.copytree(home.folder / "trained", folder)
    home.steps["repeated"] = home.steps["trained"]


def _other_losses(home: Any) -> None:
    path = home.folder / "trained" / "records" / "updates.json"
    rows = json.loads(path.read_text())
    rows[3]["loss_nats"] += 2.0**-20
    path.write_text(json.dumps(rows))


def _other_arrays(home: Any) -> None:
    path = home.folder / LAST / "arrays.npz"
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays["parameters/w"] = np.nextafter(arrays["parameters/w"], np.float32(9))
    np.savez(path, **arrays)


LAST = f"trained/checkpoints/update-{TRAINED_UPDATES:06d}"
UNCOMMITTED = f"killed/checkpoints/update-{UNCOMMITTED_UPDATE:06d}"
TRACE = "artifacts/trace.jsonl of a step"
RESTARTS = (
    _file(
        "sums-in-another-order-each-time",
        *("target_restart", "5.3", TRACE),
        "Two processes on one target make other updates of the same batches.",
        "jax-ml/jax#4823",
        _other("repeated", "parameters", 1),
    ),
    _file(
        "moments-cold-after-restart-on-target",
        *("target_restart", "5.5", TRACE),
        "The optimizer starts again from zero after the restart.",
        "thinking-machines-lab/tinker-feedback#126",
        _other("resumed", "first_moment", 5),
    ),
    _file(
        "updates-missing-in-every-trace",
        *("target_restart", "5.5", TRACE),
        "The last update is in no trace, so that nothing differs in it.",
        NO_REPORT,
        _no_end,
    ),
    _file(
        "killed-process-ended-by-itself",
        *("target_restart", "5.5", "manifest.json of a result"),
        "The training that was to be killed came to its own end first.",
        NO_REPORT,
        lambda home: home.steps["killed"].update(return_code=0),
    ),
    _file(
        "killed-training-left-nothing",
        *("target_restart", "5.5", "killed of a result"),
        "Nothing of the training that was killed lies there, and no row misses it.",
        NO_REPORT,
        lambda home: shutil.rmtree(home.folder / "killed"),
    ),
    _file(
        "nothing-uncommitted-was-left",
        *("target_restart", "5.5", "killed/checkpoints of a result"),
        "No newer checkpoint without a commit lay there, so that none was passed over.",
        NO_REPORT,
        lambda home: shutil.rmtree(home.folder / UNCOMMITTED),
    ),
    _file(
        "repetition-is-a-copy",
        *("target_restart", "5.3", "repeated of a result"),
        "What is called a repetition is a copy of the files of the first training.",
        NO_REPORT,
        _copied,
    ),
    _file(
        "losses-of-another-machine",
        *("target_restart", "5.3", "trained/records/updates.json of a result"),
        "The losses on record are those of a CPU, and no longer those of the training.",
        NO_REPORT,
        _other_losses,
    ),
    _file(
        "parameters-of-another-machine",
        *("target_restart", "5.3", "trained/checkpoints of a result"),
        "The arrays in the checkpoint are no longer those that the training digested.",
        NO_REPORT,
        _other_arrays,
    ),
    _file(
        "restart-in-the-same-process",
        *("target_restart", "5.5", "manifest.json of a result"),
        "What is called a restart goes on in the process that had the state.",
        NO_REPORT,
        lambda home: home.steps["resumed"].update(process_id=1),
    ),
)


def _precision(home: Any) -> None:
    home.steps["trained"]["matmul_precision"] = "None"


SETTINGS = (
    _file(
        "default-matmul-precision-on-target",
        *("target_configuration", "5.4", "manifest.json of a result"),
        "Float32 products of the target are left to its default precision.",
        "jax-ml/jax#9973",
        _precision,
    ),
    _file(
        "served-tokenizer-differs",
        *("target_configuration", "5.4", "tokens/artifacts/corpus.json of a result"),
        "The target has another tokenizer than the system.",
        "ggml-org/llama.cpp#7476",
        lambda home: home.tokenizer.update(vocabulary_tokens=260),
    ),
    _file(
        "other-data-on-target",
        *("target_configuration", "5.4", "tokens/artifacts/tokens.npz of a result"),
        "The target trained on other tokens.",
        NO_REPORT,
        lambda home: setattr(
            home, "tokens", {name: table + 1 for name, table in home.tokens.items()}
        ),
    ),
    _file(
        "recipe-of-another-training",
        *("target_configuration", "5.4", "manifest.json of a checkpoint"),
        "The training says of itself that it had another order of documents.",
        "huggingface/accelerate#2016",
        lambda home: home.identity.update(order_seed=home.identity["order_seed"] + 1),
    ),
    _file(
        "recipe-of-the-result-itself",
        *("target_configuration", "5.4", "manifest.json of a result"),
        "The result names another model than was asked for, and is judged by its own.",
        NO_REPORT,
        lambda home: home.told.update(width=home.told["width"] * 2),
    ),
    _file(
        "per-device-batch-declared-global",
        *("target_configuration", "5.4", "executed/placement.json of a result"),
        "What every device computes is told as the batch of all.",
        "unslothai/unsloth#2219",
        lambda home: home.placed.update(global_batch=[4, 13]),
    ),
    _file(
        "release-of-another-run",
        *("target_configuration", "5.4", "parameters.npz of a result"),
        "The target was given the parameters of another run.",
        NO_REPORT,
        lambda home: setattr(home, "released", "0" * 64),
    ),
)

FAULTS = (*RESTARTS, *SETTINGS)
