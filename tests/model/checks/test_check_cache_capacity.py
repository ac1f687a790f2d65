"""A full row among others is refused and named; one that is overwritten is found."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model.cache import Cache
from model.checks.cache import CACHE_POLICIES, CachedModel
from model.checks.cache_capacity import check_full_rows
from model.config import ModelConfig
from model.decoding import jitted_decode
from model.parameters import initial_parameters

MODEL = ModelConfig(context_tokens=5, width=8, feed_forward_width=12)
TOKENS = np.array([[1, 97 + n, 98, 99, 100] for n in range(4)], np.int32)
INT8 = CACHE_POLICIES[2]


@pytest.fixture(scope="module")
def parameters() -> dict[str, jax.Array]:
    return initial_parameters(MODEL, 6)


def values(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {
        row["measure"]: row["value_count"]
        if row["value_real"] is None
        else row["value_real"]
        for row in rows
    }


def test_each_full_row_is_refused_and_the_others_go_on(parameters: dict) -> None:
    refused, measured = check_full_rows(CachedModel(), parameters, TOKENS, MODEL, INT8)
    assert [row["case_name"] for row in refused] == [f"int8/row-0{n}" for n in range(4)]
    assert {row["received_reason"] for row in refused} == {"cache_full"}
    found = values(measured)
    assert found.pop("largest_mechanics_error_beside_full_rows") < 5e-5
    assert set(found.values()) == {0}
    assert len(found) == 3


def test_a_single_document_gets_a_row_with_room_beside_it(parameters: dict) -> None:
    """A comparison of no row would read 0 whatever the system does."""

    def lost(*arguments: Any) -> tuple[jax.Array, Cache, Any]:
        logits, after, vectors = jitted_decode(*arguments)
        return logits + 1, after, vectors

    for system, allowed in ((CachedModel(), True), (CachedModel(decode=lost), False)):
        rows = check_full_rows(system, parameters, TOKENS[:1], MODEL, INT8)[1]
        error = values(rows)["largest_mechanics_error_beside_full_rows"]
        assert (error < 5e-5) is allowed


def test_an_append_that_clamps_is_found(parameters: dict) -> None:
    """As dynamic_update_slice does: the newest entry of a full row is overwritten."""

    def clamped(
        parameters: dict, token: jax.Array, cache: Cache, *rest: Any
    ) -> tuple[jax.Array, Cache, Any]:
        room = jnp.minimum(cache.length, MODEL.context_tokens - 1)
        logits, after, vectors = jitted_decode(
            parameters, token, cache._replace(length=room), *rest
        )
        return logits, after._replace(length=cache.length + 1), vectors

    system = CachedModel(decode=clamped)
    found = values(check_full_rows(system, parameters, TOKENS, MODEL, INT8)[1])
    assert found["bytes_changed_of_full_rows"] > 0
    assert found["largest_mechanics_error_beside_full_rows"] < 5e-5
