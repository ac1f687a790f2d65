"""Faults of what a target computes: its sums, its restart and its settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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
