"""Nonces that a launcher gave out, and which result answered each of them.

A target that is qualified by hand leaves a folder, and a folder of an earlier day is as
whole as one of today. So the store remembers what it gave out, and that a nonce was
answered; both are documents that are written once.

    nonces/<nonce>/drawn.json       given out
    nonces/<nonce>/answered.json    by which result, and the run that took it in
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warehouse.durable import explained, write_file
from warehouse.errors import StoreError
from warehouse.sealed import check_name, seal, unseal

DRAW = "`harness target nonce` gives one out for a new run on the target"


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What has answered a nonce."""

    manifest_sha256: str
    """Digest of the result."""
    run_id: str
    """The run that took it in."""


def remember_drawn(root: Path, nonce: str, drawn_at: str) -> None:
    """Remembers that a nonce was given out.

    Args:
        root: Folder of the store.
        nonce: The nonce.
        drawn_at: UTC time, ISO 8601.
    """
    document = {"nonce": nonce, "drawn_at": drawn_at}
    write_file(root, _file(root, nonce, "drawn"), seal(document))


def remember_answered(root: Path, nonce: str, answered: Answered) -> None:
    """Remembers which result answered a nonce."""
    document = {"nonce": nonce, **vars(answered)}
    write_file(root, _file(root, nonce, "answered"), seal(document))


def answer_of(root: Path, nonce: str) -> Answered | None:
    """Returns what has answered a nonce that was given out; None while nothing has.

    Raises:
        StoreError: It was never given out here, or what is remembered was altered.
    """
    if not nonce or _read(root, nonce, "drawn") is None:
        raise StoreError(
            f"The nonce {nonce!r} of this result was not given out by the store "
            f"{str(root)!r}; {DRAW}."
        )
    found = _read(root, nonce, "answered")
    if found is None:
        return None
    return Answered(manifest_sha256=found["manifest_sha256"], run_id=found["run_id"])


def _file(root: Path, nonce: str, what: str) -> Path:
    return root / "nonces" / check_name("nonce", nonce) / f"{what}.json"


def _read(root: Path, nonce: str, what: str) -> dict[str, Any] | None:
    path = _file(root, nonce, what)
    with explained("read", path):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
    try:
        document = unseal(data)
    except StoreError as error:
        raise StoreError(f"{str(path)!r} was altered: {error}; {DRAW}.") from None
    if document.get("nonce") != nonce:
        raise StoreError(f"{str(path)!r} is about another nonce; {DRAW}.")
    return document
