"""A restore that a really changed training asks for, one change at a time.

The matrix of settings changes the identity that is compared. That proves nothing about
who makes it: an identity that always states the same seed is compared as faithfully.
So here the request is changed, or what the numerics fingerprint is read from, and the
restore has to find out by itself. The precision has one choice today and no setting;
there the checkpoint is one that another version has written.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import jax
import jaxlib
import numpy as np

from model.checkpoint import latest_checkpoint
from model.checkpoint_manifest import read_manifest
from model.checks.checkpoint_damage import reseal
from model.checks.checkpoint_refusals import (
    another,
    refused_restore,
    with_changes,
    wrong_setting,
)
from model.checks.rows import Row
from model.config import ModelConfig, OptimizerConfig
from model.digests import array_sha256
from model.restore import restore_training
from model.training_request import TrainingRequest

REQUESTED = "checkpoint_under_another_request"
WRITTEN = "checkpoint_of_another_precision"
RECIPE = ("order_seed", "batch_documents", "dropout_seed", "initialization_seed")

Runtime = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A restore that has to be refused: who asks for it, and where."""

    request: TrainingRequest
    """The training that asks."""
    runtime: Runtime = nullcontext
    """What this process is while it asks."""

    def restore(self) -> None:
        """Asks for the restore."""
        with self.runtime():
            restore_training(self.request)


def changed_requests(request: TrainingRequest) -> dict[str, Asked]:
    """Returns a restore for every part of the identity but the precision, by its path.

    Args:
        request: A training that could be restored as it is.
    """
    asked = {
        path: Asked(request=changed) for path, changed in _other_trainings(request)
    }
    return asked | {
        f"numerics.{name}": Asked(request=request, runtime=runtime)
        for name, runtime in _other_runtimes().items()
    }


def refuse_requests(request: TrainingRequest) -> Iterator[tuple[Row, list[Row]]]:
    """Yields what became of the restore that each changed training asked for.

    Args:
        request: A training that could be restored as it is.
    """
    assert request.restore_folder is not None, "the matrix needs a checkpoint"
    folder = latest_checkpoint(request.restore_folder)
    for path, asked in changed_requests(request).items():
        wrong = wrong_setting(path)
        yield refused_restore(REQUESTED, wrong, folder, asked.restore)


def refuse_other_precisions(
    request: TrainingRequest, scratch: Path
) -> Iterator[tuple[Row, list[Row]]]:
    """Yields what became of restores from checkpoints of another precision.

    Args:
        request: A training that could be restored as it is.
        scratch: Folder for the checkpoints that are made.
    """
    assert request.restore_folder is not None, "the matrix needs a checkpoint"
    folder = latest_checkpoint(request.restore_folder)
    identity = read_manifest(folder)["identity"]
    for part, value in identity["precision"].items():
        path = f"precision.{part}"
        copy = scratch / part / folder.name
        shutil.copytree(folder, copy)
        reseal(copy, identity=with_changes(identity, {path: another(value)}))
        asked = Asked(request=replace(request, restore_folder=copy.parent))
        yield refused_restore(WRITTEN, wrong_setting(path), copy, asked.restore)


def _other_trainings(
    request: TrainingRequest,
) -> Iterator[tuple[str, TrainingRequest]]:
    train, optimizer = request.train, request.train.optimizer
    yield "data.split_sha256", _with_corpus(request, split_sha256="another draw")
    yield "data.tokens_sha256", _with_another_token(request)
    for name in RECIPE:
        yield name, replace(request, train=_with_another(train, name))
    for name in request.corpus.description["tokenizer"]:
        yield f"tokenizer.{name}", _with_another_tokenizer(request, name)
    for name in _names(ModelConfig):
        yield (
            f"architecture.{name}",
            replace(request, model=_with_another(request.model, name)),
        )
    for name in _names(OptimizerConfig):
        changed = replace(train, optimizer=_with_another(optimizer, name))
        yield f"optimizer.{name}", replace(request, train=changed)


def _names(settings: type) -> list[str]:
    return [field.name for field in fields(settings)]


def _with_another(settings: Any, name: str) -> Any:
    return replace(settings, **{name: another(getattr(settings, name))})


def _with_corpus(request: TrainingRequest, **changes: Any) -> TrainingRequest:
    return replace(request, corpus=replace(request.corpus, **changes))


def _described(request: TrainingRequest, **changes: Any) -> Mapping[str, Any]:
    return {**request.corpus.description, **changes}


def _with_another_token(request: TrainingRequest) -> TrainingRequest:
    """The same request with one other byte in one training document."""
    tokens = request.corpus.tokens["train"].copy()
    tokens[0, 1] += 1
    corpus = request.corpus
    digests = {**corpus.description["tokens_sha256"], "train": array_sha256(tokens)}
    return _with_corpus(
        request,
        tokens={**corpus.tokens, "train": tokens},
        description=_described(request, tokens_sha256=digests),
    )


def _with_another_tokenizer(request: TrainingRequest, name: str) -> TrainingRequest:
    tokenizer = dict(request.corpus.description["tokenizer"])
    tokenizer[name] = another(tokenizer[name])
    return _with_corpus(request, description=_described(request, tokenizer=tokenizer))


def _other_runtimes() -> dict[str, Runtime]:
    """What every field of the numerics fingerprint is read from, changed."""
    device = jax.devices()[0]
    kinds = {"platform": device.platform, "device_kind": device.device_kind}
    runtimes: dict[str, Runtime] = {
        "python": partial(patch.object, platform, "python_version", lambda: "another"),
        "device_count": partial(patch.object, jax, "device_count", lambda: 1000),
        "cpu_isa": _another_instruction_set,
        "nproc": partial(patch.dict, os.environ, NPROC="1000"),
        "xla_flags": partial(patch.dict, os.environ, XLA_FLAGS="--another"),
    }
    for package in (jax, jaxlib, np):
        version = partial(patch.object, package, "__version__", "another")
        runtimes[package.__name__] = version
    for name in kinds:
        other = SimpleNamespace(**{**kinds, name: "another"})
        devices: Callable[[], list[Any]] = partial(list, (other,))
        runtimes[name] = partial(patch.object, jax, "devices", devices)
    return runtimes | {
        name: partial(_another_jax_setting, setting, values)
        for name, (setting, values) in _JAX_SETTINGS.items()
    }


_JAX_SETTINGS: Mapping[str, tuple[str, tuple[Any, Any]]] = {
    "dtype_promotion": ("jax_numpy_dtype_promotion", ("standard", "strict")),
    "rank_promotion": ("jax_numpy_rank_promotion", ("allow", "raise")),
    "threefry_partitionable": ("jax_threefry_partitionable", (False, True)),
    "key_implementation": ("jax_default_prng_impl", ("rbg", "threefry2x32")),
    "enable_x64": ("jax_enable_x64", (False, True)),
    "matmul_precision": ("jax_default_matmul_precision", ("float32", "bfloat16")),
}


@contextmanager
def _another_jax_setting(setting: str, values: tuple[Any, Any]) -> Iterator[None]:
    before = jax.config.values[setting]
    jax.config.update(setting, values[1] if before == values[0] else values[0])
    try:
        yield
    finally:
        jax.config.update(setting, before)


@contextmanager
def _another_instruction_set() -> Iterator[None]:
    """Lets the file that tells of the processor tell of another one."""
    read_text = Path.read_text

    def read(path: Path, *arguments: Any) -> str:
        is_told = path == Path("/proc/cpuinfo")
        return "flags : another\n" if is_told else read_text(path, *arguments)

    other_machine = patch.object(platform, "machine", lambda: "another")
    with patch.object(Path, "read_text", read), other_machine:
        yield
