"""The settings of a run as nested optional values, from which Prefect draws a form.

A deployment keeps the schema of its flow's parameters, and the page draws a form from
it. All of it derives from the configuration's own dataclasses and limits, so that form,
command line and refusals name the same things in the same words. Nothing is judged
here: what is wrong with a value is said by the configuration, in one sentence.
"""

import dataclasses
import json
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, create_model, model_serializer
from pydantic.json_schema import SkipJsonSchema

from model.config import RunConfig
from model.limits import PLATFORMS, TARGET_PLATFORMS, bounds
from model.presets import PRESETS, assigned, check_types, preset
from tasks.accelerators import ACCELERATORS
from warehouse.schema import field_documentation

CHOICES: Mapping[str, Sequence[str]] = {
    "export.platforms": PLATFORMS,
    # A run on the CPU is what a target is held against, and no target itself.
    "target.platform": TARGET_PLATFORMS,
    "target.accelerator": tuple(ACCELERATORS),
}
"""Settings whose values are a closed list in the form."""


# None is allowed, and the schema does not say so.
_NOT_SHOWN: Any = SkipJsonSchema[None]  # type: ignore[misc]


class SettingsGroup(BaseModel):
    """Settings that differ from the preset's; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_serializer(mode="plain")
    def given(self) -> dict[str, Any]:
        """Returns what was given and nothing else, so that a run's page shows that."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in values.items() if value is not None}


def _group(kind: type, path: str = "") -> type[SettingsGroup]:
    """Returns the class of optional settings for a dataclass of the configuration."""
    hints = typing.get_type_hints(kind)
    sentences = field_documentation(kind)
    fields: dict[str, Any] = {}
    for name in (entry.name for entry in dataclasses.fields(kind)):
        here = f"{path}.{name}" if path else name
        if here == "preset":
            continue
        hint = hints[name]
        is_group = dataclasses.is_dataclass(hint)
        fields[name] = (
            (_group(hint, here) if is_group else hint) | _NOT_SHOWN,
            Field(
                default=None,
                title=name,
                description=sentences[name] + ("" if is_group else _declared(here)),
                json_schema_extra=_without_default if is_group else _limited(here),
            ),
        )
    return create_model(
        kind.__name__.replace("Config", "Settings"), __base__=SettingsGroup, **fields
    )


def _declared(path: str) -> str:
    """Returns what presets say about a setting, such as " Preset: 0; prose: 12."."""
    (usual, *_), *_ = shown = [
        (_shown(value_at(preset(name), path)), name) for name in PRESETS
    ]
    others = [f"; {name}: {text}" for text, name in shown if text != usual]
    return f" Preset: {usual}{''.join(others)}."


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else json.dumps(value)


def meaning_of(path: str) -> str:
    """Returns the sentence of a setting, with its unit."""
    *groups, name = path.split(".")
    kind: Any = RunConfig
    for group in groups:
        kind = typing.get_type_hints(kind)[group]
    return field_documentation(kind)[name]


def value_at(config: Any, path: str) -> Any:
    """Returns the value of a setting; a tuple as a list."""
    for name in path.split("."):
        config = getattr(config, name)
    return list(config) if isinstance(config, tuple) else config


def _without_default(schema: dict[str, Any]) -> None:
    """Takes out "default: null", which a form would show as a value."""
    schema.pop("default", None)


def _limited(path: str) -> Callable[[dict[str, Any]], None]:
    """Returns what puts the limits of a setting into its part of the schema."""

    def limit(schema: dict[str, Any]) -> None:
        _without_default(schema)
        each = schema.get("items", schema)
        if each.get("type") in ("integer", "number"):
            each |= _limits(path)
        if path in CHOICES:
            each |= {"enum": list(CHOICES[path])}
        if path in CHOICES and each is not schema:
            schema["uniqueItems"] = True

    return limit


def _limits(path: str) -> dict[str, float]:
    allowed = bounds(path)
    low = "minimum" if allowed.is_minimum_allowed else "exclusiveMinimum"
    high = "maximum" if allowed.is_maximum_allowed else "exclusiveMaximum"
    limits = {low: allowed.minimum}
    return limits if allowed.maximum is None else {**limits, high: allowed.maximum}


_AllGroups: Any = _group(RunConfig)


class Settings(_AllGroups):
    """Settings that differ from the preset's; what is left out stays as it is."""

    @classmethod
    def from_overrides(cls, assignments: Sequence[str]) -> Self:
        """Returns the settings of texts such as "train.updates=10".

        Raises:
            Refused: A path is unknown, or a value has the wrong type.
        """
        return cls.from_values(assigned(assignments))

    @classmethod
    def from_values(cls, values: Any) -> Self:
        """Returns the settings of nested plain values; null means left out.

        Raises:
            Refused: A name is unknown, or a value has the wrong type.
        """
        given = _without_nulls(values)
        check_types(given)
        return cls.model_validate(given)

    def overrides(self) -> list[str]:
        """Returns texts such as "train.updates=10", as the command line takes them."""
        return [
            f"{path}={value if isinstance(value, str) else json.dumps(value)}"
            for path, value in _leaves(self.model_dump(mode="json"))
        ]


def _without_nulls(values: Any) -> Any:
    if not isinstance(values, Mapping):
        return values
    return {
        name: _without_nulls(value)
        for name, value in values.items()
        if value is not None
    }


def _leaves(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
