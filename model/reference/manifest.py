"""Disjointness and digest of the splits once more, without sets or mappings.

Equal values are found as neighbours in a sorted list and the digest is taken over
JSON that is written sign by sign, so nothing of ``model/manifest.py`` is repeated.
"""

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any


def repeated_across_splits(values: Sequence[str], splits: Sequence[str]) -> int:
    """Returns how many values lie in more than one split.

    Args:
        values: One value a document: its id, its group or the digest of its content.
        splits: The split of each document.
    """
    ordered = sorted(zip(values, splits, strict=True))
    repeated = 0
    counted = None
    for (value, split), (next_value, next_split) in itertools.pairwise(ordered):
        if value == next_value and split != next_split and value != counted:
            repeated += 1
            counted = value
    return repeated


def split_sha256(entries: Sequence[Any], contents: Sequence[bytes], split: str) -> str:
    """Returns the digest of one split, its contents hashed from their bytes.

    Args:
        entries: Objects with id, group and split, in manifest order.
        contents: The bytes of each document.
        split: Name of the split.
    """
    rows = []
    for entry, data in zip(entries, contents, strict=True):
        if entry.split == split:
            content = hashlib.sha256(data).hexdigest()
            rows.append(f"[{_text(entry.id)},{_text(entry.group)},{_text(content)}]")
    text = f"[{_text(split)},[{','.join(rows)}]]"
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _text(value: str) -> str:
    """Returns a JSON text in ASCII, sign by sign (RFC 8259, section 7)."""
    short = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}
    signs = []
    for sign in value:
        code = ord(sign)
        if sign in '"\\':
            signs.append("\\" + sign)
        elif sign in short:
            signs.append("\\" + short[sign])
        elif 32 <= code < 127:
            signs.append(sign)
        elif code < 0x10000:
            signs.append(f"\\u{code:04x}")
        else:
            code -= 0x10000
            signs.append(f"\\u{0xD800 + (code >> 10):04x}")
            signs.append(f"\\u{0xDC00 + (code & 0x3FF):04x}")
    return f'"{"".join(signs)}"'
