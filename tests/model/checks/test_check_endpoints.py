"""Reloaded outputs are compared bit by bit, whatever else looks alike."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from model.checks import endpoints as checks
from model.programs.quantize_cache import sample_rows

LOGITS = np.linspace(-1, 1, 259, dtype=np.float32)[None]
CODES = np.asarray(jnp.ones((1, 2, 3), jnp.bfloat16))


class _Endpoint:
    """Answers prepared outputs and keeps what it was given."""

    inputs = ("int32[1]", "bfloat16[1,2,3]")

    def __init__(self, *outputs: Any) -> None:
        self.outputs = outputs
        self.given: tuple[Any, ...] = ()

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        self.given = arguments
        return self.outputs


def _source() -> dict[str, np.ndarray]:
    return {
        "decode-bf16/normal/in/0": np.array([7], np.int32),
        "decode-bf16/normal/in/1": checks.as_storable(CODES),
        "decode-bf16/normal/out/0": LOGITS,
        "decode-bf16/normal/out/1": checks.as_storable(CODES),
    }


def _row(endpoint: _Endpoint) -> dict[str, Any]:
    release = SimpleNamespace(endpoints={"decode-bf16": endpoint})
    (row,) = checks.check_outputs(release, _source())  # type: ignore[arg-type]
    return row


def test_equal_bits_are_equal_and_bfloat16_arrives_as_bfloat16() -> None:
    endpoint = _Endpoint(LOGITS, CODES)
    row = _row(endpoint)
    assert row["expected"] == row["measured"]
    assert row["first_difference"] == ""
    assert endpoint.given[1].dtype == jnp.bfloat16


@pytest.mark.parametrize(
    ("fault", "place"),
    [
        (lambda x: np.nextafter(x, np.float32(9)), "1 ulp"),
        (lambda x: x.astype(np.float64), "dtype"),
        (lambda x: x[:, :258], "shape"),
    ],
)
def test_one_ulp_another_dtype_or_shape_is_seen(
    fault: Callable[[np.ndarray], np.ndarray], place: str
) -> None:
    row = _row(_Endpoint(fault(LOGITS), CODES))
    assert row["expected"] != row["measured"]
    assert row["first_difference"].startswith("output 0")
    assert place in row["first_difference"]


def test_a_changed_cache_behind_equal_logits_is_seen() -> None:
    row = _row(_Endpoint(LOGITS, (CODES * 2).astype(CODES.dtype)))
    assert row["first_difference"].startswith("output 1")


@pytest.mark.parametrize("context", [3, 12, 256])
def test_the_fixed_prompts_fit_and_hold_both_ends(context: int) -> None:
    prompts = checks.boundary_prompts(context, b"dbea|" * 60)
    assert all(len(prompt) < context for prompt in prompts.values())
    assert prompts["empty"] == b""
    assert len(prompts["maximum_length"]) == context - 1
    assert len(prompts["last_slot"]) == context - 2
    assert prompts["multibyte"].decode("utf-8") == "é" * ((context - 1) // 3)


def test_settings_that_did_not_travel_are_named() -> None:
    expected = {"tokenizer": {"version": 1}, "decoding": {"method": "greedy"}}
    found = checks.check_settings({"tokenizer": {"version": 2}}, expected)
    parted = [row["case_name"] for row in found if row["expected"] != row["measured"]]
    assert parted == ["tokenizer", "decoding"]


@pytest.mark.parametrize(
    ("version", "told", "is_kept"),
    [
        ("0.10.2", "2026-12-17", True),
        ("0.10.2", "2027-12-17", False),
        ("0.10.2", None, False),
        ("99.0", None, True),
        ("99.0", "2026-12-17", False),
    ],
)
def test_a_promise_that_nobody_gave_is_seen(
    version: str, told: str | None, is_kept: bool
) -> None:
    row = checks.check_guarantee(
        {"runtime": {"jax": version}, "serialization": {"guaranteed_until": told}}
    )
    assert (row["expected"] == row["measured"]) == is_kept
    assert bool(row["first_difference"]) != is_kept


def test_a_sample_is_repeatable_ordered_and_without_repetition() -> None:
    drawn = sample_rows(54, 3, 16)
    assert drawn == sample_rows(54, 3, 16) == sorted(set(drawn))
    assert drawn != sample_rows(54, 3, 17)
    assert sample_rows(5, 0, 1) == sample_rows(5, 9, 1) == [0, 1, 2, 3, 4]
