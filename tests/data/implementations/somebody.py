"""A small GPT in JAX, written for nobody's harness: what a user might bring along.

It shares no code with the built-in system. It keeps its own style, batches products
over heads with matmul, and works on token ids that it makes itself.
"""

import functools
import io
import math
import struct

import jax
import jax.numpy as jnp
import numpy as np
from somebodys_arrays import layer_norm, linear, split_heads

PAD, BOS, EOS = 0, 1, 2


# --- text ---------------------------------------------------------------------


def encode(data):
    return np.array([byte + 3 for byte in data], dtype=np.int32)


def decode(tokens):
    return bytes(token - 3 for token in tokens if token > 2)


# --- model --------------------------------------------------------------------


def initial_parameters(model, seed):
    rng = np.random.default_rng(seed)

    def matrix(*shape, scale):
        return rng.normal(0, scale, shape).astype("float32")

    d, f = model.width, model.feed_forward_width
    zeros = functools.partial(np.zeros, dtype="float32")
    ones = functools.partial(np.ones, dtype="float32")
    p = {
        "wte.weight": matrix(model.vocabulary_tokens, d, scale=0.1),
        "wpe.weight": matrix(model.context_tokens, d, scale=0.1),
        "ln_f.weight": ones(d),
        "ln_f.bias": zeros(d),
        "lm_head.weight": matrix(model.vocabulary_tokens, d, scale=d**-0.5),
    }
    for i in range(model.blocks):
        for ln in ("ln_1", "ln_2"):
            p[f"h.{i}.{ln}.weight"], p[f"h.{i}.{ln}.bias"] = ones(d), zeros(d)
        for name, rows, columns in (
            ("attn.c_attn", d, 3 * d),
            ("attn.c_proj", d, d),
            ("mlp.c_fc", d, f),
            ("mlp.c_proj", f, d),
        ):
            p[f"h.{i}.{name}.weight"] = matrix(rows, columns, scale=rows**-0.5)
            p[f"h.{i}.{name}.bias"] = zeros(columns)
    return p


def forward(p, tokens, model, stored=None):
    steps = tokens.shape[1]
    x = jnp.take(p["wte.weight"], tokens, axis=0) + p["wpe.weight"][:steps]
    sees = np.tril(np.ones((steps, steps), bool)) & (tokens != PAD)[:, None, None, :]
    everything = []
    for i in range(model.blocks):
        y = layer_norm(p, f"h.{i}.ln_1", x, model)
        q, k, v = jnp.split(linear(p, f"h.{i}.attn.c_attn", y), 3, axis=-1)
        q, k, v = (split_heads(each, model.heads) for each in (q, k, v))
        if stored is not None:
            k, v = (
                stored(each.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
                for each in (k, v)
            )
        scores = jnp.matmul(q, k.swapaxes(-1, -2), precision="highest")
        scores = jnp.where(sees, scores / math.sqrt(model.head_width), -jnp.inf)
        a = jnp.where(sees, jax.nn.softmax(scores, axis=-1, where=sees), 0.0)
        everything.append(a)
        mixed = jnp.matmul(a, v, precision="highest").swapaxes(1, 2).reshape(x.shape)
        x = x + linear(p, f"h.{i}.attn.c_proj", mixed)
        y = layer_norm(p, f"h.{i}.ln_2", x, model)
        y = jax.nn.gelu(linear(p, f"h.{i}.mlp.c_fc", y))
        x = x + linear(p, f"h.{i}.mlp.c_proj", y)
    y = layer_norm(p, "ln_f", x, model)
    return jnp.matmul(y, p["lm_head.weight"].T, precision="highest"), everything


def logits(parameters, tokens, model):
    return forward(parameters, tokens, model)[0]


def attention_weights(parameters, tokens, model):
    return jnp.stack(forward(parameters, tokens, model)[1])


# --- objective and update -----------------------------------------------------


def token_losses(logits, targets):
    top = jax.scipy.special.logsumexp(logits, axis=-1)
    chosen = jnp.sum(logits * jax.nn.one_hot(targets, logits.shape[-1]), axis=-1)
    return (top - chosen) * (targets != PAD)


def loss_sum_and_count(logits, targets):
    return token_losses(logits, targets).sum(), (targets != PAD).sum(dtype=jnp.int32)


def update(parameters, gradients, first_moment, second_moment, step, settings):
    b1, b2 = settings.beta1, settings.beta2
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, first_moment, gradients)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, second_moment, gradients)

    def moved(p, m, v):
        change = (m / (1 - b1**step)) / (
            jnp.sqrt(v / (1 - b2**step)) + settings.epsilon
        )
        if p.ndim > 1:
            change = change + settings.weight_decay * p
        return p - settings.learning_rate * change

    return jax.tree.map(moved, parameters, m, v), m, v


# --- order, checkpoints, evaluation -------------------------------------------


def batch_order(seed, epoch, documents):
    return (
        np.random.default_rng([seed, epoch, 1]).permutation(documents).astype("int32")
    )


def save(arrays):
    file = io.BytesIO()
    for name, array in arrays.items():
        array = np.asarray(array)
        header = f"{name}|{array.dtype}|{','.join(map(str, array.shape))}".encode()
        file.write(struct.pack("<II", len(header), array.nbytes))
        file.write(header + array.tobytes())
    return file.getvalue()


def restore(data):
    arrays, at = {}, 0
    while at < len(data):
        header_bytes, array_bytes = struct.unpack_from("<II", data, at)
        at += 8
        name, dtype, shape = data[at : at + header_bytes].decode().split("|")
        at += header_bytes
        flat = np.frombuffer(data[at : at + array_bytes], dtype)
        arrays[name] = flat.reshape([int(size) for size in shape.split(",") if size])
        at += array_bytes
    return arrays


@functools.partial(jax.jit, static_argnames="model")
def _evaluated(parameters, row, model):
    predicted = logits(parameters, row[None, :-1], model)
    return token_losses(predicted, row[None, 1:])[0], predicted[0].argmax(-1)


def evaluate(parameters, tokens, model, batch_documents):
    found = [_evaluated(parameters, row, model) for row in tokens]
    losses, likely = (
        np.stack([np.asarray(x) for x in each]) for each in zip(*found, strict=True)
    )
    return (
        losses,
        likely.astype("int32"),
        (tokens[:, 1:] != PAD).sum(1).astype("int32"),
    )


# --- generation ---------------------------------------------------------------


def generate(prefill, decode, prompt, context_tokens, maximum_new_tokens, choose):
    row = np.zeros((1, context_tokens), "int32")
    ids = [BOS, *encode(prompt)]
    row[0, : len(ids)] = ids
    scores, *state = prefill(row, np.array([len(ids)], "int32"))
    out = []
    while len(out) < maximum_new_tokens:
        allowed = np.array(scores, np.float64)[0]
        allowed[[PAD, BOS]] = -np.inf
        token = choose(allowed)
        if token != EOS and len(ids) + len(out) == context_tokens:
            return out, "context_end"
        out.append(token)
        if token == EOS:
            return out, "end_of_sequence"
        if len(out) < maximum_new_tokens:
            scores, *state = decode(np.array([token], "int32"), *state)
    return out, "requested_tokens"
