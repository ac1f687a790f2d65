"""Files that are either whole or absent, whatever moment the process dies at.

A file is written under a private name, forced to the disk, renamed, and its folder is
forced to the disk too. A failed write is thrown away, never retried: after a failed
fsync the pages may be marked clean although they are not on the disk.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from warehouse.errors import StoreError
from warehouse.running import may_be_at_work

TEMPORARY = "temporary"
"""The folder of a store in which unfinished files lie; nothing ever reads them."""

_CHUNK_BYTES = 1 << 20
_ABANDONED_SECONDS = 600
_SETTLED_NS = 100_000_000

_EXPLANATIONS = {
    errno.ENOSPC: "the disk is full; free some space and run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space and run it again",
    errno.EROFS: "the file system is read-only; choose another --root",
    errno.EACCES: "permission is denied; choose another --root or change its rights",
    errno.EPERM: "the operation is not permitted; choose another --root",
    errno.ENOTDIR: "a part of that path is a file; choose another --root",
    errno.EEXIST: "a file lies where a folder must be; choose another --root",
    errno.ENAMETOOLONG: "the path is too long; choose a shorter --root",
    errno.EIO: "the disk reports an error; what was committed before is unchanged",
}


@contextlib.contextmanager
def explained(doing: str, path: Path) -> Iterator[None]:
    """Turns an error of the file system into one sentence.

    Args:
        doing: what was being done, such as "write".
        path: the file or folder it was done to.

    Raises:
        StoreError: the system refused; the text says what, where, why and what to do.
    """
    try:
        yield
    except OSError as error:
        why = _EXPLANATIONS.get(error.errno or 0, error.strerror or str(error))
        raise StoreError(f"The store cannot {doing} {str(path)!r}: {why}.") from error


def write_file(root: Path, path: Path, data: bytes) -> None:
    """Puts `data` at `path` so that a reader finds all of it or nothing.

    Raises:
        StoreError: the system refused; nothing is left at `path`.
    """
    with explained("write", path), _replacing(root, path) as target:
        target.write(data)


def copy_file(root: Path, source: Path, path: Path) -> str:
    """Copies `source` to `path` durably and returns the SHA-256 of what was copied.

    Raises:
        StoreError: the system refused; nothing is left at `path`.
    """
    digest = hashlib.sha256()
    with (
        explained(f"copy {str(source)!r} to", path),
        source.open("rb") as origin,
        _replacing(root, path) as target,
    ):
        while chunk := origin.read(_CHUNK_BYTES):
            digest.update(chunk)
            target.write(chunk)
    return digest.hexdigest()


def hash_file(path: Path) -> str:
    """Returns the SHA-256 of a file in lower-case hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class DigestMemory:
    """Digests of files, remembered for as long as nothing about a file changes.

    The change time of a file is part of what must not change, because the system sets
    it: a program that alters a byte cannot hide behind an old modification time.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int, int, int], str] = {}

    def sha256(self, path: Path) -> str | None:
        """Returns the SHA-256 of a file, None if there is no such file.

        Raises:
            StoreError: the file is there and cannot be read.
        """
        with explained("read", path):
            try:
                found = path.stat()
                times = (found.st_mtime_ns, found.st_ctime_ns)
                place = (str(path), found.st_ino, found.st_size, *times)
                if place in self._known:
                    return self._known[place]
                # Within one tick of the system's clock a file can change twice and
                # keep its times, so one that changed just now is not remembered.
                is_settled = time.time_ns() - found.st_ctime_ns > _SETTLED_NS
                digest = hash_file(path)
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None
        if is_settled:
            self._known[place] = digest
        return digest


def sweep(root: Path) -> None:
    """Removes unfinished files that are old and whose writer is gone."""
    oldest = time.time() - _ABANDONED_SECONDS
    for path in (root / TEMPORARY).glob("*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest and not _is_alive(path.name):
                path.unlink()


def _is_alive(name: str) -> bool:
    process_id = name.partition(".")[0]
    return process_id.isdecimal() and may_be_at_work(process_id)


@contextlib.contextmanager
def _replacing(root: Path, path: Path) -> Iterator[BinaryIO]:
    temporary = root / TEMPORARY / f"{os.getpid()}.{uuid.uuid4().hex}.part"
    _make_folder(temporary.parent)
    _make_folder(path.parent)
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
