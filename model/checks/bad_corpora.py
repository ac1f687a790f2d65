"""Small corpora that are wrong in one way: documents, paths, manifests and splits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.manifest import SPLITS
from model.refusal import ReasonCode

Entries = list[dict[str, Any]]
Spoil = Callable[[Path, Entries], object]


@dataclass(frozen=True, kw_only=True)
class BadCorpus:
    """One way to spoil three good documents, and what the refusal must say."""

    claim: str
    measure: str
    case_name: str
    reason: ReasonCode
    place: int | None
    """Place of the entry that is wrong, None where it is none of them."""
    field: str
    """What is wrong with it, as the refusal names it."""
    spoil: Spoil
    """Spoils the files and entries of three good documents."""
    named: tuple[str, ...] = ()
    """Numbers that the sentence has to hold."""
    entries: int = 3
    """Entries that there are then."""


def bad_corpora(context_tokens: int) -> tuple[BadCorpus, ...]:
    """Returns every bad corpus: documents, paths, manifests and overlapping splits."""
    return (
        *_bad_documents(context_tokens),
        *_bad_manifests(),
        *_bad_paths(),
        *_bad_splits(),
    )


def _bad_documents(context_tokens: int) -> tuple[BadCorpus, ...]:
    def content(data: bytes) -> Spoil:
        return lambda here, entries: _rewrite(here, entries[1], data)

    def document(
        case: str, reason: ReasonCode, field: str, spoil: Spoil, *named: str
    ) -> BadCorpus:
        return BadCorpus(
            claim="1.4",
            measure="bad_document",
            case_name=case,
            reason=reason,
            place=1,
            field=field,
            spoil=spoil,
            named=named,
        )

    # as many letters as would fit, but one byte too many
    letters = ("é" + "y" * (context_tokens - 2)).encode()
    allowed = f"{context_tokens - 1} bytes"
    return (
        document(
            "overlong",
            *(ReasonCode.DOCUMENT_OVERLONG, "size"),
            content(b"y" * context_tokens),
            f"has {context_tokens} bytes",
            allowed,
        ),
        document(
            "overlong_multibyte",
            *(ReasonCode.DOCUMENT_OVERLONG, "size"),
            content(letters),
            f"has {len(letters)} bytes",
            allowed,
        ),
        document(
            "empty",
            *(ReasonCode.DOCUMENT_EMPTY, "size"),
            content(b""),
            "has 0 bytes",
            "at least 1",
        ),
        document(
            "not_utf8",
            *(ReasonCode.DOCUMENT_NOT_UTF8, "encoding"),
            content(b"y\xff"),
            "offset 1",
            "0xff",
        ),
        document(
            "altered",
            *(ReasonCode.DOCUMENT_ALTERED, "sha256"),
            lambda here, entries: (here / entries[1]["file"]).write_bytes(b"zz"),
        ),
        document(
            "missing",
            *(ReasonCode.DOCUMENT_MISSING, "file"),
            lambda here, entries: (here / entries[1]["file"]).unlink(),
        ),
        document(
            "folder",
            *(ReasonCode.DOCUMENT_UNREADABLE, "file"),
            lambda here, entries: entries[1].update(file="."),
        ),
    )


def _bad_manifests() -> tuple[BadCorpus, ...]:
    def manifest(case: str, reason: ReasonCode, **changes: Any) -> BadCorpus:
        is_empty = reason == ReasonCode.SPLIT_EMPTY
        return BadCorpus(
            claim="1.4",
            measure="bad_manifest",
            case_name=case,
            reason=reason,
            place=None if is_empty else 1,
            field="splits.validation" if is_empty else next(iter(changes)),
            spoil=lambda here, entries: entries[1].update(changes),
        )

    return (
        manifest("unknown_field", ReasonCode.MANIFEST_UNKNOWN_FIELD, language="en"),
        manifest("unknown_split", ReasonCode.UNKNOWN_SPLIT, split="test"),
        manifest("split_empty", ReasonCode.SPLIT_EMPTY, split="train"),
        manifest("number_as_text", ReasonCode.MANIFEST_MALFORMED, id=7),
        manifest("short_digest", ReasonCode.MANIFEST_MALFORMED, sha256="abc"),
    )


def _bad_paths() -> tuple[BadCorpus, ...]:
    def path(case: str, file: str) -> BadCorpus:
        return BadCorpus(
            claim="1.4",
            measure="escaping_path",
            case_name=case,
            reason=ReasonCode.MANIFEST_PATH_ESCAPES,
            place=1,
            field="file",
            spoil=lambda here, entries: entries[1].update(file=file),
        )

    def link(here: Path, entries: Entries) -> None:
        outside = here.parent / "outside.txt"
        outside.write_bytes(b"zz")
        # relative, so that where the corpus lies changes no digest
        (here / "link.txt").symlink_to(f"../{outside.name}")
        entries[1].update(file="link.txt", sha256=hashlib.sha256(b"zz").hexdigest())

    linked = BadCorpus(
        claim="1.4",
        measure="escaping_path",
        case_name="symbolic_link",
        reason=ReasonCode.MANIFEST_PATH_ESCAPES,
        place=1,
        field="file",
        spoil=link,
    )
    return (
        path("absolute", "/etc/hostname"),
        path("parent", "../outside.txt"),
        path("hidden_parent", "a/../../outside.txt"),
        path("backslash", "..\\outside.txt"),
        path("nul", "validation.txt\0.png"),
        linked,
    )


def _bad_splits() -> tuple[BadCorpus, ...]:
    def add(*same: str, **changes: str) -> Spoil:
        """Adds a document that has some fields of the first one."""

        def spoil(here: Path, entries: Entries) -> None:
            first, name = entries[0], f"{entries[0]['id']}-added"
            added = {**first, "id": name, "file": f"{name}.txt", "group": name}
            _rewrite(here, added, b"z" + (here / first["file"]).read_bytes()[:1])
            entries.append(added | changes | {field: first[field] for field in same})

        return spoil

    def copy(split: str) -> Spoil:
        def spoil(here: Path, entries: Entries) -> None:
            name = f"{entries[0]['id']}-copy"
            entries.append({**entries[0], "id": name, "group": name, "split": split})

        return spoil

    def overlap(case: str, reason: ReasonCode, field: str, spoil: Spoil) -> BadCorpus:
        return BadCorpus(
            claim="1.5",
            measure="overlapping_splits",
            case_name=case,
            reason=reason,
            place=3,
            field=field,
            spoil=spoil,
            entries=4,
        )

    code = ReasonCode
    return (
        overlap("id", code.DUPLICATE_DOCUMENT_ID, "id", add("id")),
        overlap("content_within", code.DUPLICATE_CONTENT, "sha256", copy("train")),
        overlap(
            *("content_across", code.CONTENT_IN_TWO_SPLITS, "sha256"), copy("heldout")
        ),
        overlap(
            *("group_across", code.GROUP_IN_TWO_SPLITS, "group"),
            add("group", split="heldout"),
        ),
    )


def lengthen(size: int) -> Spoil:
    """Returns what gives the first document another length, in bytes."""
    return fill(b"y" * size)


def fill(data: bytes) -> Spoil:
    """Returns what gives the first document other bytes."""
    return lambda here, entries: _rewrite(here, entries[0], data)


def write_corpus(folder: Path, *spoils: Spoil) -> Path:
    """Writes a corpus and returns its manifest.

    Args:
        folder: Where it goes; made here.
        spoils: Each spoils three good documents of its own, one of each split.
    """
    folder.mkdir(parents=True)
    manifest: Entries = []
    for number, spoil in enumerate(spoils):
        entries = _good_entries(folder, number)
        spoil(folder, entries)
        manifest += entries
    path = folder / "manifest.json"
    path.write_text(json.dumps(manifest), "utf-8")
    return path


def _good_entries(folder: Path, number: int) -> Entries:
    entries: Entries = []
    for place, split in enumerate(SPLITS):
        name = f"{split}-{number}" if number else split
        entry = {
            "id": name,
            "file": f"{name}.txt",
            "split": split,
            "group": name,
            "license": "CC0-1.0",
            "source": "model/checks/bad_corpora.py",
        }
        _rewrite(folder, entry, b"%c%d" % (ord("a") + number, place))
        entries.append(entry)
    return entries


def _rewrite(folder: Path, entry: dict[str, Any], data: bytes) -> None:
    """Gives an entry another content, in its file and in its digest."""
    (folder / entry["file"]).write_bytes(data)
    entry["sha256"] = hashlib.sha256(data).hexdigest()
