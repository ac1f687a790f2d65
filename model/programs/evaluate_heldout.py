"""Evaluates the released parameters on held-out text, and checks the evaluation.

Held-out is read here, once a release, and nothing is chosen by it.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from model.checks import baselines, boundary, objective, perplexities, targets
from model.checks import evaluation as evaluation_checks
from model.checks.rows import Row, count, real
from model.config import EvaluateConfig, ModelConfig, from_dict
from model.corpus import Corpus, load_corpus
from model.digests import tree_sha256
from model.evaluation import FIXED_ROWS, Evaluation, evaluate_split, evaluate_tokens
from model.objective import loss_sum_and_count, token_losses
from model.parameters import Parameters, load_parameters
from model.programs import entry
from model.tokenizer import PAD
from model.training import mean_loss
from model.transformer import attention_weights, logits

SPLIT = "heldout"
BASELINES = "1.12"


def main(request: dict[str, Any], out: Path) -> None:
    """Measures claims 1.7 to 1.13, 2.6, 2.7 and 2.9 on released parameters.

    Args:
        request: `model`, `evaluate` (settings), `parameters`, `training_state`,
            `tokens` and `corpus` (paths).
        out: Result folder.
    """
    model = from_dict(ModelConfig, request["model"])
    settings = from_dict(EvaluateConfig, request["evaluate"])
    parameters = load_parameters(Path(request["parameters"]), model)
    corpus = load_corpus(Path(request["tokens"]), Path(request["corpus"]), model)
    before = tree_sha256(parameters)
    rows = HeldoutRows(out, parameters, corpus, model, settings)
    trained = json.loads(Path(request["training_state"]).read_text("utf-8"))
    evaluation = rows.evaluation(trained["progress"]["step"])
    for name, check in (
        ("baselines", partial(rows.baselines, evaluation)),
        ("batch sizes", rows.batch_sizes),
        ("reference", partial(rows.reference, evaluation)),
        ("malformed targets", rows.malformed_targets),
        ("gradients", rows.gradients),
        ("attention", rows.attention),
        ("future tokens", rows.future_tokens),
    ):
        entry.report(event="check", message=f"held-out: {name}")
        check()
    after = tree_sha256(parameters)
    entry.write_rows(
        out, "comparisons", [evaluation_checks.measure_state(before, after)]
    )


class HeldoutRows:
    """Writes the rows of each check of one release on held-out text."""

    def __init__(
        self,
        out: Path,
        parameters: Parameters,
        corpus: Corpus,
        model: ModelConfig,
        settings: EvaluateConfig,
    ) -> None:
        """Compiles nothing yet."""
        self.out = out
        self.parameters = parameters
        self.arrays = {name: np.asarray(x) for name, x in parameters.items()}
        self.corpus = corpus
        self.model = model
        self.settings = settings
        self.tokens = corpus.tokens[SPLIT]
        self.ids = corpus.document_ids[SPLIT]
        self.logits = jax.jit(partial(logits, model=model))
        self.token_losses: list[dict[str, Any]] = []
        self.stored = np.zeros((0, 0), dtype=np.float32)

    def evaluation(self, updates: int) -> Evaluation:
        """Returns the evaluation of the whole split after writing its rows (2.9)."""
        result = evaluate_split(self.parameters, self.tokens, self.model)
        losses = evaluation_checks.token_loss_rows(self.tokens, self.ids, result, SPLIT)
        entry.write_rows(self.out, "token_losses", losses)
        self.token_losses = losses
        positions = self.model.context_tokens
        self.stored = evaluation_checks.stored_losses(losses, self.ids, positions)
        entry.write_rows(
            self.out,
            "evaluations",
            [
                {
                    "release_policy": "fp32",
                    "split": SPLIT,
                    "update": updates,
                    "batch_documents": FIXED_ROWS,
                    "documents": len(self.tokens),
                    "loss_sum_nats": result.loss_sum_nats,
                    "valid_targets": result.valid_targets,
                    "correct_targets": result.correct_targets,
                }
            ],
        )
        compared = evaluation_checks.measure_token_rows(losses, result)
        entry.write_rows(self.out, "comparisons", compared)
        return result

    def baselines(self, evaluation: Evaluation) -> None:
        """Writes what counting reaches and what the grammar allows (1.12)."""
        training = self.corpus.tokens["train"]
        frequency = baselines.training_frequency_nats(training, self.tokens)
        bounds = baselines.grammar_bounds(self.tokens)
        levels = [("training_frequency", frequency, baselines.FREQUENCY_RULE)]
        if bounds is not None:
            floor = bounds.floor_nats / evaluation.valid_targets
            levels.append(("entropy_floor", floor, baselines.GRAMMAR_RULE))
        rows = [
            {"name": name, "split": SPLIT, "nats_per_token": nats, "rule": rule}
            for name, nats, rule in levels
        ]
        entry.write_rows(self.out, "baselines", rows)
        scored = perplexities.perplexity_rows(self.corpus, SPLIT, evaluation)
        entry.write_rows(self.out, "perplexities", scored)
        entry.write_rows(self.out, "stated_rows", perplexities.stated_rows(scored))
        measured = _baseline_measurements(evaluation, frequency, bounds)
        entry.write_rows(self.out, "measurements", measured)

    def batch_sizes(self) -> None:
        """Writes whether batch sizes change a bit (2.6)."""
        few = self.tokens[: self.settings.batch_size_documents]

        def evaluate(
            parameters: Parameters, tokens: np.ndarray, size: int
        ) -> evaluation_checks.BatchEvaluation:
            found = evaluate_tokens(parameters, tokens, self.model, size)
            return evaluation_checks.BatchEvaluation(
                size, found.losses, found.valid_targets
            )

        counts = np.sum(few[:, 1:] != PAD, axis=1)
        released = evaluation_checks.BatchEvaluation(
            FIXED_ROWS, self.stored[: len(few)], counts
        )
        rows = evaluation_checks.measure_batch_sizes(
            evaluate, self.parameters, few, self.settings.batch_sizes, released
        )
        compared = [row for row in rows if "expected" in row]
        entry.write_rows(self.out, "comparisons", compared)
        measured = [row for row in rows if "expected" not in row]
        entry.write_rows(self.out, "measurements", measured)

    def reference(self, evaluation: Evaluation) -> None:
        """Writes logits, losses and predictions against float64, and batch shapes."""
        wanted = self.settings.reference_documents
        few, losses = self.tokens[:wanted], evaluation.losses[:wanted]
        result = np.asarray(self.logits(self.parameters, jnp.asarray(few[:, :-1])))
        expected = objective.reference_logits(self.arrays, few, self.model)
        rows = objective.measure_reference(expected, few, result, losses)
        rows += objective.measure_crafted(
            jax.jit(token_losses),
            jax.jit(loss_sum_and_count),
            self.model.vocabulary_tokens,
        )
        rows += evaluation_checks.measure_predictions(
            self.token_losses, self.ids[:wanted], expected
        )

        def apply(parameters: Parameters, inputs: np.ndarray) -> np.ndarray:
            return np.asarray(self.logits(parameters, jnp.asarray(inputs)))

        rows += objective.measure_batch_shapes(
            apply,
            self.parameters,
            self.tokens,
            self.settings.compiled_batch_sizes,
            self.stored,
        )
        entry.write_rows(self.out, "measurements", rows)

    def malformed_targets(self) -> None:
        """Writes what became of malformed targets (1.11)."""
        asked = targets.entries(self.parameters, self.model)
        malformed = targets.measure_malformed_targets(asked)
        for table, found in malformed.tables().items():
            entry.write_rows(self.out, table, found)

    def gradients(self) -> None:
        """Writes gradients against central differences (1.10)."""
        wanted = self.settings.gradient_documents
        few = objective.mixed_documents(self.corpus.tokens["train"], wanted)
        # A document of PAD alone counts in no mean, and may harm no gradient.
        padded = np.vstack([few, np.full_like(few[:1], PAD)])
        differentiate = jax.jit(
            jax.grad(partial(mean_loss, key=None, model=self.model), has_aux=True)
        )
        found = differentiate(self.parameters, jnp.asarray(padded))[0]
        gradients = {name: np.asarray(x) for name, x in found.items()}
        rows = objective.measure_gradients(
            gradients, self.arrays, few, self.model, self.settings.perturbation_seed
        )
        rows.append(objective.measure_padded_document(gradients))
        entry.write_rows(self.out, "measurements", rows)

    def attention(self) -> None:
        """Writes attention weights against loops (1.7)."""
        few = self.tokens[: self.settings.attention_documents, :-1]
        weigh = jax.jit(partial(attention_weights, model=self.model))
        measured = np.asarray(weigh(self.parameters, jnp.asarray(few)))
        compared = boundary.reference_attention(self.arrays, few, measured, self.model)
        rows = boundary.measure_one_row(self.arrays, few[0], measured[0, 0], self.model)
        rows += boundary.measure_attention(compared)
        entry.write_rows(self.out, "measurements", rows)
        weights = list(boundary.attention_rows(compared, self.ids))
        entry.write_rows(self.out, "attention_weights", weights)

    def future_tokens(self) -> None:
        """Writes what changed tokens do to earlier logits (1.8)."""
        settings = self.settings
        rows = boundary.measure_future_tokens(
            partial(logits, model=self.model),
            self.parameters,
            self.tokens[: settings.future_documents, :-1],
            self.model,
            positions=settings.future_positions,
            tokens=settings.future_tokens,
            seed=settings.perturbation_seed,
        )
        entry.write_rows(self.out, "measurements", rows)


def _baseline_measurements(
    evaluation: Evaluation, frequency: float, bounds: baselines.GrammarBounds | None
) -> list[Row]:
    targets = evaluation.valid_targets
    loss = evaluation.loss_sum_nats / targets
    accuracy = evaluation.correct_targets / targets
    rows = [
        real(BASELINES, "heldout_nats_per_token", "", loss, "nats"),
        real(BASELINES, "heldout_perplexity", "", float(np.exp(loss)), "1"),
        real(BASELINES, "heldout_token_accuracy", "", accuracy, "1"),
        count(BASELINES, "heldout_valid_targets", "", targets, "targets"),
        real(BASELINES, "training_frequency_nats_per_token", "", frequency, "nats"),
    ]
    if bounds is None:
        unknown = {"value_real": None, "reason": "grammar_unknown"}
        detail = "the documents are not all of the form p|reverse(p)"
        floor = real(BASELINES, "entropy_floor_nats_per_token", "", 0.0, "nats", detail)
        ceiling = real(BASELINES, "token_accuracy_ceiling", "", 0.0, "1", detail)
        return rows + [floor | unknown, ceiling | unknown]
    floor_nats = bounds.floor_nats / targets
    share = bounds.expected_correct_targets / targets
    return rows + [
        real(BASELINES, "entropy_floor_nats_per_token", "", floor_nats, "nats"),
        real(BASELINES, "token_accuracy_ceiling", "", share, "1"),
        real(
            BASELINES,
            "heldout_above_floor_nats_per_token",
            "",
            loss - floor_nats,
            "nats",
        ),
    ]


if __name__ == "__main__":
    entry.run(main)
