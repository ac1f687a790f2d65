"""Small JSON documents that carry their own digest, so that no byte changes unnoticed.

Commit records and run records are such documents. `seal` adds the digest of the rest;
`unseal` refuses a document whose digest does not fit.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from warehouse.errors import StoreError

SEAL = "document_sha256"
_text = json.encoder.encode_basestring_ascii
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]{0,119}")


def canonical_sha256(value: Any) -> str:
    """Returns the SHA-256 of the canonical JSON of a value (sorted keys, no NaN)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def seal(document: Mapping[str, Any]) -> bytes:
    """Returns the bytes of a document with its own digest in it."""
    sealed = {**document, SEAL: canonical_sha256(dict(document))}
    return (_indented(sealed, "\n") + "\n").encode()


def _indented(value: Any, line: str) -> str:
    """Returns `json.dumps(value, indent=1, sort_keys=True)`, many times faster.

    The library lays out lines in Python, one generator a level, and a store has a
    document for each run and execution.

    Args:
        value: JSON values whose keys are text.
        line: the line break with the indentation of the value.
    """
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind is int:
        return str(value)
    inner = line + " "
    if kind is dict and value:
        parts = [
            f"{_text(name)}: {_indented(value[name], inner)}" for name in sorted(value)
        ]
        return f"{{{inner}{f',{inner}'.join(parts)}{line}}}"
    if kind in (list, tuple) and value:
        parts = [_indented(item, inner) for item in value]
        return f"[{inner}{f',{inner}'.join(parts)}{line}]"
    # What is left has one line, but for what is no JSON value and not laid out here.
    return json.dumps(value, indent=1, sort_keys=True)


def unseal(data: bytes) -> dict[str, Any]:
    """Returns the document of some bytes, without its digest.

    Raises:
        StoreError: the bytes are not exactly those that `seal` made.
    """
    try:
        document = json.loads(data)
        expected = document.pop(SEAL)
        is_whole = canonical_sha256(document) == expected and seal(document) == data
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        # Whatever a damaged file can hold: no JSON, NaN, a list, a million brackets.
        raise StoreError("it is not a complete sealed JSON document") from None
    if not is_whole:
        raise StoreError("its content does not fit its own digest")
    return document


def check_name(what: str, name: str) -> str:
    """Returns a name that becomes part of a path, if it cannot leave its folder.

    Raises:
        StoreError: the name holds a separator, dots alone, or anything unusual.
    """
    if not _NAME.fullmatch(name):
        raise StoreError(
            f"The {what} {name!r} cannot name a file of the store: allowed are up to "
            "120 letters, digits and any of _ . + = - (not first)."
        )
    return name
