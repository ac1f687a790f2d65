"""Every format takes one way, and how far it came is measured, not stated."""

from typing import Any

import jax
import numpy as np
import pytest

from model.cache import cache_arrays, empty_cache
from model.checks import policies
from model.checks.cache import CachedModel
from model.checks.policies import PolicyCheck, PolicyEvidence
from model.checks.precision import exact_logits
from model.config import POLICIES, ModelConfig, Policy
from model.decoding import jitted_decode
from model.parameters import initial_parameters

MODEL = ModelConfig(context_tokens=4, width=8, feed_forward_width=12)
TOKENS = np.array([[1, 100, 101, 2, 0], [1, 104, 2, 0, 0], [1, 99, 2, 0, 0]], np.int32)


def check(system: CachedModel | None = None) -> PolicyCheck:
    parameters = initial_parameters(MODEL, 5)
    return PolicyCheck(
        parameters=parameters,
        tokens=TOKENS,
        document_ids=["a", "b", "c"],
        model=MODEL,
        exact=exact_logits(parameters, TOKENS[:, :-1], MODEL),
        system=system or CachedModel(),
    )


@pytest.fixture(scope="module")
def found() -> dict[str, PolicyEvidence]:
    every = (POLICIES["w8a8"], *policies.EXPERIMENTS, *policies.FORMATS)
    return {policy.name: check().measure("experiment", policy) for policy in every}


def test_every_format_that_runs_has_quality_bytes_and_time(
    found: dict[str, PolicyEvidence],
) -> None:
    rows = {name: each.row for name, each in found.items()}
    for row in rows.values():
        assert row["reached"] == "ran"
        assert row["heldout_targets"] == 3 + 2 + 2
        assert 0 < row["heldout_nats_per_token"] < 9
        assert row["decode_ns"] > 0
        assert row["artifact_bytes"] > 10_000
        assert row["optimizer_bytes"] > 2 * 4 * 259 * 8
    errors = {name: row["largest_logit_error"] for name, row in rows.items()}
    assert errors["int4"] > errors["w8a8"] > errors["fp16"] > 0
    assert errors["float8_e5m2"] > errors["fp16"]


def test_types_are_those_of_arrays_and_programs(
    found: dict[str, PolicyEvidence],
) -> None:
    def types(name: str) -> tuple[str, ...]:
        row = found[name].row
        return row["weights"], row["activations"], row["accumulation"]

    assert types("w8a8") == ("int8", "int8", "int32")
    assert types("w8") == ("int8", "float32", "float32")
    assert types("float8_e4m3") == ("float8_e4m3fn", "float8_e4m3fn", "float32")
    assert types("int4") == ("int4", "int4", "int32")
    assert found["fp16"].row["lowered_operands"] == "float16"


def test_bytes_are_those_of_real_arrays(found: dict[str, PolicyEvidence]) -> None:
    weights = (8 * 24, 8 * 8, 8 * 12, 12 * 8)
    columns = 24 + 8 + 12 + 8
    assert found["w8"].row["weight_bytes"] == sum(weights) + 4 * columns
    assert found["fp16"].row["weight_bytes"] == 2 * sum(weights)
    cache = cache_arrays(empty_cache(MODEL, 1, "int8"))
    assert found["w8a8"].row["cache_bytes"] == sum(
        each.nbytes for each in cache.values()
    )
    for each in found.values():
        counted = sum(row["array_bytes"] for row in each.arrays)
        assert counted == each.row["weight_bytes"] + each.row["optimizer_bytes"]


def test_figures_are_those_of_the_single_targets(
    found: dict[str, PolicyEvidence],
) -> None:
    for name, each in found.items():
        losses = [row["loss_nats"] for row in each.errors]
        total = 0.0
        for loss in losses:
            total += loss
        assert each.row["heldout_nats_per_token"] == total / len(losses)
        largest = max(row["largest_error"] for row in each.errors)
        assert each.row["largest_logit_error"] == largest
        assert {row["release_policy"] for row in each.errors} == {name}


def shifted(step: float) -> CachedModel:
    """A decode whose first logit is off by a step."""

    def decode(*arguments: Any) -> tuple[jax.Array, Any, Any]:
        logits, cache, vectors = jitted_decode(*arguments)
        return logits.at[:, 0].add(step), cache, vectors

    return CachedModel(decode=decode)


@pytest.mark.parametrize(
    ("step", "reason"),
    [(0.0, None), (0.3, None), (0.4, "beyond_limit"), (np.nan, "non_finite_logits")],
)
def test_logits_beyond_the_limit_are_the_reason_for_any_policy(
    step: float, reason: str | None
) -> None:
    evidence = check(shifted(step)).measure("release", POLICIES["fp32"])
    assert evidence.row["reached"] == "ran"
    assert evidence.row["reason"] == reason
    assert bool(evidence.row["detail"]) is (reason == "beyond_limit")
    assert (evidence.row["heldout_targets"] is None) is (not evidence.errors)


def test_a_decode_that_does_not_run_is_a_reason_with_its_words() -> None:
    def failing(*arguments: Any) -> Any:
        raise NotImplementedError("no such unit\nand more")

    evidence = check(CachedModel(decode=failing)).measure("release", POLICIES["fp32"])
    assert evidence.row["reached"] == "compiled"
    assert evidence.row["reason"] == "not_supported"
    assert evidence.row["detail"] == "NotImplementedError: no such unit"
    assert evidence.row["largest_logit_error"] is None


def test_a_format_that_does_not_exist_reaches_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = {**policies.formats.FACTS, "int2": ("none",) * 4}
    monkeypatch.setattr(policies.formats, "FACTS", facts)
    policy = Policy(name="int2", dense="int2", cache="fp32")
    row = check().measure("format", policy).row
    assert (row["reached"], row["reason"]) == ("nothing", "not_supported")
    assert row["lowered_operands"] == row["compiled_operands"] == "none"
    assert row["artifact_bytes"] is None
    assert "int2" in row["detail"]
