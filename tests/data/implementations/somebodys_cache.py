"""The decoding side of somebody's GPT: precision policies, a cache, prefill, one step.

A file of its own, because it was written later; it shares no code with the built-in
system either.
"""

import jax
import jax.numpy as jnp
from somebodys_arrays import layer_norm

PAD = 0
CODE = jnp.float32(1 / 127)


def rows_to_codes(x, floor):
    scale = jnp.maximum(abs(x).max(-1) * CODE, jnp.float32(floor))
    steps = jnp.round(x * (jnp.float32(1) / scale)[..., None])
    return jnp.clip(steps, -127, 127).astype("int8"), scale


def quantize(vectors, cache_policy):
    if cache_policy == "int8":
        return rows_to_codes(vectors, 2.0**-100)
    dtype = {"fp32": "float32", "bf16": "bfloat16"}[cache_policy]
    return vectors.astype(dtype), jnp.ones(vectors.shape[:-1], "float32")


def dequantize(codes, scales):
    return codes.astype("float32") * scales[..., None]


def dense(x, weight, bias, policy):
    if policy == "fp32":
        y = jnp.matmul(x, weight, precision="highest")
    elif policy == "bf16":
        y = jnp.matmul(
            x.astype("bfloat16"),
            weight.astype("bfloat16"),
            preferred_element_type="float32",
        )
    else:
        (a, sa), (b, sb) = rows_to_codes(x, 1e-12), rows_to_codes(weight.T, 1e-12)
        y = jnp.matmul(a, b.T, preferred_element_type="int32").astype("float32")
        y = y * sa[..., None] * sb
    return y if bias is None else y + bias


def layer(p, name, x, policy):
    return dense(x, p[f"{name}.weight"], p[f"{name}.bias"], policy)


def attention(q, k, v, sees):
    scores = jnp.einsum("bqhk,bshk->bhqs", q, k, precision="highest")
    scores = jnp.where(sees, scores / jnp.sqrt(jnp.float32(q.shape[-1])), -jnp.inf)
    a = jnp.where(sees, jax.nn.softmax(scores, axis=-1, where=sees), 0.0)
    return jnp.einsum("bhqs,bshk->bqhk", a, v, precision="highest")


def run(p, x, sees, model, policy, store):
    """Runs the blocks; `store` keeps a block's k and v and gives back what to read."""
    for i in range(model.blocks):
        y = layer(
            p, f"h.{i}.attn.c_attn", layer_norm(p, f"h.{i}.ln_1", x, model), policy
        )
        shape = (*x.shape[:2], model.heads, model.head_width)
        q, k, v = (part.reshape(shape) for part in jnp.split(y, 3, axis=-1))
        mixed = attention(q, *store(i, k, v), sees).reshape(x.shape)
        x = x + layer(p, f"h.{i}.attn.c_proj", mixed, policy)
        y = layer(p, f"h.{i}.mlp.c_fc", layer_norm(p, f"h.{i}.ln_2", x, model), policy)
        x = x + layer(p, f"h.{i}.mlp.c_proj", jax.nn.gelu(y), policy)
    return x


def head(p, x, model):
    return dense(layer_norm(p, "ln_f", x, model), p["lm_head.weight"].T, None, "fp32")


def logits(parameters, tokens, model, *, policy="fp32", stored=None):
    steps = tokens.shape[1]
    sees = jnp.tril(jnp.ones((steps, steps), bool)) & (tokens != PAD)[:, None, None]
    x = parameters["wte.weight"][tokens] + parameters["wpe.weight"][:steps]

    def store(i, k, v):
        return (k, v) if stored is None else (stored(k), stored(v))

    return head(parameters, run(parameters, x, sees, model, policy, store), model)


def prefill(parameters, tokens, length, model, policy):
    rows, steps = tokens.shape
    real = jnp.arange(steps) < length[:, None]
    sees = jnp.tril(jnp.ones((steps, steps), bool)) & real[:, None, None]
    tokens = jnp.where(real, tokens, PAD)
    x = parameters["wte.weight"][tokens] + parameters["wpe.weight"][:steps]
    kept = []

    def store(i, k, v):
        (kc, ks), (vc, vs) = quantize(k, policy.cache), quantize(v, policy.cache)
        kept.append((kc, vc, ks, vs, k, v))
        return dequantize(kc, ks), dequantize(vc, vs)

    x = run(parameters, x, sees, model, policy.dense, store)
    *cache, keys, values = (jnp.stack(each) for each in zip(*kept, strict=True))
    last = x[jnp.arange(rows), length - 1][:, None]
    return head(parameters, last, model)[:, 0], (*cache, length), keys, values


def decode_token(parameters, token, cache, model, policy):
    rows, slots = jnp.arange(len(token)), cache.keys.shape[2]
    used = jnp.arange(slots) <= cache.length[:, None]
    x = parameters["wte.weight"][token] + parameters["wpe.weight"][cache.length]
    kept = []

    def put(old, new):
        return old.at[rows, cache.length].set(new)

    def read(codes, scales):
        return jnp.where(used[..., None, None], dequantize(codes, scales), 0.0)

    def store(i, k, v):
        (kc, ks), (vc, vs) = (quantize(x[:, 0], policy.cache) for x in (k, v))
        block = (
            put(cache.keys[i], kc),
            put(cache.values[i], vc),
            put(cache.key_scales[i], ks),
            put(cache.value_scales[i], vs),
        )
        kept.append((*block, k[:, 0], v[:, 0]))
        return read(block[0], block[2]), read(block[1], block[3])

    sees = used[:, None, None]
    x = run(parameters, x[:, None], sees, model, policy.dense, store)
    *new, keys, values = (jnp.stack(each) for each in zip(*kept, strict=True))
    return head(parameters, x, model)[:, 0], (*new, cache.length + 1), keys, values
