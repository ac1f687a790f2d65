"""The one URL that hosts of a gang share: what goes there, and what comes back.

A folder (file://), S3 or anything else that fsspec opens. Credentials and the address
of a server come from the environment of whoever opens it, never from a parameter; what
comes back is held against its digest before anybody reads it.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec.core

from tasks.errors import StageError

SETTING = "HARNESS_STORAGE_URL"
"""Variable with the URL that is used where none is given."""


class StorageFailed(StageError):
    """The storage that hosts share cannot be used, or what lies there is no result."""


def storage_url(given: str | None) -> str:
    """Returns the URL that was given, or else that of the environment.

    Raises:
        StorageFailed: There is neither, or it is no URL.
    """
    url = (given or os.environ.get(SETTING) or "").rstrip("/")
    if "://" not in url:
        raise StorageFailed(
            f"The storage of the hosts is {url!r}; name a URL that all of them and "
            f"this process open, such as s3://bucket/folder, or set {SETTING}."
        )
    return url


class Storage:
    """A folder at a URL."""

    def __init__(self, url: str) -> None:
        """Opens nothing yet; `url` is that of the folder."""
        self.url = url.rstrip("/")

    def within(self, name: str) -> "Storage":
        """Returns a folder in this one."""
        return Storage(f"{self.url}/{name}")

    def check(self) -> None:
        """Writes something, reads it again and removes it.

        Raises:
            StorageFailed: One of these does not work.
        """
        name, text = f"check-{secrets.token_hex(8)}", secrets.token_bytes(16)
        self.put(name, text)
        found = self.get(name)
        with self._opened(f"remove {name!r}") as (files, path):
            files.rm_file(f"{path}/{name}")
        if found != text:
            raise StorageFailed(
                f"The storage {self.url!r} gave back something else than was written; "
                "name another one."
            )

    def put(self, name: str, content: bytes) -> str:
        """Writes a file as a whole; returns its SHA-256."""
        with self._opened(f"write {name!r}") as (files, path):
            target = f"{path}/{name}"
            files.makedirs(target.rpartition("/")[0], exist_ok=True)
            files.pipe_file(target, content)
        return hashlib.sha256(content).hexdigest()

    def get(self, name: str, sha256: str | None = None) -> bytes:
        """Returns what a file holds.

        Args:
            name: Its path in this folder.
            sha256: What it has to be; None where its writer is the only witness.

        Raises:
            StorageFailed: It is not there, or something else.
        """
        with self._opened(f"read {name!r}") as (files, path):
            content: bytes = files.cat_file(f"{path}/{name}")
        if sha256 not in (None, hashlib.sha256(content).hexdigest()):
            raise StorageFailed(
                f"{name!r} at {self.url!r} is not what was written there; run again."
            )
        return content

    def put_folder(self, folder: Path, names: tuple[str, ...]) -> dict[str, str]:
        """Writes files and folders of a folder; returns the SHA-256 of each file."""
        digests = {}
        for name in names:
            top = folder / name
            found = sorted(top.rglob("*")) if top.is_dir() else [top]
            for file in (each for each in found if each.is_file()):
                place = file.relative_to(folder).as_posix()
                digests[place] = self.put(f"files/{place}", file.read_bytes())
        return digests

    def get_folder(self, folder: Path, digests: Mapping[str, str]) -> None:
        """Brings files back that `put_folder` wrote, each held against its digest."""
        for place, sha256 in digests.items():
            target = folder / place
            if not target.resolve().is_relative_to(folder.resolve()):
                raise StorageFailed(f"{place!r} at {self.url!r} leads out of a result.")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.get(f"files/{place}", sha256))

    def get_json(self, name: str) -> dict[str, Any] | None:
        """Returns the JSON object of a file; None where there is none."""
        with self._opened(f"read {name!r}") as (files, path):
            files.invalidate_cache()
            if not files.exists(f"{path}/{name}"):
                return None
        found = json.loads(self.get(name))
        assert isinstance(found, dict)
        return found

    def folders(self, marked: str) -> dict[str, bool]:
        """Returns the folders in this one, and whether each holds a file of a name."""
        with self._opened("list it") as (files, path):
            files.invalidate_cache()
            if not files.exists(path):
                return {}
            inside = [str(each).removeprefix(path) for each in files.find(path)]
        parts = [place.strip("/").split("/") for place in inside]
        return {
            folder: [folder, marked] in parts
            for folder in sorted({each[0] for each in parts if len(each) > 1})
        }

    def remove(self) -> None:
        """Removes the folder with all that lies in it."""
        with self._opened("remove it") as (files, path):
            files.invalidate_cache()
            if files.exists(path):
                files.rm(path, recursive=True)

    @contextmanager
    def _opened(self, what: str) -> Iterator[tuple[Any, str]]:
        """Yields file system and path; whatever goes wrong becomes one sentence."""
        try:
            files, path = fsspec.core.url_to_fs(self.url)
            yield files, str(path).rstrip("/")
        except ImportError as error:
            raise StorageFailed(
                f"The storage {self.url!r} needs a package that is not installed "
                f"({error}); s3:// needs `pip install 'text-harness[remote]'`."
            ) from error
        # Every file system has errors of its own, and one of a server is no OSError.
        except Exception as error:
            raise StorageFailed(
                f"The storage {self.url!r} refused to {what} ({_words(error)}); check "
                "its URL, that it can be reached, and the credentials in the "
                "environment."
            ) from error


def _words(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
