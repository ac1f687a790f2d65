"""Brings automations and the webhook that they call to a server, each by its name.

The file holds a list of automations in Prefect's own form, with two more keys: an
action may name its `deployment` ("flow/name") or its `block` ("type/name"), which
become the ids that the server gave them. An automation whose block is missing is left
out and said: it would fire into nothing.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flows.display import note
from flows.operator_deployments import (
    DeploymentsUnusable,
    applied,
    note_applied,
    read_yaml,
)

WEBHOOK = "webhook/text-harness"


class _BlockMissing(Exception):
    """A block that an automation needs is not on the server."""


def refuse_webhook(url: str | None) -> None:
    """Refuses what cannot be the address of a webhook.

    Raises:
        DeploymentsUnusable: It is none.
    """
    if url is None:
        return
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DeploymentsUnusable(
            f"The webhook {url!r} is no address such as https://example.org/hook."
        )


def ensure_webhook(client: Any, address: str, url: str) -> list[str]:
    """Saves the address that notifications are sent to; returns what changed."""
    from prefect.blocks.webhook import Webhook
    from pydantic import SecretStr

    digest = hashlib.sha256(url.encode()).hexdigest()
    try:
        _block_id(client, WEBHOOK)
        earlier = applied(address).get("webhook")
    except _BlockMissing:
        earlier = None
    if earlier == digest:
        return []
    block: Any = Webhook(method="POST", url=SecretStr(url))
    block.save(WEBHOOK.partition("/")[2], overwrite=True)
    note_applied(address, "webhook", digest)
    return [f"webhook {'changed' if earlier else 'registered'}"]


def ensure_automations(client: Any, address: str, path: Path) -> list[str]:
    """Writes the automations of a file that changed or that are missing.

    One that a user has paused stays paused.

    Returns:
        A line for each thing that was changed.
    """
    lines = []
    for entry in declared_automations(path):
        name = entry["name"]
        try:
            resolved = _resolved(client, entry)
        except _BlockMissing as missing:
            note(f"Automation {name!r} is left out: the server has no block {missing}.")
            continue
        text = json.dumps(resolved, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()
        present = client.read_automations_by_name(name)
        if present and applied(address).get(f"automation {name}") == digest:
            continue
        _write(client, resolved, present, path)
        note_applied(address, f"automation {name}", digest)
        lines.append(f"automation {name!r} {'updated' if present else 'registered'}")
    return lines


def declared_automations(path: Path) -> list[dict[str, Any]]:
    """Returns the automations of a file.

    Raises:
        DeploymentsUnusable: It is no list of automations with a name.
    """
    entries = read_yaml(path) or []
    named = isinstance(entries, list) and all(
        isinstance(entry, dict) and entry.get("name") for entry in entries
    )
    if not named:
        raise DeploymentsUnusable(
            f"{str(path)!r} is no list of automations, each with a name."
        )
    return list(entries)


def _write(client: Any, entry: dict[str, Any], present: list[Any], path: Path) -> None:
    from prefect.events.schemas.automations import AutomationCore
    from pydantic import ValidationError

    try:
        automation = AutomationCore.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DeploymentsUnusable(
            f"The automation {entry['name']!r} in {str(path)!r} is malformed at "
            f"{where}: {first['msg']}."
        ) from None
    if present:
        automation = automation.model_copy(update={"enabled": present[0].enabled})
        client.update_automation(present[0].id, automation)
    else:
        client.create_automation(automation)


def _resolved(client: Any, value: Any) -> Any:
    """Returns a value in which names of deployments and blocks are ids."""
    if isinstance(value, list):
        return [_resolved(client, item) for item in value]
    if not isinstance(value, Mapping):
        return value
    result = {}
    for key, item in value.items():
        if key == "deployment":
            result["deployment_id"] = str(_deployment_id(client, item))
        elif key == "block":
            result["block_document_id"] = str(_block_id(client, item))
        else:
            result[key] = _resolved(client, item)
    return result


def _deployment_id(client: Any, name: str) -> Any:
    from prefect.exceptions import ObjectNotFound

    try:
        return client.read_deployment_by_name(name).id
    except ObjectNotFound:
        raise DeploymentsUnusable(
            f"An automation names the deployment {name!r}, which the server has not."
        ) from None


def _block_id(client: Any, name: str) -> Any:
    from prefect.exceptions import ObjectNotFound

    slug, _, block = name.partition("/")
    try:
        return client.read_block_document_by_name(block, slug).id
    except ObjectNotFound:
        raise _BlockMissing(repr(name)) from None
