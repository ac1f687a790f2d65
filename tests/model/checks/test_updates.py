"""One update of a real training, and the same with one planted fault of optimizers.

Every fault is in the production functions that the training calls, and every verdict is
the one that a review would show of the rows.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import adam, batches, training, training_loop
from model.adam import AdamState
from model.checks import draws, first_loss, updates
from model.checks.rows import Row
from model.checks.trained import TrainingChecks
from model.config import ModelConfig, OptimizerConfig, TrainConfig
from model.corpus import Corpus
from model.parameters import initial_parameters, save_parameters
from model.training import initial_state
from model.training_loop import initial_progress, run_updates
from model.training_request import TrainingRequest
from tests.judged import OPEN, REVISE, judged_rows, verdict
from tests.model.made_tokens import documents_of_letters

MODEL = ModelConfig(context_tokens=6, width=12, feed_forward_width=16)
# The system's own optimizer with nothing moving, as the preset `fixture` has it.
TRAIN = TrainConfig(updates=9, batch_documents=4, optimizer=OptimizerConfig())
STAGE = "train_model"


def asked() -> TrainingRequest:
    tokens = documents_of_letters()
    corpus = Corpus(
        tokens={"train": tokens},
        document_ids={"train": [str(row) for row in range(len(tokens))]},
        split_sha256="",
        description={},
    )
    return TrainingRequest(
        label="test",
        model=MODEL,
        train=TRAIN,
        corpus=corpus,
        final_update=TRAIN.updates,
        suffix="",
        is_evaluated=True,
        checkpoint_folder=None,
        checkpoint_every_updates=1,
        restore_folder=None,
        pause_after_update=None,
        watched_write=None,
        pause_at_step=None,
        compared_trace=None,
    )


def watched_training() -> list[Row]:
    """The rows of a training that goes as the program lets it go."""
    request = asked()
    tokens = request.corpus.tokens["train"]
    checks = TrainingChecks(request)
    state = initial_state(MODEL, TRAIN.initialization_seed)
    progress, rates = initial_progress(TRAIN, len(tokens)), []
    for made in run_updates(state, progress, tokens, MODEL, TRAIN, TRAIN.updates):
        checks.see(state, made, float(made.outcome.loss))
        rates.append(float(made.outcome.learning_rate))
        state = made.state
    checks.finish(rates, 1)
    return [*checks.measurements, *checks.comparisons]


def verdicts(folder: Path) -> dict[str, str]:
    found = judged_rows(folder, STAGE, watched_training())
    return {claim: found[claim] for claim in ("1.10", "2.1", "2.9")}


def test_a_training_as_it_is_revises_nothing(tmp_path: Path) -> None:
    assert verdicts(tmp_path) == {"1.10": OPEN, "2.1": OPEN, "2.9": OPEN}


def with_adam(
    *,
    is_epsilon_inside: bool = False,
    corrected_by: int | None = 0,
    are_betas_exchanged: bool = False,
    decay_sign: float = 1.0,
    rate_late_by: int = 0,
    is_step_kept: bool = False,
    clipped_at: float | None = None,
    frozen: str = "",
    is_second_rounded: bool = False,
) -> Callable[..., Any]:
    """Adam with one thing wrong; with nothing wrong it is Adam."""

    def update(
        parameters: Any, gradients: Any, state: AdamState, optimizer: OptimizerConfig
    ) -> Any:
        beta1, beta2 = optimizer.beta1, optimizer.beta2
        if are_betas_exchanged:
            beta1, beta2 = beta2, beta1
        step = state.step + jnp.int32(1)
        rate = adam.learning_rate(step - jnp.int32(rate_late_by), optimizer)
        decay = decay_sign * rate * adam.weight_decay(step, optimizer)
        ones = (jnp.float32(1.0), jnp.float32(1.0))
        if corrected_by is not None:
            at = (step + jnp.int32(corrected_by)).astype(jnp.float32)
            ones = (1.0 - jnp.float32(beta1) ** at, 1.0 - jnp.float32(beta2) ** at)
        moved, first, second = {}, {}, {}
        for name, own in gradients.items():
            gradient = own if clipped_at is None else jnp.clip(own, max=clipped_at)
            mean = beta1 * state.first_moment[name] + (1.0 - beta1) * gradient
            square = beta2 * state.second_moment[name]
            square = square + (1.0 - beta2) * jnp.square(gradient)
            if is_epsilon_inside:
                root = jnp.sqrt(square / ones[1] + optimizer.epsilon)
            else:
                root = jnp.sqrt(square / ones[1]) + optimizer.epsilon
            size = rate * (mean / ones[0]) / root
            if adam.has_weight_decay(optimizer) and gradient.ndim > 1:
                size = size + decay * parameters[name]
            if is_second_rounded:
                square = square.astype(jnp.bfloat16).astype(jnp.float32)
            moved[name] = parameters[name] - (0.0 if name == frozen else 1.0) * size
            first[name], second[name] = mean, square
        after = state.step if is_step_kept else step
        return moved, AdamState(first_moment=first, second_moment=second, step=after)

    return update


ADAM_FAULTS: dict[str, dict[str, Any]] = {
    "epsilon inside the root": {"is_epsilon_inside": True},
    "no bias correction": {"corrected_by": None},
    "bias correction one update ahead": {"corrected_by": 1},
    "betas exchanged": {"are_betas_exchanged": True},
    "weight decay of the wrong sign": {"decay_sign": -1.0},
    "learning rate one update late": {"rate_late_by": 1},
    "step never counted": {"is_step_kept": True},
    "gradients clipped on the way": {"clipped_at": 1e-3},
    "one bias never moves": {"frozen": "bias"},
    "second moment kept in bfloat16": {"is_second_rounded": True},
}


def moving(monkeypatch: pytest.MonkeyPatch, **fault: Any) -> list[Row]:
    """Rows of the recipe that moves everything, under a planted Adam."""
    monkeypatch.setattr(updates, "adam_update", with_adam(**fault))
    generator = np.random.default_rng(5)
    parameters = {
        "matrix": generator.normal(0.0, 0.1, (6, 4)).astype(np.float32),
        "bias": generator.normal(0.0, 0.1, 4).astype(np.float32),
    }
    gradients = {name: np.float32(0.01) * x for name, x in parameters.items()}
    as_jax = [
        {name: jnp.asarray(x) for name, x in tree.items()}
        for tree in (parameters, gradients)
    ]
    return updates.measure_moving_recipe(*as_jax)


def test_adam_written_out_once_more_is_adam(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the faults below could be found for what they do not plant."""
    assert verdict(tmp_path, STAGE, moving(monkeypatch)) == OPEN


@pytest.mark.parametrize("fault", ADAM_FAULTS)
def test_a_wrong_adam_is_revised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    rows = moving(monkeypatch, **ADAM_FAULTS[fault])
    assert verdict(tmp_path, STAGE, rows) == REVISE


@pytest.mark.usefixtures("compiled_anew")
def test_a_wrong_adam_of_the_training_itself_is_revised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the training calls, and not what a check would call beside it."""
    wrong = with_adam(is_epsilon_inside=True)
    monkeypatch.setattr(training, "adam_update", wrong)
    assert verdicts(tmp_path)["1.10"] == REVISE


@pytest.mark.usefixtures("compiled_anew")
def test_a_gradient_of_a_mean_of_means_is_revised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two halves of a batch, averaged as if they had as many targets: in updates."""

    def right_loss(*given: Any, **named: Any) -> Any:
        mean, (_, count) = right(*given, **named)
        return mean, count

    def loss(parameters: Any, tokens: Any, key: Any, model: ModelConfig) -> Any:
        first, second = (
            right(parameters, half, key, model) for half in jnp.split(tokens, 2)
        )
        mean = (first[0] + second[0]) / 2.0
        return mean, jax.tree.map(jnp.add, first[1], second[1])

    right = training._mean_and_parts
    monkeypatch.setattr(training, "_mean_and_parts", loss)
    monkeypatch.setattr(first_loss, "mean_loss", right_loss)
    assert verdicts(tmp_path)["1.10"] == REVISE


def test_a_key_that_is_the_same_in_every_update_is_revised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = training.dropout_key
    monkeypatch.setattr(training_loop, "dropout_key", lambda seed, _: key(seed, 1))
    assert verdicts(tmp_path)["2.1"] == REVISE


def test_a_key_that_is_told_and_not_consumed_is_revised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first update consumes what it says, the others what the first one did."""
    update, keys = training_loop.training_update, []

    def with_first_key(
        state: Any, tokens: Any, key: Any, model: Any, optimizer: Any
    ) -> Any:
        keys.append(key)
        return update(state, tokens, keys[0], model, optimizer)

    monkeypatch.setattr(training_loop, "training_update", with_first_key)
    found = verdicts(tmp_path)
    assert (found["2.1"], found["2.9"]) == (OPEN, REVISE)


@pytest.mark.parametrize("kept", ["one order", "some rows twice"])
def test_an_order_that_is_read_again_is_revised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    order = batches.epoch_order

    def faulty(seed: int, epoch: int, count: int) -> np.ndarray:
        if kept == "one order":
            return order(seed, 0, count)
        generator = np.random.default_rng([seed, epoch])
        return generator.integers(0, count, count).astype(np.int32)

    monkeypatch.setattr(batches, "epoch_order", faulty)
    assert verdicts(tmp_path)["2.1"] == REVISE


@pytest.mark.parametrize("kept", [8, 6])
def test_a_last_batch_that_is_dropped_is_revised(tmp_path: Path, kept: int) -> None:
    """Three batches of an epoch hold eight documents; without the last it is six."""
    consumed = draws.Consumed()
    for epoch in range(3):
        order = batches.epoch_order(12, epoch, 8)[:kept]
        for start in range(0, kept, 3):
            made = SimpleNamespace(
                cursor=batches.Cursor(epoch=epoch, position=start),
                rows=order[start : start + 3],
                key_data=np.array([epoch, 100 + start], dtype=np.uint32),
            )
            consumed.see(made)  # type: ignore[arg-type]
    rows = consumed.measure(TRAIN, 8)
    assert verdict(tmp_path, STAGE, rows) == (OPEN if kept == 8 else REVISE)


@pytest.mark.parametrize("released", ["average", "parameters"])
def test_a_release_of_what_the_recipe_does_not_release_is_revised(
    tmp_path: Path, released: str
) -> None:
    request = asked()
    averaged = replace(TRAIN, optimizer=replace(TRAIN.optimizer, average_decay=0.5))
    checks = TrainingChecks(replace(request, train=averaged))
    state = initial_state(MODEL, 1)._replace(average=initial_parameters(MODEL, 2))
    save_parameters(tmp_path / "parameters.npz", getattr(state, released))
    checks.released(tmp_path / "parameters.npz", state)
    found = verdict(tmp_path, STAGE, checks.comparisons)
    assert found == (OPEN if released == "average" else REVISE)


def test_updates_made_again_are_those_at_both_ends_and_between() -> None:
    assert updates.checked_updates(300) == [1, 2, 150, 300]
    assert updates.checked_updates(1) == [1]
