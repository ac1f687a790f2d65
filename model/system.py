"""The system under qualification: the functions that a user's own file may hold.

This is the page to read before you plug in your own model, and it holds no code of the
built-in one. A file defines some of the functions below, under these names and with
these arguments. The harness puts them in the place of its own and measures the result
as it measures itself. What a file leaves out stays built-in, and is not asked about.

Arrays are written `dtype [axes]`, with the letters of `model/__init__.py`, and L for
blocks, C for the context, S for documents beside B. `parameters` is a flat dictionary
of float32 arrays with GPT-2's names and shapes, `PARAMETER_SHAPES` below; a matrix maps
its first axis to its second. If yours lie otherwise, convert them at the border of your
functions. The layout is fixed because the float64 reference reads it: a model of
another architecture has no reference here, and cannot be qualified by this harness.

What is never yours: cutting inputs and targets out of documents (`logits` sees
tokens[:, :-1] and losses see tokens[:, 1:]), malformed targets (they are refused before
you are called), gradients (`jax.grad` of your loss of your logits), keys of dropout,
and the manifest, mark and digests around a checkpoint.

A function marked *traced* runs inside `jax.jit` and must be written with `jax.numpy`;
it may promote dtypes as JAX usually does. The others run on the host and may use
whatever they like. Every function must give the same bytes for the same arguments,
leave its arguments alone and return within the time limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TIME_LIMIT_SECONDS = 60.0
"""What one call of a function may take, unless a user allows it another time."""

PARAMETERS = "parameters"
ARRAYS = "arrays"
CACHE = "cache"
TEXT, BYTES, IDS = "str", "bytes", "ids"

PARAMETER_SHAPES: Mapping[str, str] = {
    "wte.weight": "V, D",
    "wpe.weight": "C, D",
    "h.{block}.ln_1.weight": "D",
    "h.{block}.ln_1.bias": "D",
    "h.{block}.attn.c_attn.weight": "D, 3 D",
    "h.{block}.attn.c_attn.bias": "3 D",
    "h.{block}.attn.c_proj.weight": "D, D",
    "h.{block}.attn.c_proj.bias": "D",
    "h.{block}.ln_2.weight": "D",
    "h.{block}.ln_2.bias": "D",
    "h.{block}.mlp.c_fc.weight": "D, F",
    "h.{block}.mlp.c_fc.bias": "F",
    "h.{block}.mlp.c_proj.weight": "F, D",
    "h.{block}.mlp.c_proj.bias": "D",
    "ln_f.weight": "D",
    "ln_f.bias": "D",
    "lm_head.weight": "V, D",
}
"""Name and axes of every parameter, float32; `block` counts from 0."""

CACHE_PARTS: Mapping[str, str] = {
    "keys": "codes [L, B, C, H, K]",
    "values": "codes [L, B, C, H, K]",
    "key_scales": "float32 [L, B, C, H]",
    "value_scales": "float32 [L, B, C, H]",
    "length": "int32 [B]",
}
"""What a cache is made of; `codes` are float32, bfloat16 or int8, by `policy.cache`."""


@dataclass(frozen=True, kw_only=True)
class Function:
    """One function of a system."""

    name: str
    """Its name in a user's file."""
    does: str
    """What it returns, in one sentence."""
    takes: Mapping[str, str]
    """Its arguments in order, and what each is."""
    gives: Sequence[str]
    """What it returns, one after another."""
    home: str
    """The built-in function in whose place it stands."""
    claims: Sequence[str]
    """Claims that measure it."""
    is_traced: bool = False
    """Whether it runs inside `jax.jit`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Keyword arguments that it may take; a call with one that it does not take is
    answered by the built-in function."""
    notes: str = ""
    """What else a user needs to know."""

    @property
    def review_tasks(self) -> tuple[int, ...]:
        """Review tasks whose checks call it."""
        return tuple(sorted({int(claim.split(".")[0]) for claim in self.claims}))

    @property
    def signature(self) -> str:
        """How it is written in a file, such as `encode(data)`."""
        options = [f"{name}=None" for name in self.options]
        parts = [*self.takes, *(["*", *options] if options else [])]
        return f"{self.name}({', '.join(parts)})"


MODEL = "ModelConfig (vocabulary_tokens, context_tokens, width, heads, head_width, ...)"
POLICY = "Policy (dense: fp32, bf16 or w8a8; cache: fp32, bf16 or int8)"

FUNCTIONS = (
    Function(
        name="encode",
        does="The tokens of bytes, one a byte, without special tokens.",
        takes={"data": "bytes, valid UTF-8 or not"},
        gives=("int32 [T]",),
        home="model.tokenizer.encode",
        claims=("1.1", "1.2", "1.3"),
        notes="PAD is 0, BOS 1, EOS 2, and byte b is b + 3. Nothing is normalised.",
    ),
    Function(
        name="decode",
        does="The bytes of tokens; PAD, BOS and EOS stand for no byte.",
        takes={"tokens": "token ids, iterable of int, each 0 to 258"},
        gives=(BYTES,),
        home="model.tokenizer.decode",
        claims=("1.1",),
    ),
    Function(
        name="initial_parameters",
        does="Fresh parameters; equal seeds give equal bits.",
        takes={"model": MODEL, "seed": "int, 0 or more"},
        gives=(PARAMETERS,),
        home="model.parameters.initial_parameters",
        claims=("1.12", "2.1", "2.8"),
    ),
    Function(
        name="logits",
        does="The logits of the next token at every position.",
        takes={"parameters": PARAMETERS, "tokens": "int32 [B, T]", "model": MODEL},
        options={
            "dropout_key": (
                "key of the update, or [B] keys; place p of the model keeps an entry by"
                " jax.random.bernoulli(jax.random.fold_in(key, p), 1 - dropout_rate)"
            ),
            "policy": "precision of the block's products: fp32, bf16 or w8a8",
            "stored": "function from keys or values [B, T, H, K] to what a cache gives",
        },
        gives=("float32 [B, T, V]",),
        home="model.transformer.logits",
        claims=("1.8", "1.9", "1.10", "1.12", "2.6", "2.9"),
        is_traced=True,
        notes=(
            "Documents are padded to the right with PAD, which nobody may attend to;"
            " logits there are finite and mean nothing. `stored` is called with the"
            " keys and then the values of each block in turn."
        ),
    ),
    Function(
        name="attention_weights",
        does="The weights of attention of every block, exactly 0 where masked.",
        takes={"parameters": PARAMETERS, "tokens": "int32 [B, T]", "model": MODEL},
        gives=("float32 [L, B, H, T, T]",),
        home="model.transformer.attention_weights",
        claims=("1.7",),
        is_traced=True,
    ),
    Function(
        name="token_losses",
        does="-log p(target) in nats at every position, exactly 0 at PAD targets.",
        takes={"logits": "float32 [B, T, V]", "targets": "int32 [B, T]"},
        gives=("float32 [B, T]",),
        home="model.objective.token_losses",
        claims=("1.9", "2.6", "2.9"),
        is_traced=True,
        notes="Position t is read against target t: the shift is made already.",
    ),
    Function(
        name="loss_sum_and_count",
        does="The summed loss in nats, and the number of targets that are no PAD.",
        takes={"logits": "float32 [B, T, V]", "targets": "int32 [B, T]"},
        gives=("float32 []", "int32 []"),
        home="model.objective.loss_sum_and_count",
        claims=("1.10", "1.12"),
        is_traced=True,
        notes="EOS counts, PAD never. Position t is read against target t.",
    ),
    Function(
        name="update",
        does="Parameters and both moments after one update of Adam.",
        takes={
            "parameters": PARAMETERS,
            "gradients": "parameters: gradient of the mean loss",
            "first_moment": "parameters",
            "second_moment": "parameters",
            "step": "int32 []: number of this update, from 1",
            "settings": (
                "has beta1, beta2, epsilon, learning_rate and weight_decay of this step"
            ),
        },
        gives=(PARAMETERS, PARAMETERS, PARAMETERS),
        home="model.adam.adam_update",
        claims=("1.10", "1.12", "2.1"),
        is_traced=True,
        notes=(
            "Bias correction, epsilon outside the root; a matrix (two axes) further"
            " loses learning_rate * weight_decay of itself."
        ),
    ),
    Function(
        name="batch_order",
        does="The order of training documents in one epoch: a permutation of 0..S-1.",
        takes={
            "seed": "int",
            "epoch": "int, from 0",
            "documents": "int, the number S",
        },
        gives=("int32 [S]",),
        home="model.batches.epoch_order",
        claims=("2.1",),
    ),
    Function(
        name="save",
        does="The file of a checkpoint, in any format; equal arrays give equal bytes.",
        takes={"arrays": "dictionary of NumPy arrays by name"},
        gives=(BYTES,),
        home="model.checkpoint_arrays.write_arrays",
        claims=("2.1",),
        notes="Bring `restore` too. When and where it is written stays the harness's.",
    ),
    Function(
        name="restore",
        does="The arrays of a file that `save` made, with their bits.",
        takes={"data": "bytes that save returned"},
        gives=(ARRAYS,),
        home="model.checkpoint_arrays.unpack_arrays",
        claims=("2.1",),
    ),
    Function(
        name="evaluate",
        does="Losses, most likely next tokens and valid targets of whole documents.",
        takes={
            "parameters": PARAMETERS,
            "tokens": "int32 [S, T1]: documents of context + 1 tokens",
            "model": MODEL,
            "batch_documents": "int: documents of a batch, which may change no bit",
        },
        gives=("float32 [S, C]", "int32 [S, C]", "int32 [S]"),
        home="model.evaluation.evaluate_tokens",
        claims=("1.9", "2.6", "2.7", "2.9"),
        notes="Under fp32; another policy is evaluated by the built-in function.",
    ),
    Function(
        name="quantize",
        does="Codes and scales that a cache keeps of vectors.",
        takes={"vectors": "float32 [..., K]", "cache_policy": "fp32, bf16 or int8"},
        gives=("codes [..., K]", "float32 [...]"),
        home="model.cache.store",
        claims=("3.1", "3.4", "3.5", "3.6"),
        is_traced=True,
        notes=(
            "int8: scale = max|x| * float32(1/127), at least 2**-100; code ="
            " round_half_even(x * (float32(1)/scale)) within +-127. Else scales are 1."
        ),
    ),
    Function(
        name="dequantize",
        does="The float32 vectors that codes and scales stand for.",
        takes={"codes": "codes [..., K]", "scales": "float32 [...]"},
        gives=("float32 [..., K]",),
        home="model.cache.restore",
        claims=("3.1", "3.5", "3.6"),
        is_traced=True,
        notes="The code times the scale of its vector, in float32, under every policy.",
    ),
    Function(
        name="dense",
        does="x @ weight + bias in float32, the product under the policy.",
        takes={
            "x": "float32 [..., K]",
            "weight": "float32 [K, N]",
            "bias": "float32 [N], or None",
            "policy": "fp32, bf16 or w8a8",
        },
        gives=("float32 [..., N]",),
        home="model.dense.dense",
        claims=("3.6", "3.7"),
        is_traced=True,
        notes=(
            "fp32 at HIGHEST precision; bf16 operands with a float32 sum; w8a8 with"
            " int8 codes a row and an output column, made as by `quantize` but with a"
            " scale of at least float32(1e-12), an int32 sum, then times the scale of"
            " the row, times that of the column. The bias is float32. The product must"
            " be one dot_general. Other policies stay built-in."
        ),
    ),
    Function(
        name="prefill",
        does="Logits after each row's last token, the cache, and K and V before it.",
        takes={
            "parameters": PARAMETERS,
            "tokens": "int32 [B, C]: what lies at and beyond length is to be ignored",
            "length": "int32 [B]: valid tokens, 1 to C",
            "model": MODEL,
            "policy": POLICY,
        },
        gives=(
            "float32 [B, V]",
            CACHE,
            "float32 [L, B, C, H, K]",
            "float32 [L, B, C, H, K]",
        ),
        home="model.decoding.prefill_with_vectors",
        claims=("3.1", "3.2", "3.4", "3.5", "3.6", "4.1", "4.2", "4.5", "4.6", "4.7"),
        is_traced=True,
        notes=(
            "A cache is (keys, values, key_scales, value_scales, length). The last two"
            " results are keys and values before storage: the codes are held against"
            " them."
        ),
    ),
    Function(
        name="decode_token",
        does="Logits after one more token a row, the cache with it, and its K and V.",
        takes={
            "parameters": PARAMETERS,
            "token": "int32 [B]",
            "cache": "cache, with .keys .values .key_scales .value_scales .length",
            "model": MODEL,
            "policy": POLICY,
        },
        gives=("float32 [B, V]", CACHE, "float32 [L, B, H, K]", "float32 [L, B, H, K]"),
        home="model.decoding.decode_with_vectors",
        claims=("3.1", "3.2", "3.4", "3.5", "3.6", "4.1", "4.2", "4.5", "4.6", "4.7"),
        is_traced=True,
        notes="Earlier entries keep their bits. It is called only where there is room.",
    ),
    Function(
        name="generate",
        does="The tokens after a prompt, and why they end.",
        takes={
            "prefill": "(tokens [1, C], length [1], int32) -> logits [1, V], *state",
            "decode": "(token [1], int32, *state) -> logits [1, V], *state",
            "prompt": "bytes; longer ones than fit are refused before",
            "context_tokens": "int: most tokens of a sequence, BOS included",
            "maximum_new_tokens": "int: most tokens to emit, EOS included",
            "choose": "function from float64 logits [V] to a token",
        },
        gives=(IDS, TEXT),
        home="model.generation.generate",
        claims=("4.4", "4.5"),
        notes=(
            "The reason is end_of_sequence, requested_tokens or context_end. Give"
            " `choose` minus infinity for PAD and BOS. EOS takes no place. Logits that"
            " are not finite are refused before you see them."
        ),
    ),
)

BY_NAME: Mapping[str, Function] = {each.name: each for each in FUNCTIONS}


def held_by(names: Any) -> tuple[Function, ...]:
    """Returns the functions of the system that stand among names, in its order."""
    held = set(names)
    return tuple(each for each in FUNCTIONS if each.name in held)


def of_review_tasks(tasks: Sequence[int]) -> tuple[Function, ...]:
    """Returns the functions that the checks of these review tasks call."""
    return tuple(each for each in FUNCTIONS if set(each.review_tasks) & set(tasks))


def asked_claims(names: Any) -> frozenset[str]:
    """Returns the claims that measure at least one of these functions."""
    return frozenset(claim for each in held_by(names) for claim in each.claims)
