"""Runs the cache of the trained model under every policy and measures what it keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from model.checks import cache as cache_checks
from model.checks import cache_storage, policies, precision, rows
from model.checks import dense as dense_checks
from model.checks.cache import CACHE_POLICIES, CachedModel
from model.checks.cache_capacity import check_full_rows
from model.config import POLICIES, CacheConfig, ModelConfig, Policy, from_dict
from model.corpus import load_corpus
from model.parameters import Parameters, load_parameters
from model.programs import entry

SPLIT = "heldout"
# Appends after a batch of mixed prompt lengths; a short context has fewer.
MIXED_APPENDS = 6


def main(request: dict[str, Any], out: Path) -> None:
    """Measures claims 3.1 to 3.8, but for the lowered endpoints of 3.7.

    Args:
        request: ``model``, ``cache`` (settings), ``parameters``, ``tokens``,
            ``corpus`` (paths).
        out: Result folder.
    """
    model = from_dict(ModelConfig, request["model"])
    settings = from_dict(CacheConfig, request["cache"])
    parameters = load_parameters(Path(request["parameters"]), model)
    corpus = load_corpus(Path(request["tokens"]), Path(request["corpus"]), model)
    tokens = corpus.tokens[SPLIT]
    chosen = sample_rows(len(tokens), settings.documents, settings.sampling_seed)
    check = _Check(
        out=out,
        parameters=parameters,
        tokens=tokens[chosen],
        document_ids=[corpus.document_ids[SPLIT][row] for row in chosen],
        model=model,
        lengths=cache_checks.compared_lengths(model.context_tokens, settings.lengths),
    )
    for policy in CACHE_POLICIES:
        entry.report(event="policy", message=f"cache policy {policy.name}")
        check.cache_policy(policy)
    for policy in POLICIES.values():
        entry.report(event="policy", message=f"release policy {policy.name}")
        check.policy("release", policy)
    for policy in policies.EXPERIMENTS:
        entry.report(event="policy", message=f"experiment {policy.name}")
        check.policy("experiment", policy)
    for policy in policies.FORMATS:
        entry.report(event="policy", message=f"format {policy.name}")
        check.policy("format", policy)
    entry.report(event="policy", message="dense layers")
    check.dense_layers()


def sample_rows(available: int, wanted: int, seed: int) -> list[int]:
    """Rows of a sample without replacement, in order; every row when ``wanted`` is 0.

    The rule is part of the evidence: NumPy's PCG64 seeded with ``seed``.
    """
    if not wanted or wanted >= available:
        return list(range(available))
    generator = np.random.Generator(np.random.PCG64(seed))
    return sorted(int(row) for row in generator.choice(available, wanted, False))


@dataclass(kw_only=True)
class _Check:
    """The checks of one program run, with what they have in common."""

    out: Path
    parameters: Parameters
    tokens: np.ndarray
    document_ids: list[str]
    model: ModelConfig
    lengths: tuple[int, ...]
    system: CachedModel = field(default_factory=CachedModel)

    def __post_init__(self) -> None:
        self.inputs = self.tokens[:, :-1]
        self.filled = cache_checks.fill_rows(self.tokens)
        self.exact = precision.exact_logits(self.parameters, self.inputs, self.model)
        self.policies = policies.PolicyCheck(
            parameters=self.parameters,
            tokens=self.tokens,
            document_ids=self.document_ids,
            model=self.model,
            exact=self.exact,
            system=self.system,
        )

    def cache_policy(self, policy: Policy) -> None:
        """Writes the rows of claims 3.1 to 3.6 for one cache under float32 layers."""
        codes = cache_storage.CodeCheck(self.inputs, self.model, policy)
        codes.prefill(self.system, self.parameters)
        logits: list[np.ndarray] = []
        measured = self._walks(
            policy, (codes.observe, lambda step: logits.append(step.logits))
        )
        filled, model = self.filled, self.model
        system, parameters = self.system, self.parameters
        measured.append(
            cache_checks.check_prefill_garbage(
                system, parameters, filled, model, policy
            )
        )
        refused, changed = cache_checks.check_capacity(
            system, parameters, filled, model, policy
        )
        refusals, beside = check_full_rows(system, parameters, filled, model, policy)
        full = np.full(len(filled), model.context_tokens, np.int32)
        _, cache, _ = system.prefill(parameters, filled, full, model, policy)
        arrays, layouts, sizes = cache_storage.check_arrays(cache, model, policy.cache)
        crafted = cache_storage.check_crafted(model, policy.cache)
        measured += [changed, *beside, *sizes, *codes.rows(), *crafted]
        entry.write_rows(self.out, "measurements", measured)
        entry.write_rows(self.out, "refusals", [refused, *refusals])
        entry.write_rows(self.out, "comparisons", layouts)
        entry.write_rows(self.out, "cache_arrays", arrays)
        if policy.cache != "fp32":
            # The rows of a document come first in the filled rows, so its logits do.
            self._logit_errors(f"{policy.cache}-cache", np.stack(logits, axis=1))

    def policy(self, kind: str, policy: Policy) -> None:
        """Writes the rows of claims 3.6 and 3.8 for dense layers and cache together."""
        found = self.policies.measure(kind, policy)
        entry.write_rows(self.out, "policies", [found.row])
        entry.write_rows(self.out, "policy_arrays", found.arrays)
        entry.write_rows(self.out, "logit_errors", found.errors)
        if kind == "release" and policy.name != "fp32" and found.errors:
            summary = precision.summary_rows(policy.name, found.errors)
            entry.write_rows(self.out, "measurements", summary)
            self._places(policy.name, found.errors)

    def dense_layers(self) -> None:
        """Writes the rows of claim 3.7 for dense products."""
        inputs = dense_checks.layer_inputs(self.parameters, self.inputs, self.model)
        inputs[dense_checks.CRAFTED] = dense_checks.crafted_input()
        entry.write_rows(self.out, "measurements", dense_checks.measure_dense(inputs))

    def _walks(self, policy: Policy, observers: Any) -> list[rows.Row]:
        """Claims 3.1 and 3.2: from BOS to a full cache, then in mixed batches."""
        context = self.model.context_tokens
        every = tuple(range(1, context + 1))
        appends = min(context // 2, MIXED_APPENDS)
        found: list[rows.Row] = []
        for suffix, longest, compared, watching in (
            ("", 1, self.lengths, observers),
            ("_mixed_prompts", context - 1, every, ()),
            ("_mixed_batch", context - appends, every, ()),
        ):
            found += cache_checks.check_walk(
                self.system,
                self.parameters,
                self.filled,
                cache_checks.mixed_lengths(len(self.filled), longest),
                self.model,
                policy,
                compared,
                suffix,
                watching,
            )
        return found

    def _logit_errors(self, name: str, rounded: np.ndarray) -> None:
        errors, measured = precision.check_logit_errors(
            name, self.exact, rounded, self.tokens[:, 1:], self.document_ids
        )
        entry.write_rows(self.out, "logit_errors", errors)
        entry.write_rows(self.out, "measurements", measured)
        self._places(name, errors)

    def _places(self, name: str, errors: list[rows.Row]) -> None:
        row = precision.place_row(name, errors, self.tokens, self.document_ids)
        entry.write_rows(self.out, "comparisons", [row])


if __name__ == "__main__":
    entry.run(main)
