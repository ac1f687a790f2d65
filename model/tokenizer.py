"""Bytes to tokens and back, with no normalisation whatever.

A byte tokenizer is the one tokenizer that loses nothing: every file survives, and
two spellings of the same letter stay two. Three special tokens come first, so the
token of byte b is b + 3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from model.refusal import ReasonCode, Refused

if TYPE_CHECKING:
    from jaxtyping import Int32

PAD = 0
BOS = 1
EOS = 2
BYTE_OFFSET = 3
VOCABULARY_TOKENS = BYTE_OFFSET + 256
TOKENIZER_VERSION = 1


def describe() -> dict[str, str | int]:
    """Returns what a release must say about its tokenizer, as JSON values."""
    return {
        "name": "bytes",
        "version": TOKENIZER_VERSION,
        "pad_token": PAD,
        "begin_token": BOS,
        "end_token": EOS,
        "byte_offset": BYTE_OFFSET,
        "vocabulary_tokens": VOCABULARY_TOKENS,
    }


def describe_preprocessing(context_tokens: int) -> dict[str, str | int]:
    """Returns how documents become token rows, as JSON values."""
    return {
        "version": 1,
        "normalization": "none",
        "encoding": "utf-8, checked and kept as bytes",
        "layout": "BOS, bytes, EOS, PAD to the right",
        "overlong": "refused",
        "context_tokens": context_tokens,
        "row_tokens": context_tokens + 1,
    }


def encode(data: bytes) -> Int32[np.ndarray, " T"]:
    """Returns the tokens of bytes, one a byte, without special tokens.

    Args:
        data: Any bytes, valid UTF-8 or not.

    Returns:
        Tokens [bytes], int32, each from 3 to 258.

    Reference: model/reference/tokenizer.py
    """
    return np.frombuffer(data, dtype=np.uint8).astype(np.int32) + np.int32(BYTE_OFFSET)


def decode(tokens: Iterable[int]) -> bytes:
    """Returns the bytes of tokens; PAD, BOS and EOS stand for no byte.

    Args:
        tokens: Token ids, each from 0 to 258.

    Raises:
        Refused: An id lies outside the vocabulary.

    Reference: model/reference/tokenizer.py
    """
    ids = np.asarray(list(tokens), dtype=np.int64)
    outside = np.flatnonzero((ids < 0) | (ids >= VOCABULARY_TOKENS))
    if outside.size:
        place = int(outside[0])
        raise Refused(
            ReasonCode.TOKENS_MALFORMED,
            f"token {int(ids[place])} at position {place} is outside the vocabulary; "
            f"allowed are 0 to {VOCABULARY_TOKENS - 1}",
        )
    return (ids[ids >= BYTE_OFFSET] - BYTE_OFFSET).astype(np.uint8).tobytes()


def decode_text(tokens: Iterable[int]) -> str:
    """Returns the text of tokens for people; invalid UTF-8 shows as U+FFFD.

    The ids must be kept beside the text: the replacement cannot be undone.
    """
    return decode(tokens).decode("utf-8", errors="replace")


def check_length(document_bytes: int, context_tokens: int, *, name: str) -> None:
    """Refuses a document that does not fit the context together with its BOS.

    Args:
        document_bytes: Length of the document in bytes.
        context_tokens: Most input tokens, BOS included.
        name: What the refusal calls the document.

    Raises:
        Refused: The document is longer than ``context_tokens - 1`` bytes.
    """
    if document_bytes + 1 > context_tokens:
        raise Refused(
            ReasonCode.DOCUMENT_OVERLONG,
            f"{name} has {document_bytes} bytes, {document_bytes + 1} tokens with "
            f"BOS; allowed are {context_tokens} tokens, {context_tokens - 1} bytes: "
            "split it or raise model.context_tokens",
            ["size"],
        )


def document_tokens(
    data: bytes, context_tokens: int, *, name: str = "document"
) -> Int32[np.ndarray, " T"]:
    """Returns one document as BOS, bytes, EOS and PAD up to context + 1 positions.

    Inputs are positions 0..context-1 and targets 1..context, so the document's valid
    targets are its bytes and EOS.

    Args:
        data: The document's bytes, at most ``context_tokens - 1``.
        context_tokens: Most input tokens, BOS included.
        name: What a refusal calls the document.

    Returns:
        Tokens [context + 1], int32.

    Raises:
        Refused: The document is longer than the context; it is never cut.
    """
    check_length(len(data), context_tokens, name=name)
    row = np.full(context_tokens + 1, PAD, dtype=np.int32)
    row[0] = BOS
    row[1 : len(data) + 1] = encode(data)
    row[len(data) + 1] = EOS
    return row


def prompt_tokens(
    prompt: bytes, context_tokens: int
) -> tuple[Int32[np.ndarray, " T"], int]:
    """Returns a prompt as BOS, bytes and PAD up to the context, and its valid length.

    Args:
        prompt: The prompt's bytes, at most ``context_tokens - 1``; may be empty.
        context_tokens: Most input tokens, BOS included.

    Returns:
        Tokens [context], int32, and the number of valid tokens with BOS.

    Raises:
        Refused: The prompt is longer than the context; it is never cut.
    """
    length = len(prompt) + 1
    if length > context_tokens:
        raise Refused(
            ReasonCode.PROMPT_OVERLONG,
            f"the prompt has {len(prompt)} bytes, {length} tokens with BOS; allowed "
            f"are {context_tokens} tokens, {context_tokens - 1} bytes: shorten it",
        )
    row = np.full(context_tokens, PAD, dtype=np.int32)
    row[0] = BOS
    row[1:length] = encode(prompt)
    return row, length
