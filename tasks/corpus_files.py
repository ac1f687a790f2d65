"""The identity of a corpus: the digest of its manifest and of every file it lists.

A stage's key needs it before any program has run. Nothing is judged here: what is
malformed, missing or altered is refused by the program, with its reason; a different
digest is enough to make it look.
"""

import dataclasses
import hashlib
import json
from pathlib import Path

from model.config import fixture_manifest
from model.refusal import ReasonCode, Refused


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusFiles:
    """A manifest, and what it and its files contain."""

    path: str
    """Absolute path of the manifest."""

    sha256: str
    """Digest over the manifest's bytes and the bytes of every file it lists."""

    @property
    def is_fixture(self) -> bool:
        """Whether this is the committed fixture corpus, by content."""
        return self.sha256 == _digest(fixture_manifest())


def corpus_files(manifest: str | None) -> CorpusFiles:
    """Returns path and digest of a corpus; the fixture's where none is named.

    Raises:
        Refused: The manifest itself is missing or cannot be read.
    """
    path = Path(manifest).absolute() if manifest else fixture_manifest()
    return CorpusFiles(path=str(path), sha256=_digest(path))


def _digest(manifest: Path) -> str:
    if manifest.exists() and not manifest.is_file():
        raise Refused(
            ReasonCode.MANIFEST_UNREADABLE,
            f"The manifest {str(manifest)!r} is no file; give --manifest the path of a "
            "JSON file.",
        )
    try:
        content = manifest.read_bytes()
    except FileNotFoundError as error:
        raise Refused(
            ReasonCode.MANIFEST_MISSING,
            f"The manifest {str(manifest)!r} does not exist; give --manifest the path "
            "of a JSON file.",
        ) from error
    except OSError as error:
        raise Refused(
            ReasonCode.MANIFEST_UNREADABLE,
            f"The manifest {str(manifest)!r} cannot be read: {error.strerror}.",
        ) from error
    digest = hashlib.sha256(content)
    for name in _listed_files(content):
        part = f"\0{name}\0{_file_sha256(manifest.parent, name)}"
        # JSON can spell half of a surrogate pair, which UTF-8 proper cannot.
        digest.update(part.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _listed_files(content: bytes) -> list[str]:
    try:
        entries = json.loads(content)
    except (ValueError, RecursionError):
        return []
    if not isinstance(entries, list):
        return []
    names = (entry.get("file") for entry in entries if isinstance(entry, dict))
    return [name for name in names if isinstance(name, str)]


def _file_sha256(folder: Path, name: str) -> str:
    try:
        file = (folder / name).resolve()
        if not file.is_relative_to(folder.resolve()):
            return "outside"
        # A pipe or a device would never come to an end.
        if not file.is_file():
            return "no file"
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    # RuntimeError: links that lead in a circle.
    except (OSError, ValueError, RuntimeError):
        return "unreadable"
