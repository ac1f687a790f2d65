"""What the small GPT beside imports from its own folder."""

import jax.numpy as jnp


def layer_norm(p, name, x, model):
    mean = x.mean(-1, keepdims=True)
    spread = jnp.sqrt(x.var(-1, keepdims=True) + model.layer_norm_epsilon)
    return (x - mean) / spread * p[f"{name}.weight"] + p[f"{name}.bias"]


def linear(p, name, x):
    return jnp.matmul(x, p[f"{name}.weight"], precision="highest") + p[f"{name}.bias"]


def split_heads(x, heads):
    rows, steps, width = x.shape
    return x.reshape(rows, steps, heads, width // heads).transpose(0, 2, 1, 3)
