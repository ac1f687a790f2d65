"""Faults of dense layers under a policy: accumulators, scales, codes and biases."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from model.faults import Fault

GROUP = "w8a8"
fault = partial(Fault, group=GROUP, stages=("quantize_cache",))

Contract = Callable[..., jax.Array]
Quantize = Callable[..., tuple[jax.Array, jax.Array]]
CODE_LIMIT = 127


def _summed_in(dtype: Any) -> Callable[[Contract], Contract]:
    """Returns a product whose sums of INT8 codes are kept in another type."""

    def replacement(original: Contract) -> Contract:
        def contract(x: jax.Array, weight: jax.Array, result: Any, *rest: Any) -> Any:
            if x.dtype != jnp.int8:
                return original(x, weight, result, *rest)
            return original(x, weight, dtype, *rest).astype(result)

        return contract

    return replacement


def _summed_as_floats(original: Contract) -> Contract:
    def contract(x: jax.Array, weight: jax.Array, result: Any, *rest: Any) -> Any:
        if x.dtype != jnp.int8:
            return original(x, weight, result, *rest)
        floats = x.astype(jnp.float32), weight.astype(jnp.float32)
        exact = jax.lax.Precision.HIGHEST
        return original(*floats, jnp.float32, exact).astype(result)

    return contract


def _scale_of_tensor(original: Quantize) -> Quantize:
    def quantize_rows(x: jax.Array, limit: int = CODE_LIMIT) -> Any:
        peak = jnp.max(jnp.abs(x))
        scale = peak * jnp.float32(1.0 / limit)
        codes = jnp.round(x * (jnp.float32(1.0) / scale))
        return codes.astype(jnp.int8), jnp.broadcast_to(scale, x.shape[:-1])

    return quantize_rows


def _truncated(original: Quantize) -> Quantize:
    def quantize_rows(x: jax.Array, limit: int = CODE_LIMIT) -> Any:
        _, scales = original(x, limit)
        steps = jnp.trunc(x * (jnp.float32(1.0) / scales)[..., None])
        return jnp.clip(steps, -limit, limit).astype(jnp.int8), scales

    return quantize_rows


def _wraps(original: Quantize) -> Quantize:
    def quantize_rows(x: jax.Array, limit: int = CODE_LIMIT) -> Any:
        _, scales = original(x, limit + 1)
        steps = jnp.round(x * (jnp.float32(1.0) / scales)[..., None])
        # Through int32, whose cast keeps the low bits of what is too large.
        return steps.astype(jnp.int32).astype(jnp.int8), scales

    return quantize_rows


def _bias_in_steps(original: Contract) -> Contract:
    def dense(x: jax.Array, weight: jax.Array, bias: Any, policy: str) -> jax.Array:
        if policy == "w8a8" and bias is not None:
            step = jnp.maximum(jnp.max(jnp.abs(bias)) / CODE_LIMIT, 1e-12)
            bias = jnp.round(bias / step) * step
        return original(x, weight, bias, policy)

    return dense


def _result_rounded(original: Contract) -> Contract:
    def dense(x: jax.Array, weight: jax.Array, bias: Any, policy: str) -> jax.Array:
        found = original(x, weight, bias, policy)
        if policy != "bf16":
            return found
        return found.astype(jnp.bfloat16).astype(jnp.float32)

    return dense


FAULTS = (
    fault(
        name="int8-accumulator",
        summary="Products of INT8 codes are summed in INT8 and wrap.",
        source="jax-ml/jax#4465",
        claim="3.7",
        replaces="model.dense._contract",
        replacement=_summed_in(jnp.int8),
    ),
    fault(
        name="int16-accumulator",
        summary="Products of INT8 codes are summed in INT16 and wrap.",
        source="triton-lang/triton#2296",
        claim="3.7",
        replaces="model.dense._contract",
        replacement=_summed_in(jnp.int16),
    ),
    fault(
        name="float-accumulator",
        summary="INT8 codes are multiplied and summed in float32, which rounds.",
        source="Comfy-Org/comfy-kitchen#133",
        claim="3.7",
        # The sums are exact up to 1040 numbers; the lowered program tells the types.
        stages=("export_endpoints",),
        replaces="model.dense._contract",
        replacement=_summed_as_floats,
    ),
    fault(
        name="activation-scale-per-tensor",
        summary="All rows have one scale, so that one row changes another.",
        source="microsoft/onnxruntime#28228",
        claim="3.7",
        replaces="model.dense.quantize_rows",
        replacement=_scale_of_tensor,
    ),
    fault(
        name="w8a8-truncation",
        summary="Codes are cut off towards zero instead of rounded.",
        source="tenstorrent/tt-metal#56327",
        claim="3.7",
        replaces="model.dense.quantize_rows",
        replacement=_truncated,
    ),
    fault(
        name="w8a8-wraps",
        summary="The largest entry is 128 steps, and its code wraps to -128.",
        source="tenstorrent/tt-metal#56327",
        claim="3.7",
        replaces="model.dense.quantize_rows",
        replacement=_wraps,
    ),
    fault(
        name="w8a8-bias-in-int8",
        summary="The bias is rounded to INT8 codes too, with one scale for all of it.",
        source="pytorch/glow#3466",
        claim="3.7",
        replaces="model.dense.dense",
        replacement=_bias_in_steps,
    ),
    fault(
        name="bf16-result-rounded",
        summary="The float32 sum of a BF16 product is rounded to BF16 at the end.",
        source="pytorch/xla#7160",
        claim="3.7",
        replaces="model.dense.dense",
        replacement=_result_rounded,
    ),
)
