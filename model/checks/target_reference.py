"""What a target is held against: the same recipe, computed here on a CPU.

Another instruction set, compiler or device rounds otherwise; how far that may go is the
contract's to say. What no output depends on is kept apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from model import tokenizer
from model.checks.differences import largest_value
from model.config import ModelConfig, TrainConfig, fixture_manifest
from model.documents import load_text_manifest
from model.parameters import load_parameters
from model.target_endpoints import endpoint_logits, loaded_programs
from model.target_result import TRAINED_UPDATES
from model.training import initial_state
from model.training_loop import CompletedUpdate, initial_progress, run_updates

SPLITS = ("train", "validation", "heldout")


class Reference:
    """What this machine computes for itself, on a CPU and in one process."""

    def __init__(
        self, model: ModelConfig, train: TrainConfig, make_update: Any = None
    ) -> None:
        """Makes tokens; updates and programs are made when they are asked for.

        Args:
            model: Shape of the model.
            train: Recipe and seeds.
            make_update: Makes one update; None is that of one process whose dropout
                keys belong to places.
        """
        self.model = model
        self.train = train
        self.make_update = make_update
        self.tokens = reference_tokens(model)

    @cached_property
    def updates(self) -> list[CompletedUpdate]:
        """The same updates as on the target, from the same seeds."""
        return list(
            run_updates(
                initial_state(self.model, self.train.initialization_seed),
                initial_progress(self.train, len(self.tokens["train"])),
                *(self.tokens["train"], self.model, self.train, TRAINED_UPDATES),
                self.make_update,
            )
        )

    @cached_property
    def programs(self) -> dict[str, Any]:
        """The endpoints, lowered for the CPU."""
        return loaded_programs(self.model, self.train, "cpu")

    def logits(self, parameters: Path) -> dict[str, np.ndarray]:
        """Logits for exactly the parameters that the target had."""
        loaded = load_parameters(parameters, self.model)
        heldout = self.tokens["heldout"]
        return endpoint_logits(self.programs, loaded, heldout, self.model)


def reference_tokens(model: ModelConfig) -> dict[str, np.ndarray]:
    """Tokens of the corpus in this package by split, made here."""
    documents = load_text_manifest(fixture_manifest(), model.context_tokens)
    context = model.context_tokens
    return {
        split: np.stack(
            [
                tokenizer.document_tokens(each.data, context)
                for each in documents
                if each.split == split
            ]
        )
        for split in SPLITS
    }


def parameter_differences(
    measured: Mapping[str, np.ndarray], expected: Mapping[str, Any], model: ModelConfig
) -> tuple[dict[str, float], float]:
    """Largest difference of each parameter, and that of the biases of the keys apart.

    A bias of the keys moves every score of a row alike, so softmax takes it out again:
    its gradient is rounding alone, which Adam scales up to steps of the learning rate.
    No output depends on it.
    """
    found, key_bias = {}, 0.0
    for name, array in expected.items():
        if measured[name].shape != np.shape(array):
            found[name] = math.inf
            continue
        apart = np.abs(np.asarray(array, np.float64) - measured[name])
        if name.endswith("attn.c_attn.bias"):
            keys = slice(model.width, 2 * model.width)
            key_bias = largest_value([key_bias, apart[keys].max()])
            apart = np.delete(apart, keys)
        found[name] = float(apart.max())
    return found, key_bias


def logit_difference(expected: np.ndarray, measured: np.ndarray | None) -> float:
    """Largest difference of two arrays of logits; infinite where they do not match."""
    if measured is None or measured.shape != expected.shape:
        return float("inf")
    apart = np.abs(expected.astype(np.float64) - measured)
    return float("inf") if np.isnan(apart).any() else float(apart.max())
