"""The settings that server and worker are started with: one file, and what we add.

A file of settings is one NAME=VALUE a line, as `docker compose` and a shell read it.
What the environment sets already goes before the file, and a name without a value has
to come from there: passwords do not belong into a file that is committed.
"""

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from flows.operator_state import MARK, state_folder
from tasks.errors import StageError
from tasks.program_environment import root_of

PROFILE = "text-harness"
AUTH = "PREFECT_SERVER_API_AUTH_STRING"
DATABASE = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
HOST = "PREFECT_SERVER_API_HOST"
HEARTBEAT_SECONDS = "30"
# Of the server's settings, the worker and its runs need none that holds a secret.
_FOR_ALL = ("PREFECT_SERVER_ANALYTICS_ENABLED", "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE")


class SettingsUnusable(StageError):
    """A file of settings cannot be used."""


def deploy_file(name: str) -> Path:
    """Returns a file that is installed with the package `deploy`."""
    return Path(str(files("deploy").joinpath(name)))


def read_settings(path: Path) -> dict[str, str]:
    """Returns the settings of a file, with the environment's before its own.

    Raises:
        SettingsUnusable: It cannot be read, a line is malformed, or a name that has no
            value in it has none in the environment.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SettingsUnusable(f"{str(path)!r} cannot be read: {why}.") from None
    settings = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, separator, value = line.partition("=")
        if not separator or not name.isidentifier():
            raise SettingsUnusable(
                f"Line {number} of {str(path)!r} is {line!r}; a line is NAME=VALUE, "
                "empty, or a comment that begins with #."
            )
        settings[name] = os.environ.get(name) or value
    missing = [name for name, value in settings.items() if not value]
    if missing:
        raise SettingsUnusable(
            f"{', '.join(missing)} must be set in the environment: {str(path)!r} names "
            f"{'it' if len(missing) == 1 else 'them'} without a value."
        )
    return settings


def server_environment(
    settings: Mapping[str, str], mark: str, port: int, auth: str
) -> dict[str, str]:
    """Returns the environment of the server.

    Args:
        settings: Those of the file, in which the environment went first.
        mark: What every process that is started carries.
        port: Where it listens.
        auth: Credentials that it asks for, USER:PASSWORD.
    """
    folder = state_folder()
    inherited = _inherited()
    inherited.pop("PREFECT_PROFILE", None)
    # What a file may leave out; the environment goes before these too.
    defaults = {
        HOST: "127.0.0.1",
        DATABASE: f"sqlite+aiosqlite:///{folder / 'prefect.db'}",
    }
    own = {
        MARK: mark,
        AUTH: auth,
        # No profile of the user changes what the server does.
        "PREFECT_PROFILES_PATH": str(folder / "no-profiles.toml"),
        # A UI in the package's own folder would be one for all servers of a machine.
        "PREFECT_UI_STATIC_DIRECTORY": str(folder / "ui"),
    }
    fixed = {"PREFECT_SERVER_API_PORT": str(port), MARK: mark}
    return {**defaults, **inherited, **own, **settings, **fixed}


def worker_environment(
    settings: Mapping[str, str], mark: str, root: str, client: Mapping[str, str]
) -> dict[str, str]:
    """Returns the environment of the worker, which its runs inherit.

    Args:
        settings: Those of the file.
        mark: What every process that is started carries.
        root: The evidence store, absolute; runs work in temporary folders.
        client: How the server is reached.
    """
    passed = {
        name: value
        for name, value in {**_inherited(), **settings}.items()
        if not name.startswith(("PREFECT_SERVER_", "PREFECT_UI_")) or name in _FOR_ALL
    }
    return {
        **passed,
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": HEARTBEAT_SECONDS,
        **client,
        # Without an address there must be an error, not a private database.
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "HARNESS_ROOT": root,
        MARK: mark,
    }


def _inherited() -> dict[str, str]:
    """Returns this environment, in which our packages are found from any folder."""
    own = str(root_of("flows"))
    paths = [
        path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path
    ]
    absolute = [str(Path(path).absolute()) for path in paths]
    kept = [path for path in absolute if path != own]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([own, *kept])}
