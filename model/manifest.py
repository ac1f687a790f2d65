"""The manifest of a corpus: which document stands in which split, and its digest.

A document that stands twice, or one source on both sides of a split, would make the
held-out loss a number about memory. Nothing is repaired, and everything that is wrong
is named at once, so that one mistake hides no other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

from model.refusal import ReasonCode, Refused, joined

SPLITS = ("train", "validation", "heldout")
CLEAN_TEXT = "a non-empty text of printable characters"
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class ManifestEntry:
    """What a manifest says of one document; the fields of its JSON object."""

    id: str
    file: str
    split: str
    group: str
    license: str
    source: str
    sha256: str

    def __str__(self) -> str:
        return f"document {self.id!r} (file {self.file!r})"


def read_manifest(path: Path) -> tuple[ManifestEntry, ...]:
    """Returns the entries of a manifest, in its order.

    Args:
        path: JSON list of objects with id, file, split, group, license, source and
            sha256, each a text.

    Raises:
        Refused: The file is missing, unreadable or no such list, a field is unknown or
            missing, a split is unknown or empty, or something stands twice.
    """
    placed, wrong = inspect_manifest(path)
    if wrong:
        raise joined(wrong)
    return tuple(placed.values())


def inspect_manifest(path: Path) -> tuple[dict[int, ManifestEntry], list[Refused]]:
    """Returns the good entries of a manifest by their place, and all that is wrong.

    Args:
        path: As of `read_manifest`.

    Raises:
        Refused: The file is missing, unreadable or no list.
    """
    placed: dict[int, ManifestEntry] = {}
    wrong: list[Refused] = []
    for place, value in enumerate(_read_list(path)):
        problems = list(_wrong_entry(value, place))
        if problems:
            wrong += problems
        else:
            placed[place] = ManifestEntry(**value)
    # A split may look empty because an entry of it cannot be read.
    if not wrong:
        wrong += _empty_splits(placed.values())
    return placed, [*wrong, *_repeated(placed)]


def _empty_splits(entries: Iterable[ManifestEntry]) -> Iterator[Refused]:
    found = {entry.split for entry in entries}
    for split in SPLITS:
        if split not in found:
            yield Refused(
                ReasonCode.SPLIT_EMPTY,
                f"split {split!r} has no document; allowed is at least one in each of "
                f"{', '.join(SPLITS)}: assign documents to it",
                [f"splits.{split}"],
            )


def _repeated(placed: Mapping[int, ManifestEntry]) -> Iterator[Refused]:
    """Yields ids, groups and contents that stand where they may stand only once."""
    ids: dict[str, ManifestEntry] = {}
    contents: dict[str, ManifestEntry] = {}
    groups: dict[str, ManifestEntry] = {}
    for place, entry in placed.items():
        namesake = ids.setdefault(entry.id, entry)
        if namesake is not entry:
            yield Refused(
                ReasonCode.DUPLICATE_DOCUMENT_ID,
                f"{entry} has the id of file {namesake.file!r}; "
                "allowed is one document an id: rename or remove one",
                [f"entries.{place}.id"],
            )
        twin = contents.setdefault(entry.sha256, entry)
        if twin is not entry:
            yield _repeated_content(entry, twin, place)
        sibling = groups.setdefault(entry.group, entry)
        if sibling.split != entry.split:
            yield Refused(
                ReasonCode.GROUP_IN_TWO_SPLITS,
                f"{entry} of split {entry.split!r} has the group {entry.group!r} of "
                f"{sibling} of split {sibling.split!r}; allowed is one split a group: "
                "move one of them",
                [f"entries.{place}.group"],
            )


def _repeated_content(entry: ManifestEntry, twin: ManifestEntry, place: int) -> Refused:
    code, where = ReasonCode.DUPLICATE_CONTENT, f"the split {entry.split!r}"
    if entry.split != twin.split:
        code = ReasonCode.CONTENT_IN_TWO_SPLITS
        where = f"the splits {entry.split!r} and {twin.split!r}"
    return Refused(
        code,
        f"{entry} has the content of {twin}, sha256 {entry.sha256}, in {where}; "
        "allowed is one document a content: remove one",
        [f"entries.{place}.sha256"],
    )


def split_sha256(entries: Iterable[ManifestEntry], split: str) -> str:
    """Returns the digest of one split: ids, groups and contents in manifest order.

    Reference: model/reference/documents.py
    """
    rows = [[e.id, e.group, e.sha256] for e in entries if e.split == split]
    text = json.dumps([split, rows], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def splits_sha256(entries: Sequence[ManifestEntry]) -> str:
    """Returns one digest of all three splits, the identity of the drawn corpus.

    Reference: model/reference/documents.py
    """
    lines = "".join(f"{split} {split_sha256(entries, split)}\n" for split in SPLITS)
    return hashlib.sha256(lines.encode("ascii")).hexdigest()


def _refuse(code: ReasonCode, message: str) -> NoReturn:
    raise Refused(code, message)


def _json_name(value: Any) -> str:
    """Returns the kind of a value in the words of JSON."""
    names = {dict: "object", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def _read_list(path: Path) -> list[Any]:
    """Returns the entries of a manifest file, which must be a JSON list."""
    here = f"manifest {str(path)!r}"
    try:
        text = path.read_bytes().decode("utf-8")
        values = json.loads(text, object_pairs_hook=_object)
    except FileNotFoundError:
        _refuse(
            ReasonCode.MANIFEST_MISSING,
            f"{here} does not exist; give the path of a JSON list of documents",
        )
    except OSError as error:
        _refuse(
            ReasonCode.MANIFEST_UNREADABLE,
            f"{here} cannot be read: {error.strerror}; give a readable file",
        )
    except UnicodeDecodeError as error:
        _malformed(here, f"is not UTF-8 at byte offset {error.start}", "UTF-8 JSON")
    except RecursionError:
        _malformed(here, "is nested too deep", "a flat list of objects")
    except ValueError as error:
        _malformed(here, f"is not JSON: {error}", "a JSON list of objects")
    if not isinstance(values, list):
        _malformed(here, f"holds a JSON {_json_name(values)}", "a JSON list")
    return values


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns a JSON object; a name that stands twice would hide a value."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError(f"a name stands twice in the object of {list(value)!r:.200}")
    return value


def _wrong_entry(value: Any, place: int) -> Iterator[Refused]:
    """Yields what is wrong with one entry, whose fields are clean texts of a kind."""
    here, path = f"manifest entry {place}", f"entries.{place}"
    known = [entry_field.name for entry_field in fields(ManifestEntry)]
    if not isinstance(value, Mapping):
        allowed = f"an object with {', '.join(known)}"
        yield _malformed_entry(here, f"is {value!r:.80}", allowed, path)
        return
    for name in value:
        if name not in known:
            yield Refused(
                ReasonCode.MANIFEST_UNKNOWN_FIELD,
                f"{here} has the unknown field {name!r:.120}; known are "
                f"{', '.join(known)}: remove it",
                [f"{path}.{name}"],
            )
    for name in known:
        if name not in value:
            found, allowed = f"lacks the field {name!r}", f"all of {', '.join(known)}"
            yield _malformed_entry(here, found, allowed, f"{path}.{name}")
            continue
        text = value[name]
        if not isinstance(text, str) or not text or not _is_clean(name, text):
            is_digest = name == "sha256"
            allowed = "64 lower-case hexadecimal digits" if is_digest else CLEAN_TEXT
            found = f"has {name} {text!r:.120}"
            yield _malformed_entry(here, found, allowed, f"{path}.{name}")
        elif name == "split" and text not in SPLITS:
            yield Refused(
                ReasonCode.UNKNOWN_SPLIT,
                f"{here}, document {value.get('id')!r:.120}, has the split "
                f"{text!r:.120}; allowed are {', '.join(SPLITS)}",
                [f"{path}.split"],
            )


def _malformed_entry(where: str, found: str, allowed: str, path: str) -> Refused:
    return Refused(
        ReasonCode.MANIFEST_MALFORMED,
        f"{where} {found}; allowed is {allowed}: correct the manifest",
        [path],
    )


def _is_clean(name: str, text: str) -> bool:
    if name == "sha256":
        return _SHA256.fullmatch(text) is not None
    # what a path may not hold is refused as an escape, with the whole path in sight
    return name == "file" or (text.isprintable() and text == text.strip())


def _malformed(where: str, found: str, allowed: str) -> NoReturn:
    _refuse(
        ReasonCode.MANIFEST_MALFORMED,
        f"{where} {found}; allowed is {allowed}: correct the manifest",
    )
