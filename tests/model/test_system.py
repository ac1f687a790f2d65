"""The protocol of a system: what it names is there, and what it says is so."""

import importlib
import inspect
import tomllib
from dataclasses import replace
from pathlib import Path

from model import array_adapters, system, text_adapters
from model.cache import Cache
from model.config import ModelConfig
from model.implementation import ADAPTERS
from model.parameters import parameter_table

CONTRACT = Path(__file__).parents[2] / "warehouse" / "contract"


def test_every_function_has_a_home_and_one_adapter() -> None:
    """What a user's function replaces is a function of the built-in system."""
    adapters = {"model.array_adapters": array_adapters}
    adapters["model.text_adapters"] = text_adapters
    for function in system.FUNCTIONS:
        module, _, name = function.home.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name))
        (held,) = [
            adapters[where]
            for where, names in ADAPTERS.items()
            if function.name in names
        ]
        assert inspect.isfunction(getattr(held, function.name))


def test_every_claim_of_a_function_is_in_the_contract() -> None:
    """A claim that nobody asks could not be shown by any function."""
    claims = {
        claim["id"]
        for number in (1, 2, 3, 4)
        for claim in tomllib.loads(
            (CONTRACT / f"task_{number}.toml").read_text("utf-8")
        )["claim"]
    }
    for function in system.FUNCTIONS:
        assert set(function.claims) <= claims, function.name
        assert function.review_tasks


def test_the_protocol_lists_the_parameters_of_the_table() -> None:
    """Names and axes that a user reads are those that the model has."""
    model = replace(ModelConfig(), blocks=2)
    sizes = {
        "V": model.vocabulary_tokens,
        "C": model.context_tokens,
        "D": model.width,
        "3 D": 3 * model.width,
        "F": model.feed_forward_width,
    }
    told = {}
    for name, axes in system.PARAMETER_SHAPES.items():
        shape = tuple(sizes[axis] for axis in axes.split(", "))
        blocks = range(model.blocks) if "{block}" in name else range(1)
        told |= {name.format(block=block): shape for block in blocks}

    assert told == {spec.name: spec.shape for spec in parameter_table(model)}


def test_the_protocol_lists_the_parts_of_a_cache() -> None:
    """In the order in which they are returned."""
    assert tuple(system.CACHE_PARTS) == Cache._fields


def test_claims_are_asked_of_what_a_file_holds() -> None:
    """Another name in a file asks nothing."""
    assert system.asked_claims(["encode", "helper"]) == {"1.1", "1.2", "1.3"}
    assert [each.name for each in system.held_by({"logits": 1, "encode": 2})] == [
        "encode",
        "logits",
    ]
    assert {each.name for each in system.of_review_tasks([4])} == {
        "prefill",
        "decode_token",
        "generate",
    }
