"""The declared configurations, and how one is chosen and changed.

Apart from the values themselves, so that another recipe runs no stage again that does
not use it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from model.config import RunConfig
from model.limits import last_drilled_update, require, validate
from model.refusal import ReasonCode, Refused
from model.settings import merge, suggestion, whole_path
from model.settings import override as override_settings


def fixture() -> RunConfig:
    """Returns the small declared system, where a mistake is visible by eye."""
    return RunConfig(preset="fixture")


def fixture_tuned() -> RunConfig:
    """Returns the fixture's data, tokenizer and model with a recipe of its own.

    Chosen on validation. Nearly free of weight decay, the model first finds the rule
    and learns the training prefixes by heart; the decay that follows makes it forget
    the prefixes and keep the rule. The average quiets a large rate, whose fall would
    later let the prefixes come back.
    """
    small = fixture()
    optimizer = replace(
        small.train.optimizer,
        learning_rate=1e-2,
        warmup_updates=100,
        decay_updates=4900,
        final_learning_rate_share=0.3,
        weight_decay=0.3,
        final_weight_decay=3.0,
        weight_decay_rise_after=1200,
        weight_decay_rise_updates=600,
        average_decay=0.998,
    )
    return replace(
        small,
        preset="fixture_tuned",
        train=replace(
            small.train,
            optimizer=optimizer,
            updates=3000,
            initialization_seed=2011,
        ),
    )


def prose() -> RunConfig:
    """Returns a system for real text: four blocks over 256 tokens of context."""
    small = fixture()
    return replace(
        small,
        preset="prose",
        model=replace(
            small.model,
            context_tokens=256,
            width=128,
            heads=4,
            feed_forward_width=512,
            blocks=4,
        ),
        train=replace(
            small.train,
            optimizer=replace(small.train.optimizer, learning_rate=1e-3),
            batch_documents=8,
            # The corpus of the proof has 55 updates an epoch.
            evaluate_every_updates=55,
            overfit_documents=2,
            overfit_updates=120,
        ),
        evaluate=replace(
            small.evaluate,
            batch_size_documents=8,
            batch_sizes=(1, 3, 5, 7),
            compiled_batch_sizes=(1, 5),
            future_documents=2,
            future_positions=8,
            future_tokens=31,
            reference_documents=5,
            attention_documents=1,
            gradient_documents=2,
            initialization_updates=20,
        ),
        cache=replace(small.cache, lengths=12, documents=3),
        profile=replace(small.profile, prompt="LOVE, n.  "),
        export=replace(
            small.export,
            prompts=("LOVE, n.  ", "HAPPINESS, n.  ", "POLITICS, n.  ", ""),
            maximum_new_tokens=48,
            heldout_documents=4,
        ),
    )


PRESETS: Mapping[str, Callable[[], RunConfig]] = MappingProxyType(
    {"fixture": fixture, "fixture_tuned": fixture_tuned, "prose": prose}
)


def preset(name: str) -> RunConfig:
    """Returns the configuration of a preset.

    Raises:
        Refused: No preset has this name.
    """
    if name not in PRESETS:
        near = suggestion(name, list(PRESETS)) or ";"
        raise Refused(
            ReasonCode.UNKNOWN_PRESET,
            f"preset {name!r} is unknown{near} known: {', '.join(PRESETS)}",
        )
    return PRESETS[name]()


def override(config: RunConfig, assignments: Sequence[str]) -> RunConfig:
    """Returns ``config`` with settings such as ``train.updates=10``, validated.

    Raises:
        Refused: A path is unknown, or a value has the wrong type or no meaning.
    """
    for assignment in assignments:
        _refuse_renaming(assignment.partition("=")[0].strip(), assignment)
    changed = override_settings(config, assignments)
    validate(changed)
    return changed


def assigned(assignments: Sequence[str]) -> dict[str, Any]:
    """Returns what assignments such as "train.updates=10" give, as nested values.

    Raises:
        Refused: A path is unknown, or a value has the wrong type.
    """
    given: dict[str, Any] = {}
    changed = override_settings(fixture(), assignments)
    for assignment in assignments:
        path = whole_path(changed, assignment.partition("=")[0].strip())
        *groups, name = path.split(".")
        values, at = given, changed
        for group in groups:
            values, at = values.setdefault(group, {}), getattr(at, group)
        values[name] = getattr(at, name)
    return given


def check_types(values: Any) -> None:
    """Refuses nested values that name no setting, or have the wrong type.

    Raises:
        Refused: With the path and value, and what would be allowed.
    """
    for name in values if isinstance(values, Mapping) else ():
        _refuse_renaming(name, name)
    merge(fixture(), values)


def _refuse_renaming(path: str, setting: str) -> None:
    if path == "preset":
        raise Refused(
            ReasonCode.SETTING_INVALID,
            f"setting {setting!r} would rename the configuration; "
            "choose the preset itself instead",
        )


def drillable(name: str, assignments: Sequence[str]) -> RunConfig:
    """Returns a preset with overrides whose training goes on after the drill's restore.

    Raises:
        Refused: As `preset` and `override`, or the training ends before the drill.
    """
    config = override(preset(name), assignments)
    last = last_drilled_update(config)
    require(
        last <= config.train.updates,
        f"train.updates is {config.train.updates}",
        f"at least drill.restored_update plus drill.updates ({last}) for a drill",
    )
    return config


def tried() -> RunConfig:
    """Returns the fixture, smaller: what every planted fault is tried on.

    Small enough that a fault takes seconds, and whole enough that each check has what
    it needs: five epochs, a batch learned by heart, five first seeds, and every sample
    of a time.
    """
    small = fixture()
    return replace(
        small,
        train=replace(small.train, updates=30),
        certify=replace(small.certify, points=(2,), chain=(1, 3)),
        evaluate=replace(
            small.evaluate,
            batch_sizes=(1, 5, 7),
            batch_size_documents=16,
            compiled_batch_sizes=(1, 5),
            future_documents=1,
            future_positions=3,
            future_tokens=15,
            # As many as the largest compiled batch, whose program they share.
            reference_documents=5,
            attention_documents=2,
            gradient_documents=2,
            initialization_updates=2,
        ),
        cache=replace(small.cache, documents=4),
        export=replace(small.export, heldout_documents=4),
        profile=replace(small.profile, processes=1),
    )


def certifiable(name: str, assignments: Sequence[str]) -> RunConfig:
    """Returns a preset with overrides whose training is long enough to be certified.

    Raises:
        Refused: As `drillable`, or the training ends before the proof.
    """
    config = drillable(name, assignments)
    require(
        config.certify.final_update <= config.train.updates,
        f"train.updates is {config.train.updates}",
        f"at least certify.final_update ({config.certify.final_update}) for a proof",
    )
    return config
