"""Whether a user's functions are functions of the system at all, on small inputs.

Each is called where an error can still be told apart: alone, eagerly, on two inputs in
turn. The same arguments must give the same bytes again, also after other arguments,
because a system with hidden state cannot be restored from what a checkpoint holds. What
runs under `jax.jit` later is traced once here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from model.config import POLICIES, ModelConfig
from model.guarded import Guarded
from model.parameters import parameter_table
from model.refusal import Refused
from model.system import CACHE_PARTS
from model.tokenizer import BOS, EOS, PAD

ROWS, OTHER_ROWS = 2, 3
ORDINARY = 40
"""Some token of a byte."""
PROMPT, OTHER_PROMPT = b"ab", b"abc"
NEW_TOKENS = 3

Arguments = tuple[Any, ...]
Parameters = dict[str, jax.Array]


class Conformance(NamedTuple):
    """What was found about one function."""

    function: str
    """Its name."""
    found: str
    """What is wrong, as one sentence; "" where nothing is."""


def check_function(guarded: Guarded, fresh: Guarded, model: ModelConfig) -> Conformance:
    """Returns what is wrong with a user's function, if anything is.

    Args:
        guarded: The function.
        fresh: The same of a file that was loaded anew, called for the first time.
        model: Shape of the model it is called for.
    """
    name = guarded.function.name
    try:
        _call(guarded, fresh, model)
    except Refused as refused:
        return Conformance(name, refused.message)
    # What came back has the form that is owed, but may be of a class of theirs.
    except Exception as error:  # noqa: BLE001
        return Conformance(name, guarded.cannot_be_compared(error).message)
    return Conformance(name, "")


def _call(guarded: Guarded, fresh: Guarded, model: ModelConfig) -> None:
    again = "give the same bytes for the same arguments, and keep nothing between"
    for first, second in examples(guarded.function.name, model):
        kept = _bits(guarded(*first))
        if _bits(guarded(*first)) != kept:
            raise guarded.wrong_value(
                "returns something else when it is called again with the same"
                " arguments",
                f"{again} calls (a key or a seed has to be an argument)",
            )
        other = _bits(guarded(*second))
        if _bits(guarded(*first)) != kept:
            raise guarded.wrong_value(
                "returns something else after it was called with other arguments",
                f"{again} calls",
            )
        # Stuck on its first arguments, it would answer the same for ever.
        if _bits(fresh(*second)) != other:
            raise guarded.wrong_value(
                "returns something else when its first call was with other arguments",
                f"{again} calls",
            )
        if guarded.function.is_traced:
            _trace(guarded, first)


def _trace(guarded: Guarded, arguments: Arguments) -> None:
    """Traces a function as the harness will; arrays are what is traced."""
    is_array = [_is_tree(each) for each in arguments]

    def traced(*arrays: Any) -> Any:
        given = iter(arrays)
        return guarded(
            *(
                next(given) if traces else each
                for traces, each in zip(is_array, arguments, strict=True)
            )
        )

    arrays = [x for x, traces in zip(arguments, is_array, strict=True) if traces]
    jax.eval_shape(traced, *arrays)


def _is_tree(value: Any) -> bool:
    is_cache = isinstance(value, tuple) and hasattr(value, "keys")
    return isinstance(value, (dict, jax.Array)) or is_cache


def examples(name: str, model: ModelConfig) -> Iterator[tuple[Arguments, Arguments]]:
    """Yields arguments of a function, and others, as often as it has kinds of them."""
    policies = POLICIES.values()
    if name in ("quantize", "dequantize"):
        for policy in policies:
            made = partial(_stored if name == "dequantize" else _vectors, model)
            yield made(policy.cache, 1), made(policy.cache, 2)
    elif name == "dense":
        for policy in policies:
            yield _layer(model, policy.dense, 1), _layer(model, policy.dense, 2)
    elif name in ("prefill", "decode_token"):
        for policy in policies:
            made = partial(_prompts if name == "prefill" else _appended, model, policy)
            yield made(ROWS), made(OTHER_ROWS)
    else:
        first, second = _EXAMPLES[name]
        yield first(model), second(model)


def some_parameters(model: ModelConfig, seed: int = 0) -> Parameters:
    """Returns parameters that owe nothing to any implementation, float32."""
    generator = np.random.Generator(np.random.PCG64(seed))
    return {
        spec.name: jnp.asarray(generator.normal(0.0, 0.1, spec.shape), spec.dtype)
        for spec in parameter_table(model)
    }


def some_documents(model: ModelConfig, rows: int) -> np.ndarray:
    """Returns documents of different lengths, with their BOS, EOS and PAD."""
    documents = np.full((rows, model.context_tokens + 1), PAD, np.int32)
    for row, document in enumerate(documents):
        length = max(1, model.context_tokens - 1 - 3 * row)
        document[0] = BOS
        document[1 : length + 1] = ORDINARY + np.arange(length) % 7 + row
        document[length + 1] = EOS
    return documents


def _inputs(model: ModelConfig, rows: int) -> Arguments:
    tokens = jnp.asarray(some_documents(model, rows)[:, :-1])
    return some_parameters(model, rows), tokens, model


def _losses(model: ModelConfig, rows: int) -> Arguments:
    targets = jnp.asarray(some_documents(model, rows)[:, 1:])
    generator = np.random.Generator(np.random.PCG64(rows))
    shape = (*targets.shape, model.vocabulary_tokens)
    return jnp.asarray(generator.normal(0.0, 2.0, shape), jnp.float32), targets


def _update(model: ModelConfig, step: int) -> Arguments:
    settings = SimpleNamespace(
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        learning_rate=jnp.float32(3e-3),
        weight_decay=jnp.float32(0.0),
    )
    first, second = some_parameters(model, 2), some_parameters(model, 3)
    return (
        some_parameters(model, step),
        some_parameters(model, 4),
        first,
        {name: jnp.square(x) for name, x in second.items()},
        jnp.int32(step),
        settings,
    )


def _arrays(model: ModelConfig, seed: int) -> dict[str, np.ndarray]:
    found = {name: np.array(x) for name, x in some_parameters(model, seed).items()}
    return {"step": np.asarray(seed, np.int32)} | found


def _evaluated(model: ModelConfig, rows: int) -> Arguments:
    return some_parameters(model, rows), some_documents(model, rows), model, rows


def _vectors(model: ModelConfig, cache_policy: str, rows: int) -> Arguments:
    generator = np.random.Generator(np.random.PCG64(rows))
    shape = (rows, model.context_tokens, model.heads, model.head_width)
    values = generator.normal(0.0, 1.0, shape).astype(np.float32)
    # A vector of zeros has no largest entry to divide by.
    values[0, 0] = 0.0
    return jnp.asarray(values), cache_policy


def _stored(model: ModelConfig, cache_policy: str, rows: int) -> Arguments:
    vectors, _ = _vectors(model, cache_policy, rows)
    dtype = {"fp32": jnp.float32, "bf16": jnp.bfloat16, "int8": jnp.int8}[cache_policy]
    return vectors.astype(dtype), jnp.ones(vectors.shape[:-1], jnp.float32)


def _layer(model: ModelConfig, policy: str, rows: int) -> Arguments:
    generator = np.random.Generator(np.random.PCG64(rows))
    width, wide = model.width, model.feed_forward_width
    shapes = ((rows, model.context_tokens, width), (width, wide), (wide,))
    x, weight, bias = (
        jnp.asarray(generator.normal(0.0, 1.0, shape), jnp.float32) for shape in shapes
    )
    return x, weight, bias, policy


def _prompts(model: ModelConfig, policy: Any, rows: int) -> Arguments:
    tokens = some_documents(model, rows)[:, :-1]
    length = np.minimum(np.sum(tokens != PAD, axis=1), 3).astype(np.int32)
    arrays = jnp.asarray(tokens), jnp.asarray(length)
    return some_parameters(model, rows), *arrays, model, policy


class _Cache(NamedTuple):
    """A cache as a user's function gets it."""

    keys: jax.Array
    values: jax.Array
    key_scales: jax.Array
    value_scales: jax.Array
    length: jax.Array


assert _Cache._fields == tuple(CACHE_PARTS)


def _appended(model: ModelConfig, policy: Any, rows: int) -> Arguments:
    parts = [_stored(model, policy.cache, rows) for _ in range(model.blocks)]
    codes = jnp.stack([codes for codes, _ in parts])
    scales = jnp.stack([scales for _, scales in parts])
    length = jnp.full((rows,), 2, jnp.int32)
    cache = _Cache(codes, codes, scales, scales, length)
    token = jnp.full((rows,), ORDINARY, jnp.int32)
    return some_parameters(model, rows), token, cache, model, policy


def _generation(model: ModelConfig, prompt: bytes) -> Arguments:
    scores = np.linspace(0.0, 1.0, model.vocabulary_tokens, dtype=np.float32)[None]

    def prefill(tokens: Any, length: Any) -> tuple[Any, ...]:
        return scores, length

    def decode(token: Any, *state: Any) -> tuple[Any, ...]:
        return scores, *state

    return prefill, decode, prompt, model.context_tokens, NEW_TOKENS, _most_likely


def _most_likely(logits: np.ndarray) -> int:
    return int(np.argmax(logits))


def _saved(model: ModelConfig, seed: int) -> Arguments:
    return (_arrays(model, seed),)


Example = Callable[[ModelConfig], Arguments]
_EXAMPLES: Mapping[str, tuple[Example, Example]] = {
    "encode": (lambda model: (b"a\xc3\xa9\xff\x00",), lambda model: (b"bcd",)),
    "decode": (lambda model: ([BOS, 100, 198, EOS],), lambda model: ([4, 5],)),
    "initial_parameters": (lambda model: (model, 11), lambda model: (model, 12)),
    "logits": (partial(_inputs, rows=ROWS), partial(_inputs, rows=OTHER_ROWS)),
    "attention_weights": (
        partial(_inputs, rows=ROWS),
        partial(_inputs, rows=OTHER_ROWS),
    ),
    "token_losses": (partial(_losses, rows=ROWS), partial(_losses, rows=OTHER_ROWS)),
    "loss_sum_and_count": (
        partial(_losses, rows=ROWS),
        partial(_losses, rows=OTHER_ROWS),
    ),
    "update": (partial(_update, step=1), partial(_update, step=2)),
    "batch_order": (lambda model: (12, 0, 7), lambda model: (12, 1, 9)),
    "save": (partial(_saved, seed=1), partial(_saved, seed=2)),
    "evaluate": (partial(_evaluated, rows=ROWS), partial(_evaluated, rows=OTHER_ROWS)),
    "generate": (
        partial(_generation, prompt=PROMPT),
        partial(_generation, prompt=OTHER_PROMPT),
    ),
}


def check_saved(save: Guarded, restore: Guarded, model: ModelConfig) -> Conformance:
    """Returns whether a user's `restore` gives what their `save` was given."""
    try:
        for seed in (1, 2):
            arrays = _arrays(model, seed)
            data = save(arrays)
            held = restore(data)
            if _bits(restore(data)) != _bits(held):
                raise restore.wrong_value(
                    "returns something else when it is called again",
                    "give the same arrays for the same bytes",
                )
            apart = [
                name
                for name in sorted(arrays.keys() | held.keys())
                if _bits(arrays.get(name)) != _bits(held.get(name))
            ]
            if apart:
                raise restore.wrong_value(
                    f"does not give back {apart[0]!r} as `save` got it",
                    "keep every name, and the bits, dtype and shape of every array",
                )
    except Refused as refused:
        return Conformance("restore", refused.message)
    except Exception as error:  # noqa: BLE001
        return Conformance("restore", restore.cannot_be_compared(error).message)
    return Conformance("restore", "")


def _bits(value: Any) -> Any:
    """Returns what can be compared: every array as its bytes, dtype and shape."""
    if isinstance(value, Mapping):
        return {name: _bits(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(_bits(each) for each in value)
    if hasattr(value, "dtype"):
        array = np.asarray(value)
        return array.tobytes(), str(array.dtype), array.shape
    return value
