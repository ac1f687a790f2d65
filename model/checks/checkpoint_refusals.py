"""A restore under another setting, one setting and two at a time.

Every change has to be refused by a reason code of its own, in words and fields that
name what was changed and nothing else, and no refusal may touch the checkpoint.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from model import checkpoint
from model.checkpoint_manifest import MISMATCH_CODES
from model.checks.refused import Wrong, pair_row, refused_rows
from model.checks.rows import Row
from model.config import ModelConfig
from model.folders import folder_sha256
from model.refusal import ReasonCode

CLAIM = "2.4"
SETTING = "checkpoint_under_another_setting"
UNTOUCHED = "checkpoint_after_refusal"

# Written out and not asked of the code that refuses, so that a mapping can be wrong.
EXPECTED_CODES = {
    "data": ReasonCode.CHECKPOINT_MISMATCH_DATA,
    "order_seed": ReasonCode.CHECKPOINT_MISMATCH_ORDER_SEED,
    "batch_documents": ReasonCode.CHECKPOINT_MISMATCH_BATCH,
    "tokenizer": ReasonCode.CHECKPOINT_MISMATCH_TOKENIZER,
    "architecture": ReasonCode.CHECKPOINT_MISMATCH_ARCHITECTURE,
    "precision": ReasonCode.CHECKPOINT_MISMATCH_POLICY,
    "dropout_seed": ReasonCode.CHECKPOINT_MISMATCH_DROPOUT_SEED,
    "initialization_seed": ReasonCode.CHECKPOINT_MISMATCH_INITIALIZATION_SEED,
    "numerics": ReasonCode.CHECKPOINT_MISMATCH_NUMERICS,
    "numerics.jaxlib": ReasonCode.CHECKPOINT_MISMATCH_JAXLIB,
    "numerics.xla_flags": ReasonCode.CHECKPOINT_MISMATCH_XLA_FLAGS,
    "numerics.nproc": ReasonCode.CHECKPOINT_MISMATCH_NPROC,
    "numerics.key_implementation": ReasonCode.CHECKPOINT_MISMATCH_KEY_IMPLEMENTATION,
    "optimizer.learning_rate": ReasonCode.CHECKPOINT_MISMATCH_LEARNING_RATE,
    "optimizer.beta1": ReasonCode.CHECKPOINT_MISMATCH_BETA1,
    "optimizer.beta2": ReasonCode.CHECKPOINT_MISMATCH_BETA2,
    "optimizer.epsilon": ReasonCode.CHECKPOINT_MISMATCH_EPSILON,
    "optimizer.warmup_updates": ReasonCode.CHECKPOINT_MISMATCH_WARMUP_UPDATES,
    "optimizer.decay_updates": ReasonCode.CHECKPOINT_MISMATCH_DECAY_UPDATES,
    "optimizer.final_learning_rate_share": (
        ReasonCode.CHECKPOINT_MISMATCH_FINAL_LEARNING_RATE_SHARE
    ),
    "optimizer.weight_decay": ReasonCode.CHECKPOINT_MISMATCH_WEIGHT_DECAY,
    "optimizer.final_weight_decay": ReasonCode.CHECKPOINT_MISMATCH_FINAL_WEIGHT_DECAY,
    "optimizer.weight_decay_rise_after": (
        ReasonCode.CHECKPOINT_MISMATCH_WEIGHT_DECAY_RISE_AFTER
    ),
    "optimizer.weight_decay_rise_updates": (
        ReasonCode.CHECKPOINT_MISMATCH_WEIGHT_DECAY_RISE_UPDATES
    ),
    "optimizer.average_decay": ReasonCode.CHECKPOINT_MISMATCH_AVERAGE_DECAY,
}

Identity = Mapping[str, Any]


def refused_restore(
    measure: str,
    wrong: Wrong,
    folder: Path,
    attempt: Callable[[], object],
    claim: str = CLAIM,
) -> tuple[Row, list[Row]]:
    """Returns what became of a restore: the refusal, and what it named and touched.

    Args:
        measure: Name of what has to be refused.
        wrong: What is wrong, and what is expected.
        folder: Folder of the checkpoint.
        attempt: Restores it.
        claim: Claim that the rows are judged on.
    """
    digest = partial(folder_sha256, folder)
    return refused_rows(claim, measure, wrong, attempt, digest, UNTOUCHED)


def recorded_fields(identity: Identity) -> list[Row]:
    """Returns rows of ``checkpoint_fields``: all that a restore is held against.

    Args:
        identity: Identity as the manifest of a checkpoint holds it.
    """
    return [
        {"field": path, "recorded_value": json.dumps(value, sort_keys=True)}
        for path, value in _leaves("", identity)
    ]


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield path, value
        return
    for name, part in value.items():
        yield from _leaves(f"{path}.{name}" if path else name, part)


def changed_settings(identity: Identity) -> dict[str, Any]:
    """Returns another value for every leaf of an identity, by its path.

    Args:
        identity: What the training that goes on is; a path is the field and its part,
            such as ``optimizer.beta2``, in the order in which they are compared.
    """
    changed: dict[str, Any] = {}
    for field in MISMATCH_CODES:
        value = identity[field]
        if isinstance(value, Mapping):
            parts = {f"{field}.{part}": value[part] for part in sorted(value)}
        else:
            parts = {field: value}
        changed |= {path: another(value) for path, value in parts.items()}
    return changed


def with_changes(identity: Identity, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an identity with other values for some of its leaves.

    Args:
        identity: What a training is; it stays as it is.
        changes: Values by path.
    """
    changed = dict(identity)
    for path, value in changes.items():
        field, _, part = path.partition(".")
        changed[field] = {**changed[field], part: value} if part else value
    return changed


def another(value: Any) -> Any:
    """Returns a value of the same type that is not this one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 + 1
    return f"another {value}"


def wrong_setting(path: str) -> Wrong:
    """Returns how a restore under another value of one leaf has to be refused."""
    code = EXPECTED_CODES.get(path) or EXPECTED_CODES[path.partition(".")[0]]
    return Wrong(case=path.replace(".", "/", 1), code=code, fields=(path,))


def refuse_settings(
    folder: Path, model: ModelConfig, identity: Identity
) -> Iterator[tuple[Row, list[Row]]]:
    """Yields what became of a restore under each single changed setting."""
    for path, value in changed_settings(identity).items():
        wanted = with_changes(identity, {path: value})
        attempt = partial(checkpoint.load_checkpoint, folder, model, wanted)
        yield refused_restore(SETTING, wrong_setting(path), folder, attempt)


def refuse_two_settings(
    folder: Path, model: ModelConfig, identity: Identity
) -> Iterator[Row]:
    """Yields what became of a restore under each pair of changed settings."""
    digest = partial(folder_sha256, folder)
    changes = changed_settings(identity)
    for one, other in itertools.combinations(changes, 2):
        wanted = with_changes(identity, {one: changes[one], other: changes[other]})
        attempt = partial(checkpoint.load_checkpoint, folder, model, wanted)
        first, second = wrong_setting(one), wrong_setting(other)
        yield pair_row(CLAIM, SETTING, first, second, attempt, digest)
