"""Which Prefect server a user has configured, without loading Prefect.

The answer decides what starts while Prefect is being imported, so the places where
Prefect looks are read here, in its order: environment, `.env`, `prefect.toml`,
`pyproject.toml`, profile. The first that sets an address wins, even an empty one.
"""

import importlib.util
import os
import tomllib
from pathlib import Path
from typing import Any

from flows.server_check import ServerFailed

DEFAULT_HOME = Path("~/.prefect")


def configured_api_url() -> str | None:
    """Returns the address of the server that a user has configured.

    Raises:
        ServerFailed: What would name it cannot be read, or is not there.
    """
    url = _set_here("PREFECT_API_URL", "api", "url")
    if url is None:
        url = _value(_active_profile(), "PREFECT_API_URL")
    elif url:
        _toml(_profiles_path())  # Prefect reads it all the same.
    return str(url) if url else None


def _set_here(variable: str, *keys: str) -> Any:
    """Returns what environment or current folder set; None if they do not."""
    # Prefect reads every file, so one that it cannot read is told in any case.
    values = (
        os.environ.get(variable),
        _dotenv().get(variable),
        _value(_toml(Path("prefect.toml")), *keys),
        _value(_toml(Path("pyproject.toml")), "tool", "prefect", *keys),
    )
    return next((value for value in values if value is not None), None)


def _active_profile() -> Any:
    path = _profiles_path()
    content, built_in = _toml(path), _toml(_built_in_path())
    # Prefect takes a name from the environment or the file, never from `.env`.
    name = os.environ.get("PREFECT_PROFILE") or content.get("active")
    profile = _value(content, "profiles", name)
    # Prefect knows its own profiles by name, but reads no settings from those that
    # the file does not repeat.
    if (
        profile is not None
        or not name
        or _value(built_in, "profiles", name) is not None
    ):
        return profile
    source = "PREFECT_PROFILE" if os.environ.get("PREFECT_PROFILE") else "active"
    raise ServerFailed(
        f"{source} names Prefect's profile {name!r}, which is not in {str(path)!r}; "
        f"correct {source}, or make the profile with `prefect profile create`."
    )


def _profiles_path() -> Path:
    path = _set_here("PREFECT_PROFILES_PATH", "profiles_path")
    if path:
        return Path(str(path)).expanduser()
    home = os.environ.get("PREFECT_HOME")
    own = Path(home or DEFAULT_HOME).expanduser() / "profiles.toml"
    return own if home or own.exists() else _built_in_path()


def _built_in_path() -> Path:
    """Returns Prefect's own file of profiles, found without importing Prefect."""
    spec = importlib.util.find_spec("prefect")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "settings" / "profiles.toml"


def _toml(path: Path) -> dict[str, Any]:
    """Returns what a file holds; nothing if there is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _dotenv() -> dict[str, str | None]:
    """Returns the variables of `.env`, in capitals as Prefect compares them."""
    path = Path(".env")
    if not path.is_file():
        return {}
    # Prefect brings it, and few folders need it.
    from dotenv import dotenv_values

    try:
        values = dotenv_values(path, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    return {name.upper(): value for name, value in values.items()}


def _unreadable(path: Path, error: Exception) -> ServerFailed:
    reason = getattr(error, "strerror", None) or error
    return ServerFailed(
        f"{str(path.absolute())!r}, which may name a Prefect server, cannot be read "
        f"({reason}); repair or remove it."
    )


def _value(content: Any, *keys: Any) -> Any:
    """Returns what stands under nested keys; None if nothing does."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content
