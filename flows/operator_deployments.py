"""Brings the pool, the deployments and their schedules on a server up to the files.

Prefect's own `deploy` writes a deployment. It leaves schedules where the file has none
any more, starts those again that a user has paused, and drops those that a user has
added (they have no slug). All three are put right here.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from flows.operator_state import state_folder
from flows.operator_worker import POOL
from tasks.errors import StageError

_APPLIED = "applied.json"


class DeploymentsUnusable(StageError):
    """Deployments or automations could not be brought to the server."""


def read_yaml(path: Path) -> Any:
    """Returns what a YAML file holds.

    Raises:
        DeploymentsUnusable: It cannot be read.
    """
    try:
        return yaml.safe_load(path.read_text())
    except OSError as error:
        raise DeploymentsUnusable(
            f"{str(path)!r} cannot be read: {error.strerror}."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        first = str(error).splitlines()[0]
        raise DeploymentsUnusable(f"{str(path)!r} is no YAML: {first}.") from None


def declared_deployments(path: Path) -> list[dict[str, Any]]:
    """Returns the deployments of a file, each with the name of its flow.

    Raises:
        DeploymentsUnusable: It holds none, or one without name, entrypoint or pool.
    """
    document = read_yaml(path)
    entries = document.get("deployments") if isinstance(document, dict) else None
    if not entries:
        raise DeploymentsUnusable(f"{str(path)!r} declares no deployments.")
    for entry in entries:
        for key in ("name", "entrypoint", "work_pool"):
            if not entry.get(key):
                raise DeploymentsUnusable(
                    f"A deployment of {str(path)!r} has no {key!r}: {entry!r}."
                )
        for schedule in entry.get("schedules") or []:
            if not schedule.get("slug"):
                raise DeploymentsUnusable(
                    f"A schedule of {entry['name']!r} in {str(path)!r} has no slug; "
                    "without one it could not be told from a user's."
                )
    return [{**e, "flow": e["entrypoint"].rpartition(":")[2]} for e in entries]


def ensure_pool(client: Any, address: str, name: str = POOL) -> bool:
    """Makes a work pool if it is missing; returns whether it was.

    Raises:
        DeploymentsUnusable: There is one of that name and another type.
    """
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectNotFound

    try:
        pool = client.read_work_pool(name)
    except ObjectNotFound:
        described = WorkPoolCreate(
            name=name,
            type="process",
            description="Flows of text-harness, each as a process of a worker.",
        )
        client.create_work_pool(described)
        return True
    if pool.type != "process":
        raise DeploymentsUnusable(
            f"The work pool {name!r} on {address} is of type {pool.type!r} and not "
            "'process'; rename or delete it there."
        )
    return False


def ensure_deployments(
    client: Any, address: str, path: Path, environment: Mapping[str, str]
) -> list[str]:
    """Writes the deployments of a file that changed or that are missing.

    Args:
        client: A client of the server.
        address: Of its API.
        path: The file.
        environment: That of a process that can reach the server.

    Returns:
        A line for each thing that was changed.
    """
    declared = declared_deployments(path)
    _refuse_unknown_pools(client, address, declared, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    present = {name: _read(client, name) for name in map(full_name, declared)}
    if applied(address).get("deployments") == digest and all(present.values()):
        return []
    before = {
        name: deployment.schedules if deployment else []
        for name, deployment in present.items()
    }
    _deploy(path, environment)
    lines = [
        f"{name} {'updated' if deployment else 'registered'}"
        for name, deployment in present.items()
    ]
    for entry in declared:
        lines += _reconcile(client, entry, before[full_name(entry)])
    note_applied(address, "deployments", digest)
    return lines


def full_name(entry: Mapping[str, Any]) -> str:
    """Returns what users call a deployment, "flow/name"."""
    return f"{entry['flow']}/{entry['name']}"


def _read(client: Any, name: str) -> Any:
    from prefect.exceptions import ObjectNotFound

    try:
        return client.read_deployment_by_name(name)
    except ObjectNotFound:
        return None


def _refuse_unknown_pools(
    client: Any, address: str, declared: list[dict[str, Any]], path: Path
) -> None:
    known = {pool.name for pool in client.read_work_pools()}
    for entry in declared:
        pool = entry["work_pool"].get("name")
        if pool not in known:
            raise DeploymentsUnusable(
                f"{full_name(entry)} in {str(path)!r} names the work pool {pool!r}; "
                f"{address} has {', '.join(map(repr, sorted(known)))}."
            )


def _deploy(path: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "prefect", "--no-prompt"),
            *("deploy", "--all", "--prefect-file", str(path)),
        ],
        env={**environment, "NO_COLOR": "1", "COLUMNS": "1000"},
        cwd=state_folder(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
        told = [line for line in lines if line]
        raise DeploymentsUnusable(
            f"Prefect could not deploy {str(path)!r}: {told[-1] if told else 'no word'}"
        )


def _reconcile(client: Any, entry: Mapping[str, Any], before: list[Any]) -> list[str]:
    """Makes the schedules of a deployment those of the file and those of users.

    Args:
        client: A client of the server.
        entry: The deployment as the file declares it.
        before: Its schedules before it was written.

    Returns:
        A line for each schedule that was removed or stays paused.
    """
    name = full_name(entry)
    deployment = client.read_deployment_by_name(name)
    declared = {schedule["slug"] for schedule in entry.get("schedules") or []}
    paused = {schedule.slug for schedule in before if not schedule.active}
    lines = []
    for schedule in deployment.schedules:
        if schedule.slug and schedule.slug not in declared:
            client.delete_deployment_schedule(deployment.id, schedule.id)
        elif schedule.slug and schedule.active and schedule.slug in paused:
            client.update_deployment_schedule(deployment.id, schedule.id, active=False)
            lines.append(f"{name}: schedule {schedule.slug!r} stays paused")
    kept = {schedule.id for schedule in deployment.schedules}
    for schedule in before:
        if schedule.slug and schedule.slug not in declared:
            lines.append(f"{name}: schedule {schedule.slug!r} removed")
        elif not schedule.slug and schedule.id not in kept:
            _add_again(client, deployment.id, schedule)
    return lines


def _add_again(client: Any, deployment_id: Any, schedule: Any) -> None:
    """Adds a schedule of a user that was dropped when the deployment was written."""
    client.create_deployment_schedules(
        deployment_id,
        [(schedule.schedule, schedule.active)],
        max_scheduled_runs=schedule.max_scheduled_runs,
        parameters=schedule.parameters,
    )


def applied(address: str) -> dict[str, str]:
    """Returns the digests of what was last brought to a server."""
    try:
        documents: dict[str, dict[str, str]] = json.loads(
            (state_folder() / _APPLIED).read_text()
        )
        return documents.get(address, {})
    except (OSError, ValueError):
        return {}


def note_applied(address: str, name: str, digest: str) -> None:
    """Notes the digest of what was brought to a server."""
    path = state_folder() / _APPLIED
    try:
        documents = json.loads(path.read_text())
    except (OSError, ValueError):
        documents = {}
    documents.setdefault(address, {})[name] = digest
    path.write_text(json.dumps(documents, indent=1))
