"""Which bits lie in the cache, and are they the ones the rule asks for?

Parity between two programs of this system cannot see a wrong quantiser, which would be
in both. Here the codes and scales of every token and head are rebuilt by NumPy from
the vectors that the same compiled program was about to store. What the system reads
back from them is held against their product, for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from model.cache import STORAGE_DTYPES, Cache, cache_arrays, restore, store
from model.checks import rows
from model.checks.cache import Append, CachedModel, walk
from model.checks.differences import largest_value
from model.config import ModelConfig, Policy
from model.parameters import Parameters
from model.reference import cache as reference
from model.tokenizer import PAD

STORAGE_BYTES = {"float32": 4, "bfloat16": 2, "int8": 1}


def check_arrays(
    cache: Cache, model: ModelConfig, cache_policy: str
) -> tuple[list[rows.Row], list[rows.Row], list[rows.Row]]:
    """Claim 3.4: dtype, shape and bytes of a cache of one row, counted from its arrays.

    Args:
        cache: A cache that a prefill made; its first row is counted.
        model: Shape of the model.
        cache_policy: "fp32", "bf16" or "int8".

    Returns:
        Rows of ``cache_arrays``, ``comparisons`` and ``measurements``.
    """
    arrays, comparisons, total = [], [], 0
    slots = (model.blocks, 1, model.context_tokens, model.heads)
    storage = jnp.dtype(STORAGE_DTYPES[cache_policy]).name
    for name, array in cache_arrays(cache).items():
        held = array[:, :1]
        is_scale = name.endswith("scales")
        shape = slots if is_scale else (*slots, model.head_width)
        expected = f"{'float32' if is_scale else storage} {list(shape)}"
        found = f"{held.dtype.name} {list(held.shape)}"
        arrays.append(
            {
                "cache_policy": cache_policy,
                "array_name": name,
                "dtype": held.dtype.name,
                "shape": str(list(held.shape)),
                "array_bytes": held.nbytes,
            }
        )
        case = f"{cache_policy}/{name}"
        rule = "the cache policy and the model's shape"
        comparisons.append(
            rows.comparison("3.4", "array_layout", case, expected, found, rule)
        )
        total += held.nbytes
    counted = rows.count("3.4", "cache_bytes", cache_policy, total, "bytes")
    vectors = int(np.prod(slots))
    planned = 2 * vectors * (model.head_width * STORAGE_BYTES[storage] + 4)
    beyond = rows.count(
        "3.4", "cache_bytes_beyond_plan", cache_policy, total - planned, "bytes"
    )
    return arrays, comparisons, [counted, beyond]


@dataclass(kw_only=True)
class CodeTally:
    """What a comparison of stored codes and scales with the reference found."""

    vectors: int = 0
    codes_differing: int = 0
    scales_differing: int = 0
    scales_not_positive: int = 0
    codes_out_of_range: int = 0
    entries_restored_differing: int = 0
    largest_error_steps: float = 0.0
    first: str = field(default="")

    def add(
        self,
        raw: np.ndarray,
        codes: np.ndarray,
        scales: np.ndarray,
        restored: np.ndarray,
    ) -> None:
        """Holds stored codes and scales, and what is read back, against the reference.

        Args:
            raw: Vectors [n, K] before storage.
            codes: Their codes [n, K].
            scales: Their scales [n].
            restored: Vectors [n, K] that the system reads back from codes and scales.
        """
        cache_policy = {"float32": "fp32", "int8": "int8"}.get(codes.dtype.name, "bf16")
        wanted_codes, wanted_scales = reference.store(raw, cache_policy)
        bits = np.dtype(f"u{codes.dtype.itemsize}")
        # What is no number on both sides was stored rightly by neither.
        is_wrong = (codes.view(bits) != wanted_codes.view(bits)) | ~np.isfinite(codes)
        self.vectors += len(raw)
        self.codes_differing += int(np.sum(is_wrong))
        self.scales_differing += int(
            np.sum(scales.view(np.uint32) != wanted_scales.view(np.uint32))
        )
        self.scales_not_positive += int(np.sum(~(scales > 0)))
        # Of a NaN too: it equals nothing.
        product = reference.restore(codes, scales).astype(np.float32)
        self.entries_restored_differing += int(np.sum(~(restored == product)))
        if np.any(is_wrong) and not self.first:
            place = tuple(int(i) for i in np.argwhere(is_wrong)[0])
            self.first = (
                f"vector {place[0]} entry {place[1]}: expected "
                f"{wanted_codes[place]!s}, stored {codes[place]!s}"
            )
        if cache_policy == "int8":
            self.codes_out_of_range += int(np.sum(np.abs(codes.astype(int)) > 127))
            error = np.abs(raw - codes * scales[:, None].astype(np.float64))
            steps = error / np.where(scales > 0, scales, 1)[:, None]
            self.largest_error_steps = largest_value(
                [self.largest_error_steps, steps.max()]
            )

    def rows(self, case: str) -> list[rows.Row]:
        """The tally as rows of ``measurements`` for claim 3.5."""
        found = [
            rows.count("3.5", name, case, getattr(self, name), name.split("_")[0])
            for name in (
                "vectors",
                "codes_differing",
                "scales_differing",
                "scales_not_positive",
                "entries_restored_differing",
                # Only integer codes have a range; real ones could not leave it.
                *(["codes_out_of_range"] if case.startswith("int8") else []),
            )
        ]
        found[1]["detail"] = self.first
        if case.startswith("int8"):
            found.append(
                rows.real(
                    "3.5",
                    "largest_error_steps",
                    case,
                    self.largest_error_steps,
                    "steps",
                )
            )
        return found


def crafted_vectors(width: int) -> np.ndarray:
    """Vectors [n, width] on which quantisers part: zero, ties, tiny, huge."""
    ties = np.array([127, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 126.5, -126.5, -127])
    ladder = np.linspace(-1.0, 1.0, width)
    found = [
        np.zeros(width),
        -np.zeros(width),
        np.resize(ties, width),
        np.resize(-ties, width) * 2.0**-20,
        ladder * 1e-20,
        ladder * 1e-35,
        ladder * 1e30,
        np.eye(width)[0],
        -np.eye(width)[-1] * 3e-9,
        np.full(width, 1 / 3),
    ]
    return np.array(found, np.float32)


def check_crafted(model: ModelConfig, cache_policy: str) -> list[rows.Row]:
    """Claim 3.5 on crafted vectors, the zero vector among them."""
    raw = crafted_vectors(model.head_width)
    codes, scales = jax.jit(store, static_argnums=1)(jnp.asarray(raw), cache_policy)
    read = jax.jit(restore)(codes, scales)
    tally = CodeTally()
    tally.add(raw, *(np.asarray(each) for each in (codes, scales, read)))
    return tally.rows(f"{cache_policy}/crafted")


class CodeCheck:
    """Claim 3.5: codes and scales of every token and head of documents, K and V apart.

    Each document is seen twice: written by one prefill, and appended token by token in
    a walk that this object observes.
    """

    def __init__(self, tokens: np.ndarray, model: ModelConfig, policy: Policy) -> None:
        """Starts without any vector.

        Args:
            tokens: int32 [N, T] inputs of documents, right padded with PAD.
            model: Shape of the model.
            policy: Policy whose storage is checked.
        """
        self._tokens = tokens
        self._is_token = tokens != PAD
        self._model = model
        self._policy = policy
        self._restore = jax.jit(restore)
        self._tallies = {
            f"{policy.name}/{writer}/{array}": CodeTally()
            for writer in ("prefill", "decode")
            for array in ("keys", "values")
        }

    def prefill(self, system: CachedModel, parameters: Parameters) -> None:
        """Writes every document by one prefill and tallies its vectors."""
        lengths = np.sum(self._is_token, axis=1).astype(np.int32)
        step = next(
            walk(system, parameters, self._tokens, lengths, self._model, self._policy)
        )
        for array, raw in zip(("keys", "values"), step.vectors, strict=True):
            seen = self._is_token
            held = (each[:, seen] for each in self._held(step.after, array))
            self._add("prefill", array, raw[:, seen], *held)

    def observe(self, step: Append) -> None:
        """Tallies the vectors of one append, in the rows that have a token there."""
        if step.before is None:
            return
        slot = int(np.max(step.after.length)) - 1
        here = self._is_token[:, slot]
        if not here.any():
            return
        for array, raw in zip(("keys", "values"), step.vectors, strict=True):
            held = (each[:, here, slot] for each in self._held(step.after, array))
            self._add("decode", array, raw[:, here], *held)

    def rows(self) -> list[rows.Row]:
        """Rows of ``measurements``, one case a writer and array."""
        return [row for case, each in self._tallies.items() for row in each.rows(case)]

    def _add(
        self,
        writer: str,
        array: str,
        raw: np.ndarray,
        codes: np.ndarray,
        scales: np.ndarray,
        restored: np.ndarray,
    ) -> None:
        width = self._model.head_width
        vectors = (each.reshape(-1, width) for each in (raw, codes, restored))
        raw, codes, restored = vectors
        tally = self._tallies[f"{self._policy.name}/{writer}/{array}"]
        tally.add(raw, codes, scales.reshape(-1), restored)

    def _held(self, cache: Cache, array: str) -> Iterator[np.ndarray]:
        """Codes [L, B, T, H, K], scales [L, B, T, H] and what is read back from them,
        [L, B, T, H, K], of the keys or of the values.
        """
        codes = getattr(cache, array)
        scales = cache.key_scales if array == "keys" else cache.value_scales
        # All slots at once, so that one small program reads every step.
        for each in (codes, scales, self._restore(codes, scales)):
            yield np.asarray(each)
