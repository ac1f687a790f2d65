"""Dropout as it is, and the same with one thing wrong: rate, masks, streams, places."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from model import training, transformer
from model.checks import draws, gradients
from model.checks.rows import Row
from model.config import ModelConfig
from model.faults import find
from model.parameters import initial_parameters
from tests.judged import OPEN, REVISE, verdict
from tests.model.made_tokens import documents_of_letters

MODEL = ModelConfig(context_tokens=6, width=12, feed_forward_width=16)
STAGE = "train_model"


def thinned(fault: str) -> Callable[..., jax.Array]:
    right = transformer.drop

    def drop(x: jax.Array, key: Any, place: Any, rate: float) -> jax.Array:
        if fault == "rescale omitted":
            return right(x, key, place, rate) * jnp.float32(1.0 - rate)
        if fault == "another rate":
            return right(x, key, place, 0.11)
        if fault == "one stream for every place":
            return right(x, key, 0, rate)
        if fault == "also without a key":
            return right(x, jax.random.key(0) if key is None else key, place, rate)
        axis = SHARED.index(fault.removeprefix("one mask for every "))
        first = (slice(None),) * axis + (slice(0, 1),)
        factors = right(jnp.ones_like(x), key, place, rate)[first]
        return x if key is None else x * jnp.broadcast_to(factors, x.shape)

    return drop


SHARED = ("document", "position", "channel")
"""Axes of what is dropped."""


@pytest.mark.parametrize(
    "fault",
    [
        *("rescale omitted", "another rate", "one stream for every place"),
        *("also without a key", "one mask for every position"),
        *("one mask for every document", "one mask for every channel"),
    ],
)
def test_a_wrong_dropout_is_revised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(draws, "drop", thinned(fault))
    assert verdict(tmp_path, STAGE, dropout_rows()) == REVISE


def dropout_rows() -> list[Row]:
    keys = [training.dropout_key(13, update) for update in (1, 2)]
    return draws.measure_dropout(keys, MODEL, 13)


def test_dropout_as_it_is_revises_nothing(tmp_path: Path) -> None:
    assert verdict(tmp_path, STAGE, dropout_rows()) == OPEN


def test_a_place_without_dropout_is_revised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = transformer.drop

    def drop(x: jax.Array, key: Any, place: int, rate: float) -> jax.Array:
        return x if place == 0 else right(x, key, place, rate)

    def rows() -> list[Row]:
        parameters = initial_parameters(MODEL, 1)
        return [draws.measure_dropout_places(parameters, documents_of_letters(), MODEL)]

    assert verdict(tmp_path / "right", STAGE, rows()) == OPEN
    monkeypatch.setattr(transformer, "drop", drop)
    assert verdict(tmp_path / "wrong", STAGE, rows()) == REVISE


def thinned_rows() -> list[Row]:
    parameters, key = initial_parameters(MODEL, 1), training.dropout_key(13, 1)
    masks = draws.thinning_factors(key, len(documents_of_letters()), MODEL)
    return draws.measure_thinned_logits(
        parameters, documents_of_letters(), key, masks, MODEL
    )


@pytest.mark.usefixtures("compiled_anew")
@pytest.mark.parametrize("fault", ["", "whole residual", "places exchanged"])
def test_dropout_at_another_place_is_revised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Every mask is drawn, from its own stream and at its own rate."""
    right, held = transformer.drop, []

    def drop(x: jax.Array, key: Any, place: int, rate: float) -> jax.Array:
        if fault == "places exchanged":
            return right(x, key, {1: 2, 2: 1}.get(place, place), rate)
        held.append(x)
        if place == 1:
            # What came before is dropped with what is added to it.
            whole = held[0] + x
            return right(whole, key, place, rate) - held[0]
        return right(x, key, place, rate)

    if fault:
        monkeypatch.setattr(transformer, "drop", drop)
    expected = REVISE if fault else OPEN
    assert verdict(tmp_path, STAGE, thinned_rows()) == expected


@pytest.mark.usefixtures("compiled_anew")
def test_masks_that_the_way_back_draws_anew_are_revised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every loss and every mask of the forward pass is right."""
    parameters, key = initial_parameters(MODEL, 1), training.dropout_key(13, 1)
    masks, few = draws.thinning_factors(key, 8, MODEL), documents_of_letters()[:2]

    def rows() -> list[Row]:
        return gradients.measure_thinned_directions(
            parameters, few, 8, key, masks, MODEL, 13
        )

    assert verdict(tmp_path / "right", STAGE, rows()) == OPEN
    fault = find("dropout-redrawn-in-backward")
    monkeypatch.setattr(transformer, "drop", fault.replacement(transformer.drop))
    jax.clear_caches()
    wrong = rows()
    assert verdict(tmp_path / "wrong", STAGE, wrong) == REVISE
    off = {row["case_name"] for row in wrong if row["value_real"] > 0.01}
    # What comes after the last mask has no mask behind it.
    assert set(parameters) - off == {"ln_f.weight", "ln_f.bias", "lm_head.weight"}
