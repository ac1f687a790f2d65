"""Claims 1.1 to 1.3: what the tokenizer keeps, and what a position is.

Each measurement takes the functions under qualification as arguments, so the same
check runs on a system with a planted fault.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from model.checks import rows
from model.reference import tokenizer as reference
from model.tokenizer import BOS, BYTE_OFFSET, EOS, PAD

if TYPE_CHECKING:
    from jaxtyping import Int32

Encode = Callable[[bytes], "Int32[np.ndarray, ' T']"]
Decode = Callable[[Sequence[int]], bytes]

MULTIBYTE_SAMPLES = ("hé€", "é€", "é")
"""Texts for the token diagram, the longest first; the first that fits is shown."""

COMPOSED, DECOMPOSED = "\u00e9".encode(), "e\u0301".encode()

HOSTILE_TEXTS: Mapping[str, tuple[bytes, ...]] = {
    "byte_values": (*(bytes([value]) for value in range(256)), bytes(range(256))),
    "multibyte": tuple(
        text.encode() for text in ("hé€", "日本語", "😀", "\U0010ffff", "Ωmega", "ß")
    ),
    "combining": (
        COMPOSED,
        DECOMPOSED,
        *(
            text.encode()
            for text in ("\u212b", "\ufb01", "\u1112\u1161\u11ab", "a\u0308")
        ),
        # a family of three, joined by zero-width joiners
        "\U0001f469\u200d\U0001f469\u200d\U0001f467".encode(),
    ),
    "surrogates": (
        b"\xed\xa0\x80",
        b"\xed\xad\xbf",
        b"\xed\xb0\x80",
        b"\xed\xbf\xbf",
        b"a\xed\xa0\x80b",
        b"\xed\xa0\xbd\xed\xb8\x80",
    ),
    "invalid_utf8": (
        b"\x80",
        b"\xbf\xbf",
        b"\xc3",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
        b"\xc0\x80",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf",
        b"\xf5\x80\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xfe\xff",
        b"ok\xffok",
    ),
    "line_endings": (
        b"a\r\nb\rc\n",
        b"\x00\x1a\x7f",
        b"\xef\xbb\xbfmark",
        b" \t\x0b\x0c",
    ),
}


def measure_round_trip(encode: Encode, decode: Decode) -> list[rows.Row]:
    """Returns what of the hostile texts is lost, and what differs from the reference.

    Args:
        encode: Bytes to tokens, without special tokens.
        decode: Tokens to bytes.

    Reference: model/reference/tokenizer.py
    """
    measured = []
    for case, texts in HOSTILE_TEXTS.items():
        tokens = [[int(token) for token in encode(text)] for text in texts]
        changed = [
            text
            for text, row in zip(texts, tokens, strict=True)
            if decode(row) != text or reference.decode(row) != text
        ]
        different = [
            text
            for text, row in zip(texts, tokens, strict=True)
            if row != reference.encode(text)
        ]
        measured += [
            _count("1.1", "texts_changed", case, changed, "texts", len(texts)),
            _count("1.1", "token_rows_differing", case, different, "texts", len(texts)),
        ]
    return [*measured, *_measure_byte_tokens(encode), _measure_special(decode)]


def _measure_special(decode: Decode) -> rows.Row:
    """Returns how many rows with special tokens anywhere decode to other bytes.

    What a release generates ends with EOS, so that nothing ever stands behind one.
    """
    a, b = (value + BYTE_OFFSET for value in b"ab")
    table = [[special, a, special, special, b, special] for special in (PAD, BOS, EOS)]
    table += [[BOS, a, EOS, PAD, BOS, b, EOS], [BOS, EOS], []]
    wrong = [row for row in table if decode(row) != reference.decode(row)]
    measure = "rows_with_special_tokens_changed"
    return _count("1.1", measure, "", wrong, "rows", len(table))


def _measure_byte_tokens(encode: Encode) -> list[rows.Row]:
    """Returns how many byte tokens there are, and whether two spellings stay two."""
    tokens = {int(encode(bytes([value]))[0]) for value in range(256)}
    spellings = [list(map(int, encode(text))) for text in (COMPOSED, DECOMPOSED)]
    return [
        rows.count("1.1", "byte_tokens", "", len(tokens), "tokens"),
        rows.count(
            "1.1",
            "byte_tokens_among_special",
            "",
            len(tokens & {PAD, BOS, EOS}),
            "tokens",
        ),
        rows.count(
            "1.1",
            "spellings_made_equal",
            "",
            int(spellings[0] == spellings[1]),
            "pairs",
            f"composed {spellings[0]}, decomposed {spellings[1]}",
        ),
    ]


def token_diagram(
    document_id: str, tokens: Int32[np.ndarray, " T"]
) -> list[dict[str, Any]]:
    """Returns one row a position of a document: byte, token, input, target, mask.

    Position t reads token t and has to predict token t + 1; the last position is a
    target only.

    Args:
        document_id: Which document it is.
        tokens: Its token row [context + 1], int32.

    Reference: model/reference/tokenizer.py
    """
    kinds = {PAD: "PAD", BOS: "BOS", EOS: "EOS"}
    inputs: list[int | None] = [*map(int, tokens[:-1]), None]
    targets: list[int | None] = [*map(int, tokens[1:]), None]
    valid = [*map(bool, tokens[1:] != PAD), False]
    return [
        {
            "document_id": document_id,
            "position": position,
            "byte_value": token - BYTE_OFFSET if token >= BYTE_OFFSET else None,
            "token_id": token,
            "token_kind": kinds.get(token, "byte"),
            "input_token": inputs[position],
            "target_token": targets[position],
            "is_valid_target": valid[position],
        }
        for position, token in enumerate(map(int, tokens))
    ]


def compare_diagram(
    case: str, diagram: Sequence[Mapping[str, Any]], data: bytes
) -> rows.Row:
    """Returns the comparison of a token diagram with the one of the reference.

    Args:
        case: Split and document the diagram stands for.
        diagram: Rows of ``token_diagram``.
        data: The document's bytes.
    """
    document_id = str(diagram[0]["document_id"])
    expected = reference.token_diagram(document_id, data, len(diagram) - 1)
    parted = (
        f"position {position}, {name}: expected {row[name]!r}, measured {found[name]!r}"
        for position, (row, found) in enumerate(zip(expected, diagram, strict=True))
        for name in row
        if row[name] != found[name]
    )
    return rows.comparison(
        "1.2",
        "token_diagram",
        case,
        _sha256(expected),
        _sha256(diagram),
        "model/reference/tokenizer.py",
        next(parted, ""),
    )


def measure_targets(
    split: str, tokens: Int32[np.ndarray, "N T"], contents: Sequence[bytes]
) -> list[rows.Row]:
    """Returns how the valid targets of a split stand to its bytes, as integers.

    Args:
        split: Name of the split.
        tokens: Its token rows [documents, context + 1], int32.
        contents: The bytes of each document, in row order.

    Reference: model/reference/tokenizer.py
    """
    context_tokens = tokens.shape[1] - 1
    expected = [reference.document_tokens(data, context_tokens) for data in contents]
    valid = np.sum(tokens[:, 1:] != PAD, axis=1)
    wrong = [
        number
        for number, data in enumerate(contents)
        if int(valid[number]) != len(data) + 1
        or int(valid[number]) != reference.valid_targets(data, context_tokens)
    ]
    # with the split in the name too, for the figures that a preset declares
    declared = [
        rows.count("1.3", f"{split}_valid_targets", "", int(valid.sum()), "targets"),
        rows.count("1.3", f"{split}_documents", "", len(contents), "documents"),
    ]
    return declared + [
        rows.count("1.3", "valid_targets", split, int(valid.sum()), "targets"),
        _count(
            "1.3",
            "documents_not_bytes_plus_one",
            split,
            wrong,
            "documents",
            len(contents),
        ),
        rows.array_comparison(
            "1.3",
            "token_table",
            split,
            np.asarray(expected, dtype=np.int32),
            tokens,
            "model/reference/tokenizer.py",
        ),
    ]


def _count(
    claim: str, measure: str, case: str, found: Sequence[Any], unit: str, of: int
) -> rows.Row:
    """A row whose value is the number of things found among ``of``, the first named."""
    detail = f"of {of}" + (f"; the first is {found[0]!r:.80}" if found else "")
    return rows.count(claim, measure, case, len(found), unit, detail)


def _sha256(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
