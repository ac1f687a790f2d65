"""A trace holds a digest of everything, is on the disk at once, and is comparable."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from model.batches import Cursor
from model.config import ModelConfig, TrainConfig
from model.training import initial_state
from model.training_loop import CompletedUpdate, initial_progress, run_updates
from model.update_trace import KINDS, append_line, standing_sha256, trace_update

MODEL, TRAIN = ModelConfig(), TrainConfig()
IDS = [f"document-{number:02d}" for number in range(20)]


@pytest.fixture(scope="module")
def completed() -> list[CompletedUpdate]:
    tokens = np.zeros((20, 13), dtype=np.int32)
    tokens[:, :6] = np.arange(100, 106)
    tokens[:, 0] = 1
    tokens[:, 3] += np.arange(20, dtype=np.int32)
    state, progress = initial_state(MODEL, 1), initial_progress(TRAIN, 20)
    return list(run_updates(state, progress, tokens, MODEL, TRAIN, 2))


def test_every_kind_and_every_leaf_has_a_digest(
    completed: list[CompletedUpdate],
) -> None:
    line = trace_update(completed[0], IDS, TRAIN)
    kinds = [digest["kind"] for digest in line["digests"]]
    assert set(kinds) == set(KINDS)
    for kind in ("gradients", "first_moment", "second_moment", "parameters"):
        assert kinds.count(kind) == 17
    assert json.loads(json.dumps(line)) == line


def test_readable_values_stand_beside_the_digests(
    completed: list[CompletedUpdate],
) -> None:
    values = trace_update(completed[1], IDS, TRAIN)["values"]
    assert (values["cursor"], values["epoch"], values["step"]) == (16, 0, 2)
    assert len(values["document_ids"]) == 4
    bits = np.array(int(values["loss_bits"], 16), dtype=np.uint32).view(np.float32)
    assert bits == np.asarray(completed[1].outcome.loss)


def test_two_updates_share_only_what_they_should(
    completed: list[CompletedUpdate],
) -> None:
    first, second = (trace_update(one, IDS, TRAIN)["digests"] for one in completed)
    equal = {
        (old["kind"], old["leaf"])
        for old, new in zip(first, second, strict=True)
        if old["sha256"] == new["sha256"]
    }
    assert equal == {("order", ""), ("epoch", "")}


def test_a_line_is_on_the_disk_when_the_call_returns(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    for update in (1, 2):
        append_line(path, {"update": update})
        lines = path.read_text().splitlines()
        assert json.loads(lines[-1]) == {"update": update}
    assert len(lines) == 2


@pytest.mark.parametrize(
    "spoil",
    [
        *("parameters", "first_moment", "step", "cursor", "epoch", "order"),
        *("targets", "dropout_seed", "order_seed"),
    ],
)
def test_whatever_the_next_update_follows_from_is_in_one_digest(spoil: str) -> None:
    """What an evaluation may not touch, down to where the order stands."""
    train = TrainConfig()
    state = initial_state(ModelConfig(), 1)
    progress = initial_progress(train, 40)
    before = standing_sha256(state, progress, train, 40)
    assert standing_sha256(state, progress, train, 40) == before
    changes: dict[str, Any] = {
        "cursor": {"cursor": Cursor(position=16)},
        "epoch": {"cursor": Cursor(epoch=1)},
        "order": {"order_sha256": "another"},
        "targets": {"cumulative_valid_targets": 1},
        "step": {"step": 1},
    }
    if spoil in changes:
        progress = replace(progress, **changes[spoil])
    elif spoil in ("dropout_seed", "order_seed"):
        train = replace(train, **{spoil: 99})
    else:
        holder = state.adam if spoil == "first_moment" else state
        tree = getattr(holder, spoil)
        bias = {"ln_f.bias": tree["ln_f.bias"].at[0].add(jnp.float32(1e-7))}
        changed = holder._replace(**{spoil: tree | bias})
        state = state._replace(adam=changed) if spoil == "first_moment" else changed
    assert standing_sha256(state, progress, train, 40) != before
