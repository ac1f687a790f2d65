"""Frozen dataclasses to and from JSON, and strict ``key=value`` overrides.

A setting that is misspelled or of the wrong type must stop a run with a sentence,
never be ignored: the evidence would otherwise be about another configuration than
the one somebody believes to have asked for.
"""

import dataclasses
import difflib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from model.refusal import ReasonCode, Refused

Settings = TypeVar("Settings")


def to_dict(settings: Any) -> dict[str, Any]:
    """Returns a frozen dataclass as plain JSON values; tuples become lists."""
    return {
        field.name: _plain(getattr(settings, field.name))
        for field in dataclasses.fields(settings)
    }


def from_dict(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """Returns the dataclass ``kind`` that ``to_dict`` wrote.

    Args:
        kind: A frozen dataclass of this project's configuration.
        values: Every field by name, nothing else.

    Raises:
        Refused: A field is unknown, absent or of another type.
    """
    if not isinstance(values, Mapping):
        raise _wrong_type(kind.__name__, values, "an object with its fields")
    hints = get_type_hints(kind)
    for name in values:
        if name not in hints:
            raise _unknown(str(name), kind.__name__, sorted(hints))
    missing = sorted(set(hints) - set(values))
    if missing:
        raise Refused(
            ReasonCode.SETTING_INVALID,
            f"{kind.__name__} lacks the fields {missing}; give each of {sorted(hints)}",
        )
    return kind(**{name: _typed(hints[name], values[name], name) for name in hints})


def override(settings: Settings, assignments: Sequence[str]) -> Settings:
    """Returns ``settings`` with dotted fields replaced, such as ``train.updates=10``.

    Args:
        settings: A frozen dataclass whose fields may be dataclasses again.
        assignments: Texts ``path=value``; the value is JSON, a bare word is a text,
            and a list may be written ``5,6``. A group in the middle of a path may be
            left out where one field alone has that name, as in ``train.learning_rate``.

    Raises:
        Refused: A path names no field (the known ones are listed), or the value is
            not of the field's type.
    """
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        if not separator:
            raise Refused(
                ReasonCode.SETTING_INVALID,
                f"setting {assignment!r} has no '='; write it as path=value, "
                "for instance train.updates=10",
            )
        whole = whole_path(settings, path.strip())
        settings = _replace(settings, whole, whole.split("."), text)
    return settings


def merge(settings: Settings, values: Any, path: str = "") -> Settings:
    """Returns ``settings`` with the fields replaced that nested plain values name.

    Args:
        settings: A frozen dataclass whose fields may be dataclasses again.
        values: Field name to value, or to such a mapping where the field is a group.
        path: Dotted path of ``settings`` itself, for the refusal.

    Raises:
        Refused: A name is no field, or a value is not of the field's type.
    """
    where = path or "the configuration"
    if not isinstance(values, Mapping):
        raise _wrong_type(where, values, "an object of settings by name")
    hints = get_type_hints(type(settings))
    changed = {}
    for name, value in values.items():
        here = f"{path}.{name}" if path else str(name)
        if name not in hints:
            known = [f"{path}.{field}" if path else field for field in hints]
            raise _unknown(here, where, known, str(name))
        current = getattr(settings, name)
        is_group = dataclasses.is_dataclass(current)
        changed[name] = (
            merge(current, value, here)
            if is_group
            else _typed(hints[name], value, here)
        )
    return dataclasses.replace(settings, **changed)  # type: ignore[type-var]


def whole_path(settings: Any, path: str) -> str:
    """Returns a path with the groups that were left out; itself where it is unclear."""
    paths = list(setting_paths(settings))
    group, dot, name = path.rpartition(".")
    fitting = [
        known
        for known in paths
        if known.startswith(group + dot) and known.endswith(f".{name}")
    ]
    return fitting[0] if dot and path not in paths and len(fitting) == 1 else path


def setting_paths(settings: Any, prefix: str = "") -> Iterator[str]:
    """Yields the dotted path of every field that may be set, all but the preset."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            yield from setting_paths(value, f"{prefix}{field.name}.")
        elif field.name != "preset":
            yield f"{prefix}{field.name}"


def suggestion(value: str, known: Sequence[str]) -> str:
    """Returns ``; did you mean 'x'?`` when a known word is close, else nothing."""
    close = difflib.get_close_matches(value, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _replace(settings: Any, path: str, steps: Sequence[str], text: str) -> Any:
    """Returns ``settings`` with the field at ``steps`` set to the value of ``text``."""
    known = [field.name for field in dataclasses.fields(settings)]
    if steps[0] not in known:
        at = ".".join(path.split(".")[: -len(steps)])
        known = list(setting_paths(settings, f"{at}." if at else ""))
        raise _unknown(path, at or "the configuration", known, steps[0])
    current = getattr(settings, steps[0])
    if len(steps) > 1:
        if not dataclasses.is_dataclass(current):
            raise _unknown(path, steps[0], [path.rsplit(".", len(steps) - 1)[0]])
        return dataclasses.replace(
            settings, **{steps[0]: _replace(current, path, steps[1:], text)}
        )
    if dataclasses.is_dataclass(current):
        paths = list(setting_paths(current, f"{path}."))
        raise Refused(
            ReasonCode.SETTING_INVALID,
            f"setting {path!r} is a group; set one of {', '.join(paths)}",
        )
    hint = get_type_hints(type(settings))[steps[0]]
    return dataclasses.replace(
        settings, **{steps[0]: _typed(hint, _parse(hint, text), path)}
    )


def _parse(hint: Any, text: str) -> Any:
    """Returns the JSON value of ``text``; what is no JSON stays a text."""
    if hint is str:
        return text
    if get_origin(hint) is tuple and not text.lstrip().startswith("["):
        element = get_args(hint)[0]
        return [_parse(element, part) for part in text.split(",") if part]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _typed(hint: Any, value: Any, path: str) -> Any:
    """Returns ``value`` as the type ``hint``, or refuses it by name."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return value if isinstance(value, hint) else from_dict(hint, value)
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            raise _wrong_type(path, value, "a list")
        return tuple(_typed(get_args(hint)[0], element, path) for element in value)
    if hint is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if hint is not float and type(value) is hint:
        return value
    names = {int: "a whole number", float: "a finite number", bool: "true or false"}
    raise _wrong_type(path, value, names.get(hint, "a text"))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, tuple):
        return [_plain(element) for element in value]
    return value


def _unknown(
    path: str, where: str, known: Sequence[str], step: str | None = None
) -> Refused:
    paths = {name.rsplit(".", 1)[-1]: name for name in known}
    close = difflib.get_close_matches(step or path, list(paths), n=1, cutoff=0.5)
    near = f"; did you mean {paths[close[0]]!r}?" if close else ";"
    return Refused(
        ReasonCode.UNKNOWN_SETTING,
        f"setting {path!r} is unknown in {where}{near} known: {', '.join(known)}",
    )


def _wrong_type(path: str, value: Any, allowed: str) -> Refused:
    return Refused(
        ReasonCode.SETTING_INVALID,
        f"setting {path!r} is {value!r}, which is not {allowed}; give {allowed}",
    )
