"""What `harness up` has started, on record, so that `harness down` ends that only.

The record and the logs lie in Prefect's home folder, beside the profiles that belong
to the same user. Every process that is started carries a random mark in its
environment, which its children inherit: whoever has the mark is ours, whatever became
of its parent, and no number that the system gives away again is trusted.
"""

import dataclasses
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.errors import FolderUnusable, StageError

MARK = "HARNESS_UP_ID"
RECORD = "up.json"
CREDENTIALS = "credentials"
_SCHEMA = 1


class RecordUnreadable(StageError):
    """The record of what runs cannot be understood."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Operated:
    """What runs because of `harness up`."""

    mark: str
    """Value of MARK in the environment of everything that was started."""
    api_url: str
    """Address of the API that the worker asks for work."""
    root: str
    """Evidence store of the worker, absolute."""
    settings: str
    """The file of settings, absolute."""
    given: dict[str, str] | None = None
    """What file and environment set, of secrets a digest; null in old records."""
    limit: int = 1
    """Flow runs that the worker takes at a time."""
    port: int | None = None
    """Port of the server; null where somebody else's server is used."""
    server: int | None = None
    """Process id of the server that was started; null where none was."""
    worker: int | None = None
    """Process id of the worker that was started; null where none was."""


def prefect_home() -> Path:
    """Returns the folder in which Prefect keeps a user's profiles."""
    home = os.environ.get("PREFECT_HOME") or Path.home() / ".prefect"
    return Path(home).expanduser().absolute()


def state_folder() -> Path:
    """Returns the folder of record, logs and database; only this user may enter it.

    Raises:
        FolderUnusable: The system refuses to make it.
    """
    folder = prefect_home() / "text-harness"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise FolderUnusable(
            f"The folder {str(folder)!r} cannot be used ({error.strerror}); set "
            "PREFECT_HOME to a folder that you can write to."
        ) from None
    return folder


def new_mark() -> str:
    """Returns a mark that nothing else on this machine has."""
    return secrets.token_hex(16)


def recorded() -> Operated | None:
    """Returns what is on record, which may have ended since.

    Raises:
        RecordUnreadable: There is a record of another form.
    """
    path = state_folder() / RECORD
    try:
        document = json.loads(path.read_text())
        if document.pop("schema") != _SCHEMA:
            raise ValueError
        return Operated(**document)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise RecordUnreadable(
            f"{str(path)!r} is not what `harness up` writes; end the processes whose "
            f"environment holds {MARK}, and remove the file."
        ) from None


def record(operated: Operated) -> None:
    """Writes the record; a reader sees the old one or the new one."""
    path = state_folder() / RECORD
    new = path.with_suffix(".new")
    document = {"schema": _SCHEMA, **dataclasses.asdict(operated)}
    new.write_text(json.dumps(document, indent=1) + "\n")
    new.replace(path)


def forget() -> None:
    """Removes the record."""
    (state_folder() / RECORD).unlink(missing_ok=True)


@contextmanager
def alone() -> Iterator[None]:
    """Lets one `harness up` or `harness down` work at a time; others wait."""
    with (state_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def keep_credentials(given: str | None) -> None:
    """Keeps the credentials of the server that is started; makes them if none exist.

    Args:
        given: "user:password" that somebody has set.
    """
    path = state_folder() / CREDENTIALS
    if given is None and path.exists():
        return
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(given or f"harness:{secrets.token_urlsafe(18)}")


def credentials() -> str:
    """Returns the credentials of our own server, "user:password"."""
    return (state_folder() / CREDENTIALS).read_text().strip()
