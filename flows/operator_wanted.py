"""What a call of `harness up` asks for, held against what runs already.

What runs was started with options and settings; a call that asks for others is refused
with both values, because it could only keep the old ones without a word.
"""

import dataclasses
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from flows.operator_processes import marked
from flows.operator_settings import AUTH
from flows.operator_state import Operated, credentials
from tasks.errors import StageError

_OF_THE_SERVER = ("PREFECT_SERVER_", "PREFECT_UI_")
_SECRET = re.compile(r"AUTH|CONNECTION_URL|PASSWORD|SECRET|TOKEN")
_DIGEST = "sha256:"


class AlreadyRuns(StageError):
    """What runs was started with other options."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a call of `harness up` asks for."""

    port: int | None
    """Port of the server; null for that of the settings."""
    settings: Path
    """File of settings, absolute."""
    deployments: Path
    """File of deployments, absolute."""
    automations: Path
    """File of automations, absolute."""
    webhook: str | None
    """Address for notifications; null leaves what is there."""
    limit: int | None
    """Flow runs at a time; null leaves what is there."""
    root: Path
    """Evidence store, absolute."""
    is_foreground: bool
    """Whether this process becomes the worker."""


def given_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns what file and environment set, for the record; of secrets the digest.

    Args:
        settings: Those of the file, in which the environment went first.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_OF_THE_SERVER)
    }
    return {
        name: _kept(name, value) for name, value in {**inherited, **settings}.items()
    }


def _kept(name: str, value: str) -> str:
    if not _SECRET.search(name):
        return value
    return f"{_DIGEST}{hashlib.sha256(value.encode()).hexdigest()}"


def refuse_difference(
    running: Operated | None, wanted: Wanted, settings: Mapping[str, str]
) -> Operated | None:
    """Returns what is on record, if it is what is wanted or has ended altogether.

    Args:
        running: What is on record.
        wanted: What is asked for.
        settings: Those of the file, in which the environment went first.

    Raises:
        AlreadyRuns: It is something else, and goes on.
    """
    if running is None:
        return None
    differences = _of_options(running, wanted)
    # Lines of a file of another name would be many, and the name says enough.
    if running.given is not None and running.settings == str(wanted.settings):
        differences += _of_settings(running, settings)
    if differences and not marked(running.mark):
        return None
    if differences:
        raise AlreadyRuns(
            f"`harness up` runs with {', '.join(differences)}; `harness down` first, "
            "or call it as it runs."
        )
    environment = os.environ.get("PREFECT_API_URL")
    if environment and environment != running.api_url:
        raise AlreadyRuns(
            f"PREFECT_API_URL is {environment!r}, but `harness up` runs "
            f"{running.api_url!r}; unset it, or `harness down` first."
        )
    return running


def _of_options(running: Operated, wanted: Wanted) -> list[str]:
    """Returns a part of the sentence for each option, such as "limit 1 (asked: 2)"."""
    differences = []
    if wanted.port is not None and running.port != wanted.port:
        differences.append(_words("port", running.port, wanted.port))
    if wanted.limit is not None and running.limit != wanted.limit:
        differences.append(_words("limit", running.limit, wanted.limit))
    if running.root != str(wanted.root):
        differences.append(_words("the evidence in", running.root, str(wanted.root)))
    if running.settings != str(wanted.settings):
        words = _words("the settings of", running.settings, str(wanted.settings))
        differences.append(words)
    return differences


def _of_settings(running: Operated, settings: Mapping[str, str]) -> list[str]:
    """Returns the same for each setting that has another value now."""
    now, before = given_settings(settings), dict(running.given or {})
    if running.port is not None and AUTH not in before and AUTH in now:
        before[AUTH] = _kept(AUTH, credentials())
    return [
        _words(name, before.get(name), now.get(name))
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]


def _words(what: str, before: object, now: object) -> str:
    if any(str(value).startswith(_DIGEST) for value in (before, now)):
        return f"another value of {what} than the one asked for"
    shown = ["none" if value is None else repr(value) for value in (before, now)]
    return f"{what} {shown[0]} (asked for: {shown[1]})"
