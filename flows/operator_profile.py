"""Prefect's active profile: ours while `harness up` runs, then the one before.

`prefect` and `harness` in any shell find the server through it. The file is put back
byte by byte; if it was changed meanwhile, only our profile is taken out again.
"""

import hashlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any

from flows.operator_settings import PROFILE
from flows.operator_state import prefect_home, state_folder
from tasks.errors import StageError

_BEFORE = "profiles.before.json"


class ProfilesUnusable(StageError):
    """Prefect's file of profiles cannot be used."""


def profiles_path() -> Path:
    """Returns Prefect's file of profiles."""
    path = os.environ.get("PREFECT_PROFILES_PATH")
    return Path(path).expanduser() if path else prefect_home() / "profiles.toml"


def active_profile() -> str | None:
    """Returns the name of the profile that this shell uses."""
    return os.environ.get("PREFECT_PROFILE") or read_profiles().get("active")


def read_profiles() -> dict[str, Any]:
    """Returns what the file of profiles holds; nothing if there is none.

    Raises:
        ProfilesUnusable: It cannot be read.
    """
    try:
        return tomllib.loads(profiles_path().read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ProfilesUnusable(
            f"Prefect's profiles in {str(profiles_path())!r} cannot be read: {error}."
        ) from None


def activate(api_url: str, auth: str) -> bool:
    """Makes our profile the active one; returns whether anything had to change."""
    settings = {
        "PREFECT_API_URL": api_url,
        "PREFECT_API_AUTH_STRING": auth,
        "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
    }
    now = read_profiles()
    if now.get("active") == PROFILE and now["profiles"].get(PROFILE) == settings:
        return False
    path = profiles_path()
    if now.get("active") != PROFILE:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0
        _keep({"before": path.read_text() if path.exists() else None, "mode": mode})
    from prefect.settings import Profile, load_profiles, save_profiles

    profiles = load_profiles()
    if PROFILE in profiles:
        profiles.remove_profile(PROFILE)
    ours = Profile.model_validate({"name": PROFILE, "settings": settings})
    profiles.add_profile(ours)
    profiles.set_active(PROFILE)
    save_profiles(profiles)
    path.chmod(0o600)  # It holds a password now.
    _keep({**_kept(), "written_sha256": _digest(path.read_text())})
    return True


def restore() -> str | None:
    """Puts the profiles back; returns the one that is active then, if that changed."""
    path, kept = profiles_path(), _kept()
    now = read_profiles()
    if PROFILE not in now.get("profiles", {}):
        return None
    before = kept.get("before")
    earlier = tomllib.loads(before or "").get("active") or "ephemeral"
    if _digest(path.read_text()) != kept.get("written_sha256"):
        from prefect.settings import load_profiles, save_profiles

        profiles = load_profiles()
        if profiles.active_name == PROFILE:
            profiles.set_active(earlier if earlier in profiles else "ephemeral")
        profiles.remove_profile(PROFILE)
        save_profiles(profiles)
    elif before is None:
        path.unlink()
    else:
        path.write_text(before)
        path.chmod(kept["mode"])
    (state_folder() / _BEFORE).unlink(missing_ok=True)
    return earlier if now.get("active") == PROFILE else None


def _keep(document: dict[str, Any]) -> None:
    (state_folder() / _BEFORE).write_text(json.dumps(document))


def _kept() -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads((state_folder() / _BEFORE).read_text())
        return document
    except (OSError, ValueError):
        return {"before": None}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
