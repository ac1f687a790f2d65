"""Faults of Adam and of its state: counts, moments, epsilon, rates and decay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from model.faults import Fault

GROUP = "optimizer"
fault = partial(Fault, group=GROUP, stages=("train_model",))

Update = Callable[..., tuple[Any, Any]]
# So many updates in, no correction is left.
LATE_STEP = 1_000_000


def _corrected_as_of(step: Callable[[jax.Array], jax.Array]) -> Callable[[Any], Any]:
    """Returns an Adam whose bias correction is that of another number of updates."""

    def replacement(original: Update) -> Update:
        def adam_update(
            parameters: Any, gradients: Any, state: Any, optimizer: Any
        ) -> tuple[Any, Any]:
            other = state._replace(step=step(state.step))
            moved, after = original(parameters, gradients, other, optimizer)
            return moved, after._replace(step=state.step + jnp.int32(1))

        return adam_update

    return replacement


def _step_stays(original: Update) -> Update:
    def adam_update(
        parameters: Any, gradients: Any, state: Any, optimizer: Any
    ) -> tuple[Any, Any]:
        moved, after = original(parameters, gradients, state, optimizer)
        return moved, after._replace(step=state.step)

    return adam_update


def _with_settings(change: Callable[[Any], Any]) -> Callable[[Update], Update]:
    """Returns an Adam that runs under other settings than those it was given."""

    def replacement(original: Update) -> Update:
        def adam_update(
            parameters: Any, gradients: Any, state: Any, optimizer: Any
        ) -> tuple[Any, Any]:
            return original(parameters, gradients, state, change(optimizer))

        return adam_update

    return replacement


def _epsilon_inside(original: Update) -> Update:
    def adam_update(
        parameters: Any, gradients: Any, state: Any, optimizer: Any
    ) -> tuple[Any, Any]:
        plain, after = original(parameters, gradients, state, optimizer)
        exponent = after.step.astype(jnp.float32)
        correction = jnp.float32(1.0) - jnp.float32(optimizer.beta2) ** exponent
        moved = {}
        for name, before in parameters.items():
            mean_square = after.second_moment[name] / correction
            outside = jnp.sqrt(mean_square) + optimizer.epsilon
            inside = jnp.sqrt(mean_square + optimizer.epsilon)
            moved[name] = before + (plain[name] - before) * outside / inside
        return moved, after

    return adam_update


def _decay_everywhere(original: Update) -> Update:
    def adam_update(
        parameters: Any, gradients: Any, state: Any, optimizer: Any
    ) -> tuple[Any, Any]:
        from model.schedule import learning_rate, weight_decay

        moved, after = original(parameters, gradients, state, optimizer)
        rate = learning_rate(after.step, optimizer)
        share = rate * weight_decay(after.step, optimizer)
        biases = {
            name: moved[name] - share * x
            for name, x in parameters.items()
            if x.ndim == 1
        }
        return {**moved, **biases}, after

    return adam_update


def _rate_raised(original: Callable[..., jax.Array]) -> Any:
    return lambda *arguments: original(*arguments) * jnp.float32(1.01)


def _restored_with(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a restore whose state is another than the one that was saved."""

    def replacement(original: Callable[..., Any]) -> Any:
        def restore_training(request: Any) -> Any:
            state, progress, latest = original(request)
            return change(state), progress, latest

        return restore_training

    return replacement


def _zeros(tree: Any) -> Any:
    return jax.tree.map(jnp.zeros_like, tree)


def _rounded(tree: Any) -> Any:
    return jax.tree.map(lambda x: x.astype(jnp.bfloat16).astype(x.dtype), tree)


def _cold(state: Any) -> Any:
    return state._replace(adam=_zeros(state.adam))


def _step_reset(state: Any) -> Any:
    return state._replace(adam=state.adam._replace(step=_zeros(state.adam.step)))


def _first_dropped(state: Any) -> Any:
    moment = _zeros(state.adam.first_moment)
    return state._replace(adam=state.adam._replace(first_moment=moment))


def _moments_rounded(state: Any) -> Any:
    first, second, step = state.adam
    adam = type(state.adam)(_rounded(first), _rounded(second), step)
    return state._replace(adam=adam)


def _parameters_rounded(state: Any) -> Any:
    return state._replace(parameters=_rounded(state.parameters))


FAULTS = (
    fault(
        name="bias-correction-missing",
        summary="Moments that began at zero are taken as they are.",
        source="allenai/OLMo-core#317",
        claim="1.10",
        replaces="model.adam.adam_update",
        replacement=_corrected_as_of(lambda step: jnp.full_like(step, LATE_STEP)),
    ),
    fault(
        name="bias-correction-off-by-one",
        summary="Bias correction is that of the update after this one.",
        source="goodfire-ai/spd#616",
        claim="1.10",
        replaces="model.adam.adam_update",
        replacement=_corrected_as_of(lambda step: step + jnp.int32(1)),
    ),
    fault(
        name="bias-correction-stops-counting",
        summary="From update 101 on, bias correction is that of update 100.",
        source="none known; the fixture's own rule",
        claim="1.10",
        replaces="model.adam.adam_update",
        replacement=_corrected_as_of(lambda step: jnp.minimum(step, jnp.int32(99))),
    ),
    fault(
        name="step-counter-not-incremented",
        summary="The optimizer's count of updates stays where it was.",
        source="allenai/OLMo-core#317",
        claim="1.10",
        replaces="model.adam.adam_update",
        replacement=_step_stays,
    ),
    fault(
        name="adam-epsilon-inside-root",
        summary="Epsilon is added under the root of the second moment.",
        source="none known; the fixture's own rule",
        claim="1.10",
        replaces="model.adam.adam_update",
        replacement=_epsilon_inside,
    ),
    fault(
        name="adam-epsilon-changed",
        summary="Epsilon is 1e-6 whatever the settings say.",
        source="bghira/SimpleTuner#163",
        claim="1.10",
        replaces="model.adam.adam_update",
        replacement=_with_settings(lambda settings: replace(settings, epsilon=1e-6)),
    ),
    fault(
        name="learning-rate-changed",
        summary="The learning rate is one per cent above the schedule.",
        source="facebookresearch/ParlAI#1812",
        claim="1.10",
        replaces="model.schedule.learning_rate",
        replacement=_rate_raised,
    ),
    fault(
        name="weight-decay-enabled",
        summary="Matrices shrink by a weight decay of 0.01 that no setting names.",
        source="JDAI-CV/fast-reid#167",
        claim="1.10",
        replaces="model.adam.adam_update",
        replacement=_with_settings(
            lambda settings: replace(settings, weight_decay=0.01)
        ),
    ),
    fault(
        name="weight-decay-on-biases",
        summary="Weight decay shrinks biases and scales of LayerNorm too.",
        source="none known; the fixture's own rule",
        claim="1.10",
        replaces="model.adam.adam_update",
        replacement=_decay_everywhere,
    ),
    fault(
        name="betas-swapped",
        summary="The shares that the two moments keep are exchanged.",
        source="thought of here, without a report",
        claim="1.10",
        replaces="model.adam.adam_update",
        replacement=_with_settings(
            lambda settings: replace(
                settings, beta1=settings.beta2, beta2=settings.beta1
            )
        ),
    ),
    fault(
        name="optimizer-cold-start",
        summary="A restore brings back the parameters alone.",
        source="thinking-machines-lab/tinker-feedback#126",
        claim="2.1",
        stages=("resume_training",),
        replaces="model.restore.restore_training",
        replacement=_restored_with(_cold),
    ),
    fault(
        name="first-moment-dropped",
        summary="A restore forgets the first moment.",
        source="KempnerInstitute/KempnerForge#114",
        claim="2.1",
        stages=("resume_training",),
        replaces="model.restore.restore_training",
        replacement=_restored_with(_first_dropped),
    ),
    fault(
        name="bias-correction-step-reset",
        summary="A restore begins to count updates at 0.",
        source="goodfire-ai/spd#678",
        claim="2.1",
        stages=("resume_training",),
        replaces="model.restore.restore_training",
        replacement=_restored_with(_step_reset),
    ),
    fault(
        name="moments-rounded-to-bf16",
        summary="A restore rounds both moments to bfloat16.",
        source="TensorAuto/OpenTau#184",
        claim="2.1",
        stages=("resume_training",),
        replaces="model.restore.restore_training",
        replacement=_restored_with(_moments_rounded),
    ),
    fault(
        name="parameters-rounded-to-bf16",
        summary="A restore rounds the parameters to bfloat16.",
        source="pytorch/torchtitan#4615",
        claim="2.1",
        stages=("resume_training",),
        replaces="model.restore.restore_training",
        replacement=_restored_with(_parameters_rounded),
    ),
)
