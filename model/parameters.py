"""The one place where a parameter is declared: name, shape, dtype, initialiser.

Initialisation, checkpoint validation, quantisation and export all read this table,
so that no second list of parameters can drift from it. Names and layouts are GPT-2's
(a weight maps its first axis to its second, the output head is [V, D]), which lets
other people's tools read a release without conversion of meaning.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from model.refusal import ReasonCode, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from model.config import ModelConfig

Parameters = dict[str, jax.Array]
Initializer = Literal["normal", "zeros", "ones"]

# Chosen on the validation split of the fixture, over six initialisations each; other
# powers of two do not differ by more than the initialisations do among themselves.
EMBEDDING_DEVIATION = 0.08
POSITION_DEVIATION = 0.16


@dataclass(frozen=True, kw_only=True)
class ParameterSpec:
    """Declaration of one parameter tensor."""

    name: str
    """GPT-2 name, unique in the table."""
    shape: tuple[int, ...]
    """Shape; a matrix maps its first axis to its second."""
    dtype: str
    """NumPy name of the storage type."""
    initializer: Initializer
    """How a fresh tensor is filled."""
    standard_deviation: float = 0.0
    """Standard deviation of `normal`, else 0."""


def _spec(
    name: str, shape: tuple[int, ...], initializer: Initializer, deviation: float = 0.0
) -> ParameterSpec:
    return ParameterSpec(
        name=name,
        shape=shape,
        dtype="float32",
        initializer=initializer,
        standard_deviation=deviation,
    )


def _normalization(name: str, width: int) -> list[ParameterSpec]:
    return [
        _spec(f"{name}.weight", (width,), "ones"),
        _spec(f"{name}.bias", (width,), "zeros"),
    ]


def _linear(
    name: str, inputs: int, outputs: int, residual_depth: int = 1
) -> list[ParameterSpec]:
    """A matrix that keeps variance, divided by the number of residual branches."""
    deviation = 1.0 / math.sqrt(inputs * residual_depth)
    return [
        _spec(f"{name}.weight", (inputs, outputs), "normal", deviation),
        _spec(f"{name}.bias", (outputs,), "zeros"),
    ]


def _block(model: ModelConfig, block: int) -> list[ParameterSpec]:
    prefix, width, hidden = f"h.{block}", model.width, model.feed_forward_width
    branches = 2 * model.blocks
    return [
        *_normalization(f"{prefix}.ln_1", width),
        *_linear(f"{prefix}.attn.c_attn", width, 3 * width),
        *_linear(f"{prefix}.attn.c_proj", width, width, branches),
        *_normalization(f"{prefix}.ln_2", width),
        *_linear(f"{prefix}.mlp.c_fc", width, hidden),
        *_linear(f"{prefix}.mlp.c_proj", hidden, width, branches),
    ]


def parameter_table(model: ModelConfig) -> tuple[ParameterSpec, ...]:
    """Returns every parameter of the model, in the order of the forward pass.

    Args:
        model: Shape of the model.

    Returns:
        One declaration a tensor; names are unique.
    """
    vocabulary, width = model.vocabulary_tokens, model.width
    # The head keeps variance, like every other matrix.
    head = 1.0 / math.sqrt(width)
    return (
        _spec("wte.weight", (vocabulary, width), "normal", EMBEDDING_DEVIATION),
        _spec(
            "wpe.weight",
            (model.context_tokens, width),
            "normal",
            POSITION_DEVIATION,
        ),
        *(spec for block in range(model.blocks) for spec in _block(model, block)),
        *_normalization("ln_f", width),
        _spec("lm_head.weight", (vocabulary, width), "normal", head),
    )


@partial(jax.jit, static_argnames="model")
def _initial(key: jax.Array, model: ModelConfig) -> Parameters:
    parameters = {}
    for index, spec in enumerate(parameter_table(model)):
        if spec.initializer == "normal":
            draw = jax.random.normal(
                jax.random.fold_in(key, index), spec.shape, dtype=spec.dtype
            )
            parameters[spec.name] = draw * jnp.float32(spec.standard_deviation)
        else:
            fill = 1.0 if spec.initializer == "ones" else 0.0
            parameters[spec.name] = jnp.full(spec.shape, fill, dtype=spec.dtype)
    return parameters


def initial_parameters(model: ModelConfig, seed: int) -> Parameters:
    """Returns fresh parameters, every tensor drawn from its own key.

    Args:
        model: Shape of the model.
        seed: Initialisation seed, 0 <= seed < 2**32.

    Returns:
        Flat dictionary by name; equal seeds give equal bits.
    """
    return _initial(jax.random.key(seed), model)


def check_parameters(parameters: Mapping[str, np.ndarray], model: ModelConfig) -> None:
    """Holds arrays against the table before any of them is used.

    Args:
        parameters: Arrays by name.
        model: Shape of the model they must belong to.

    Raises:
        Refused: `parameters_mismatch` for a missing, extra, misshapen or mistyped
            tensor, which it names.
    """
    table = {spec.name: spec for spec in parameter_table(model)}
    for kind, names in (
        ("missing", table.keys() - parameters.keys()),
        ("not part of the model", parameters.keys() - table.keys()),
    ):
        if names:
            raise Refused(
                ReasonCode.PARAMETERS_MISMATCH,
                f"Parameter {min(names)!r} is {kind}; give the parameters of this"
                f" model configuration ({len(table)} tensors).",
            )
    for name, spec in table.items():
        found = (tuple(parameters[name].shape), str(parameters[name].dtype))
        if found != (spec.shape, spec.dtype):
            raise Refused(
                ReasonCode.PARAMETERS_MISMATCH,
                f"Parameter {name!r} has shape and dtype {found!r} where the model"
                f" needs {(spec.shape, spec.dtype)!r}; give parameters of this model.",
            )


def save_parameters(path: Path, parameters: Mapping[str, jax.Array]) -> None:
    """Writes parameters as an NPZ file whose bytes depend on the values alone.

    Args:
        path: File to write.
        parameters: Arrays by name.
    """
    arrays: dict[str, Any] = {
        name: np.asarray(parameters[name]) for name in sorted(parameters)
    }
    with path.open("wb") as file:
        np.savez(file, **arrays)


def load_parameters(path: Path, model: ModelConfig) -> Parameters:
    """Returns parameters read from an NPZ file and held against the table.

    Args:
        path: File written by `save_parameters`.
        model: Shape of the model they must belong to.

    Returns:
        Flat dictionary of device arrays by name, in table order.

    Raises:
        Refused: `parameters_mismatch` when the file is no readable NPZ of exactly
            the tensors of the model.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise Refused(
            ReasonCode.PARAMETERS_MISMATCH,
            f"Parameter file {path.name!r} cannot be read ({error}); give an NPZ file"
            " of plain arrays.",
        ) from error
    check_parameters(arrays, model)
    return {
        spec.name: jnp.asarray(arrays[spec.name]) for spec in parameter_table(model)
    }
