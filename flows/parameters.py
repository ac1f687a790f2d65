"""What the flows can be asked: types for the form, and one sentence for what is wrong.

Prefect would check the parameters itself and answer with a list of pydantic's errors.
Here the same words are used as on the command line, so that somebody who starts a run
from the page or through the API reads what failed, the value and what is allowed.
"""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import TypeAdapter, ValidationError

from flows.proofs import PROOFS
from flows.settings_form import Settings
from model.limits import require
from model.presets import PRESETS, preset

__all__ = [
    "PresetName",
    "ProofName",
    "Settings",
    "checked",
    "form_signature",
    "overrides_of",
]

if TYPE_CHECKING:
    PresetName = str
    ProofName = str
else:
    PresetName = Literal[tuple(PRESETS)]
    ProofName = Literal[tuple(PROOFS)]

EMPTY: Mapping[Any, Any] = MappingProxyType({str: "", Settings: Settings()})
"""What stands in a form for None."""
_WORDS = {str: "a text", bool: "true or false", int: "a whole number"}


def overrides_of(settings: Settings | None) -> list[str]:
    """Returns settings as texts such as "train.updates=10"; none for None."""
    return settings.overrides() if settings else []


def checked(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    """Returns the parameters of a flow as the types it declares.

    Args:
        function: The body of the flow.
        parameters: What it was asked, by name; plain values where it comes from a
            deployment.

    Raises:
        Refused: A value is not of its type, or a setting has no meaning.
    """
    declared = inspect.signature(function, eval_str=True).parameters
    return {
        name: _checked(name, declared[name].annotation, value)
        for name, value in parameters.items()
    }


def form_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Returns a flow's signature as its form needs it.

    What may be None is empty in a form, so no field asks which of two kinds a value is
    of. A default of null would be sent with the form, and then refused by the server.
    """
    signature = inspect.signature(function, eval_str=True)
    return signature.replace(
        parameters=[_shown(each) for each in signature.parameters.values()]
    )


def _shown(parameter: inspect.Parameter) -> inspect.Parameter:
    kinds = get_args(parameter.annotation)
    if type(None) not in kinds:
        return parameter
    (other,) = [each for each in kinds if each is not type(None)]
    is_optional = parameter.default is None
    default = EMPTY[other] if is_optional else parameter.default
    return parameter.replace(annotation=other, default=default)


def _checked(name: str, kind: Any, value: Any) -> Any:
    if kind is PresetName and isinstance(value, str):
        return preset(value).preset
    if Settings in (kind, *get_args(kind)):
        is_typed = value is None or isinstance(value, Settings)
        return value if is_typed else Settings.from_values(value)
    if value == "" and type(None) in get_args(kind):
        return None
    try:
        return TypeAdapter(kind).validate_python(value, strict=True)
    except ValidationError:
        return require(False, f"{name!r} is {value!r}", _allowed(kind))


def _allowed(kind: Any) -> str:
    """Returns the values of a type in words, such as "a text, or nothing"."""
    choices = [choice for choice in get_args(kind) if isinstance(choice, str)]
    if choices:
        return f"one of {', '.join(choices)}"
    kinds = get_args(kind) or (kind,)
    words = [_WORDS[each] for each in kinds if each in _WORDS]
    return ", or ".join(words + ["nothing"] * (type(None) in kinds))
