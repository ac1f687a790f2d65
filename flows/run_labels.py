"""Names and tags that tell the runs of a flow apart in a list.

Somebody who looks at a hundred runs sees which flow, preset and corpus each was about,
which settings differed, and whether it was computed again.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext

from flows.parameters import Settings, overrides_of
from model.refusal import Refused

SHOWN_SETTINGS = 2
LONGEST_VALUE = 24
FRESH, REUSE, CHANGED = "fresh", "reuse", "changed settings"
IMPLEMENTATION = "implementation"


def run_name() -> str:
    """Returns the name of the flow run that is about to start, from what it is asked.

    It is asked for before the parameters are checked, so a wrong one is left out here.
    """
    context = FlowRunContext.get()
    if context is None or context.flow is None:
        return "no flow"
    return name_of(context.flow.name, context.parameters or {})


def name_of(flow: str, asked: Mapping[str, Any]) -> str:
    """Returns a name such as "qualify fixture train.updates=60".

    Args:
        flow: Name of the flow.
        asked: Its parameters by name; settings may be plain values.
    """
    manifest = asked.get("manifest")
    corpus = PurePath(manifest).parent.name if isinstance(manifest, str) else ""
    words = [flow, asked.get("proof"), asked.get("preset_name"), corpus]
    words.append(_implementation(asked))
    if asked.get("is_fresh") is True:
        words.append(FRESH)
    return " ".join([str(word) for word in words if word] + _settings(asked))


def _implementation(asked: Mapping[str, Any]) -> str:
    """Returns the name of a user's file without its folder, "" for the built-in."""
    path = asked.get("implementation")
    return PurePath(path).stem if isinstance(path, str) else ""


def _settings(asked: Mapping[str, Any]) -> list[str]:
    overrides = _overrides(asked.get("settings"))
    shown = [_shortened(text) for text in overrides[:SHOWN_SETTINGS]]
    more = len(overrides) - SHOWN_SETTINGS
    return [*shown, f"and {more} more"] if more > 0 else shown


def _overrides(settings: Any) -> Sequence[str]:
    try:
        is_typed = isinstance(settings, Settings)
        typed = settings if is_typed else Settings.from_values(settings or {})
    except Refused:
        return []
    return overrides_of(typed)


def _shortened(assignment: str) -> str:
    path, _, value = assignment.partition("=")
    is_long = len(value) > LONGEST_VALUE
    return f"{path}={value[: LONGEST_VALUE - 1]}…" if is_long else assignment


def tags_of(flow: str, asked: Mapping[str, Any]) -> list[str]:
    """Returns tags to filter runs by: flow, preset, and how it was computed."""
    is_changed = bool(_overrides(asked.get("settings")))
    implementation = _implementation(asked)
    return [
        flow,
        str(asked.get("preset_name")),
        FRESH if asked.get("is_fresh") else REUSE,
        *([CHANGED] if is_changed else []),
        *([f"{IMPLEMENTATION}:{implementation}"] if implementation else []),
    ]


def tag_run(asked: Mapping[str, Any]) -> None:
    """Tags the present flow run, beside the tags that its deployment gave it.

    Prefect's `tags` would tag its task runs and leave the run itself without.
    """
    context = FlowRunContext.get()
    if context is None or context.flow is None or context.flow_run is None:
        return
    tags = {*context.flow_run.tags, *tags_of(context.flow.name, asked)}
    with get_client(sync_client=True) as client:
        client.update_flow_run(context.flow_run.id, tags=sorted(tags))
