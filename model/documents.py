"""Documents: the files of a manifest, whose bytes are checked before they count.

A file that is not exactly what the manifest says would make every later number about
something else. A path may not leave the manifest's folder, since a manifest may come
from a stranger; and no document is cut, repaired or skipped.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NoReturn

from model.manifest import ManifestEntry, inspect_manifest
from model.refusal import ReasonCode, Refused, joined
from model.tokenizer import check_length

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document whose bytes are those that its manifest names."""

    entry: ManifestEntry
    data: bytes = field(repr=False)

    @property
    def document_id(self) -> str:
        """Identity within the corpus."""
        return self.entry.id

    @property
    def split(self) -> str:
        """One of ``SPLITS``."""
        return self.entry.split


def load_text_manifest(
    path: Path, context_tokens: int | None = None
) -> tuple[Document, ...]:
    """Returns the documents of a manifest, in its order, with their real bytes.

    Args:
        path: JSON list of objects with id, file, split, group, license, source and
            sha256; files are relative to the manifest's folder and stay inside it.
        context_tokens: Most input tokens of a document, BOS included; None for any.

    Raises:
        Refused: With its own reason code for each thing that can be wrong with the
            manifest, a path, a document's bytes, or the three splits together; of
            several, all are named, each by its entry and field.
    """
    placed, wrong = inspect_manifest(path)
    folder = path.parent.resolve()
    documents = []
    for place, entry in placed.items():
        try:
            data = _read_document(folder, entry, context_tokens)
        except Refused as refused:
            named = (f"entries.{place}.{field}" for field in refused.fields)
            wrong.append(Refused(refused.code, refused.message, named))
        else:
            documents.append(Document(entry=entry, data=data))
    if wrong:
        raise joined(wrong)
    return tuple(documents)


def _read_document(
    folder: Path, entry: ManifestEntry, context_tokens: int | None
) -> bytes:
    """Returns the bytes of a document: those of its digest, UTF-8, and fitting."""
    data, size, sha256 = _read_file(_inside(folder, entry), entry, context_tokens)
    if sha256 != entry.sha256:
        _refuse(
            *(ReasonCode.DOCUMENT_ALTERED, "sha256"),
            f"{entry} has {size} bytes with sha256 {sha256}; allowed is {entry.sha256} "
            "of the manifest: restore the file or correct the manifest",
        )
    if not size:
        _refuse(
            *(ReasonCode.DOCUMENT_EMPTY, "size"),
            f"{entry} has 0 bytes; allowed is at least 1: fill it or remove its entry",
        )
    if context_tokens is not None:
        check_length(size, context_tokens, name=str(entry))
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse(
            *(ReasonCode.DOCUMENT_NOT_UTF8, "encoding"),
            f"{entry} is not UTF-8 at byte offset {error.start}, where 0x"
            f"{data[error.start]:02x} stands ({error.reason}); allowed is UTF-8: "
            "convert the file",
        )
    return data


def _read_file(
    path: Path, entry: ManifestEntry, kept_bytes: int | None
) -> tuple[bytes, int, str]:
    """Returns the first bytes of a file, its size in bytes and its SHA-256.

    Only ``kept_bytes`` are kept (None: all), so that a huge file that is refused for
    its length anyway costs no memory.
    """
    try:
        with io.FileIO(str(path), "rb", opener=_open_without_waiting) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                _refuse_unreadable(entry, "it is no regular file")
            data = stream.read(-1 if kept_bytes is None else kept_bytes)
            digest, size = hashlib.sha256(data), len(data)
            while piece := stream.read(_PIECE_BYTES):
                digest.update(piece)
                size += len(piece)
    except FileNotFoundError:
        _refuse(
            *(ReasonCode.DOCUMENT_MISSING, "file"),
            f"{entry} does not exist in the manifest's folder; restore the file or "
            "remove its entry",
        )
    except OSError as error:
        _refuse_unreadable(entry, error.strerror or type(error).__name__)
    return data, size, digest.hexdigest()


def _open_without_waiting(path: str, flags: int) -> int:
    # a pipe in place of a file would otherwise hang the run
    return os.open(path, flags | os.O_NONBLOCK)


def _inside(folder: Path, entry: ManifestEntry) -> Path:
    """Returns the real path of a document, which must lie in the manifest's folder."""
    pure = PurePosixPath(entry.file)
    if any(sign in "\0\\" or "\ud800" <= sign <= "\udfff" for sign in entry.file):
        _refuse_path(entry, "holds NUL, a backslash or a lone surrogate")
    if pure.is_absolute() or ".." in pure.parts:
        _refuse_path(entry, "is absolute or holds '..'")
    try:
        real = (folder / pure).resolve()
    except (OSError, RuntimeError):  # RuntimeError: links in a circle, Python <= 3.12
        _refuse_unreadable(entry, "its symbolic links cannot be followed")
    if not real.is_relative_to(folder):
        _refuse_path(entry, f"leads by a symbolic link to {str(real)!r}")
    return real


def _refuse(code: ReasonCode, field: str, message: str) -> NoReturn:
    raise Refused(code, message, [field])


def _refuse_path(entry: ManifestEntry, why: str) -> NoReturn:
    _refuse(
        *(ReasonCode.MANIFEST_PATH_ESCAPES, "file"),
        f"the path of {entry} {why}; allowed is a relative path inside the manifest's "
        "folder: copy the file there",
    )


def _refuse_unreadable(entry: ManifestEntry, why: str) -> NoReturn:
    _refuse(
        *(ReasonCode.DOCUMENT_UNREADABLE, "file"),
        f"{entry} cannot be read: {why}; allowed is a readable regular file",
    )
