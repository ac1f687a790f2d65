"""The six endpoints of a release on fixed inputs, through bytes lowered for a platform.

The same function runs on the target and, as the reference, on a CPU at home; the two
differ in the platform alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from model import tokenizer
from model.checks.endpoints import boundary_prompts
from model.config import POLICIES
from model.target_programs import TRAINING_UPDATE, exported_for, target_programs

if TYPE_CHECKING:
    from model.config import ModelConfig, TrainConfig

DOCUMENTS = 8
"""Held-out documents that go through prefill and then, token by token, decode."""
PREFIX_TOKENS = 3
"""Tokens of a document that prefill gets."""
NORMAL = b"abc|"


def loaded_programs(
    model: ModelConfig, train: TrainConfig, lowered_for: str
) -> dict[str, Callable[..., Any]]:
    """Every program by name, serialised for a platform, read back and jitted.

    Args:
        model: Shape of the model.
        train: Recipe of the training update.
        lowered_for: What JAX calls the platform when it lowers: cpu, cuda, tpu.
    """
    found: dict[str, Callable[..., Any]] = {}
    for program in target_programs(model, train):
        _, exported, _ = exported_for(program, lowered_for)
        found[program.name] = jax.jit(exported.call)
    return found


def endpoint_logits(
    programs: Mapping[str, Callable[..., Any]],
    parameters: Mapping[str, jax.Array],
    heldout: np.ndarray,
    model: ModelConfig,
) -> dict[str, np.ndarray]:
    """Logits of the endpoints under each policy, by "policy/case".

    Args:
        programs: What `loaded_programs` returned.
        parameters: Parameters by name.
        heldout: Held-out documents [N, context + 1], int32.
        model: Shape of the model.
    """
    found = {}
    for policy in POLICIES:
        prefill, decode = programs[f"prefill-{policy}"], programs[f"decode-{policy}"]
        for case, prompt in boundary_prompts(model.context_tokens, NORMAL).items():
            tokens, length = tokenizer.prompt_tokens(prompt, model.context_tokens)
            outputs = prefill(parameters, tokens[None], np.array([length], np.int32))
            found[f"{policy}/prompt-{case}"] = np.asarray(outputs[0])
        for number, row in enumerate(heldout[:DOCUMENTS]):
            length = int(np.count_nonzero(row[:-1] != tokenizer.PAD))
            tokens = np.where(
                np.arange(model.context_tokens) < PREFIX_TOKENS, row[:-1], 0
            )
            outputs = prefill(
                parameters,
                tokens[None].astype(np.int32),
                np.array([PREFIX_TOKENS], np.int32),
            )
            logits = [np.asarray(outputs[0])]
            for position in range(PREFIX_TOKENS, length):
                token = np.array([row[position]], np.int32)
                outputs = decode(parameters, token, *outputs[1:])
                logits.append(np.asarray(outputs[0]))
            found[f"{policy}/document-{number}"] = np.concatenate(logits)
    return found


def training_program(programs: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """The training update among the programs."""
    return programs[TRAINING_UPDATE]
