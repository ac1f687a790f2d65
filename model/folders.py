"""One digest over everything in a folder, so that "nothing was touched" is a number.

Standard library only: programs digest what they give to a refusing function, and tasks
digest what they give to a whole process.
"""

from __future__ import annotations

import hashlib
from pathlib import Path


def folder_sha256(*folders: Path) -> str:
    """Returns one digest over names, kinds and bytes of all that lies in some folders.

    Args:
        folders: Folders, whose own names do not count.
    """
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder)).encode("utf-8", "surrogateescape")
            digest.update(_piece(name) + _content(path))
        digest.update(b"end of folder\n")
    return digest.hexdigest()


def source_sha256(folder: Path) -> str:
    """Returns one digest over names and bytes of all Python files in a folder.

    A host and its launcher each compute it from the files they run, so that other code
    under the same name is seen.

    Args:
        folder: Folder of a package, such as that of ``model``.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(_piece(path.relative_to(folder).as_posix().encode()))
        digest.update(_content(path))
    return digest.hexdigest()


def _content(path: Path) -> bytes:
    """Returns kind, size and digest of what a path is; a link is its own target."""
    if path.is_symlink():
        return b"link " + _piece(str(path.readlink()).encode())
    if path.is_file():
        content = path.read_bytes()
        return b"file %d " % len(content) + hashlib.sha256(content).digest()
    return b"folder" if path.is_dir() else b"other"


def _piece(text: bytes) -> bytes:
    """Returns a text with its length, so that no two lists of texts read alike."""
    return b"%d:%s" % (len(text), text)
