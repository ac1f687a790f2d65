"""The corpus: its documents, its splits, and single documents position by position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from warehouse.schema import null_when


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document of the manifest, as it was tokenized."""

    TABLE: ClassVar[str] = "documents"

    document_id: str
    """Identity of the document within the corpus."""
    split: str
    """The split it belongs to: "train", "validation" or "heldout"."""
    source_group: str
    """The source it was made from; a group lies in one split."""
    license: str
    """Terms under which the text may be used, as the manifest states them."""
    source: str
    """Where the text comes from, as the manifest states it."""
    sha256: str
    """SHA-256 of the document's bytes, verified when it was read."""
    document_bytes: int
    """Length of the document in bytes, without special tokens."""
    valid_targets: int
    """Targets that count in the loss: its bytes and EOS."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """One split of the corpus, with the integers that losses are divided by."""

    TABLE: ClassVar[str] = "splits"

    split: str
    """Name of the split: "train", "validation" or "heldout"."""
    documents: int
    """Number of its documents."""
    document_bytes: int
    """Bytes of all its documents together."""
    valid_targets: int
    """Targets that count in the loss: the denominator of its mean."""
    padded_targets: int
    """Target positions that hold PAD and never count."""
    split_sha256: str
    """Digest over ids, groups and contents of its documents in manifest order."""


@dataclass(frozen=True, kw_only=True)
class TokenDiagramRow:
    """One position of one shown document: what is read there and what is predicted."""

    TABLE: ClassVar[str] = "token_diagrams"

    document_id: str
    """The document that is shown; "multibyte-sample" stands in no split."""
    position: int
    """Position in the token row, from 0 for BOS to the context for the last target."""
    byte_value: Annotated[int | None, null_when("the token is PAD, BOS or EOS")]
    """The raw byte at this position, 0 to 255."""
    token_id: int
    """The token at this position, 0 to 258."""
    token_kind: str
    """What the token is: "byte", "BOS", "EOS" or "PAD"."""
    input_token: Annotated[int | None, null_when("the last position is a target only")]
    """The token the model reads at this position."""
    target_token: Annotated[int | None, null_when("the last position predicts nothing")]
    """The token the model has to predict at this position: the next one."""
    is_valid_target: bool
    """Whether the target counts in the loss: it is there and not PAD."""
