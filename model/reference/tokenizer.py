"""The byte tokenizer and the token diagram once more, position by position.

Written from the table of the fixture, one append a token and without arrays, so that
a shifted slice or an off-by-one in ``model/tokenizer.py`` cannot be repeated here.
"""

from collections.abc import Sequence
from typing import Any


def encode(data: bytes) -> list[int]:
    """Returns the token of each byte: its value plus three."""
    tokens = []
    for value in data:
        tokens.append(value + 3)
    return tokens


def decode(tokens: Sequence[int]) -> bytes:
    """Returns the byte of each token; 0, 1 and 2 stand for none."""
    values = bytearray()
    for token in tokens:
        if token >= 3:
            values.append(token - 3)
    return bytes(values)


def document_tokens(data: bytes, context_tokens: int) -> list[int]:
    """Returns 1, the bytes, 2, and zeros up to one position more than the context."""
    tokens = [1]
    for value in data:
        tokens.append(value + 3)
    tokens.append(2)
    while len(tokens) < context_tokens + 1:
        tokens.append(0)
    return tokens


def valid_targets(data: bytes, context_tokens: int) -> int:
    """Returns how many positions of a document have a target that counts."""
    tokens = document_tokens(data, context_tokens)
    count = 0
    for position in range(context_tokens):
        if tokens[position + 1] != 0:
            count += 1
    return count


def token_diagram(
    document_id: str, data: bytes, context_tokens: int
) -> list[dict[str, Any]]:
    """Returns one row a position, as ``model.checks.tokens.token_diagram`` does."""
    tokens = document_tokens(data, context_tokens)
    rows = []
    for position, token in enumerate(tokens):
        kind = {0: "PAD", 1: "BOS", 2: "EOS"}.get(token, "byte")
        last = position == context_tokens
        target = None if last else tokens[position + 1]
        rows.append(
            {
                "document_id": document_id,
                "position": position,
                "byte_value": data[position - 1] if kind == "byte" else None,
                "token_id": token,
                "token_kind": kind,
                "input_token": None if last else token,
                "target_token": target,
                "is_valid_target": target is not None and target != 0,
            }
        )
    return rows
