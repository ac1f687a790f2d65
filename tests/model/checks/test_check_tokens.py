"""The token checks measure nothing wrong on the system, and see each planted fault."""

import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from model import tokenizer
from model.checks import tokens as checks
from model.faults import find

Encode = Callable[[bytes], np.ndarray]


def wrong(rows: Sequence[dict]) -> set[str]:
    """The measures with a value that no correct tokenizer gives."""
    right = {"byte_tokens": 256}
    return {
        row["measure"]
        for row in rows
        if row["value_count"] != right.get(row["measure"], 0)
    }


def test_the_tokenizer_changes_no_hostile_text() -> None:
    rows = checks.measure_round_trip(tokenizer.encode, tokenizer.decode)
    assert wrong(rows) == set()
    assert {row["case_name"] for row in rows} >= set(checks.HOSTILE_TEXTS)


def normalising(data: bytes) -> np.ndarray:
    text = data.decode("utf-8", errors="surrogateescape")
    normal = unicodedata.normalize("NFC", text)
    return tokenizer.encode(normal.encode("utf-8", errors="surrogateescape"))


FAULTS: dict[str, tuple[Encode, set[str]]] = {
    "unicode normalised before encode": (
        normalising,
        {"texts_changed", "token_rows_differing", "spellings_made_equal"},
    ),
    "invalid bytes replaced": (
        lambda data: tokenizer.encode(data.decode("utf-8", "replace").encode()),
        {"texts_changed", "token_rows_differing", "byte_tokens"},
    ),
    "newlines translated": (
        lambda data: tokenizer.encode(data.replace(b"\r\n", b"\n")),
        {"texts_changed", "token_rows_differing"},
    ),
    "byte offset two": (
        lambda data: tokenizer.encode(data) - 1,
        {"texts_changed", "token_rows_differing", "byte_tokens_among_special"},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_encoder_is_seen(fault: str) -> None:
    encode, expected = FAULTS[fault]
    assert wrong(checks.measure_round_trip(encode, tokenizer.decode)) == expected


def test_a_decoder_that_drops_invalid_bytes_is_seen() -> None:
    def decode(tokens: Sequence[int]) -> bytes:
        return tokenizer.decode(tokens).decode("utf-8", "ignore").encode()

    assert wrong(checks.measure_round_trip(tokenizer.encode, decode)) == {
        "texts_changed"
    }


def test_a_decoder_that_stops_at_the_end_is_seen() -> None:
    decode = find("decoding-stops-at-the-end-token").replacement(tokenizer.decode)

    assert wrong(checks.measure_round_trip(tokenizer.encode, decode)) == {
        "rows_with_special_tokens_changed"
    }


def test_a_diagram_of_the_system_equals_the_reference() -> None:
    diagram = checks.token_diagram("it", tokenizer.document_tokens(b"ab", 6))
    row = checks.compare_diagram("multibyte", diagram, b"ab")
    assert row["expected"] == row["measured"]
    assert row["first_difference"] == ""


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("target_token", 100, "position 1, target_token: expected 101, measured 100"),
        ("is_valid_target", False, "position 1, is_valid_target"),
        ("byte_value", None, "position 1, byte_value: expected 97, measured None"),
    ],
)
def test_one_wrong_cell_of_a_diagram_is_named(
    column: str, value: object, words: str
) -> None:
    diagram = checks.token_diagram("it", tokenizer.document_tokens(b"ab", 6))
    diagram[1][column] = value
    row = checks.compare_diagram("multibyte", diagram, b"ab")
    assert row["expected"] != row["measured"]
    assert words in row["first_difference"]


def targets(table: np.ndarray) -> dict[str, dict]:
    rows = checks.measure_targets("heldout", table, [b"ab", b"c"])
    return {row["measure"]: row for row in rows}


def test_valid_targets_are_bytes_plus_one_for_every_document() -> None:
    table = np.stack([tokenizer.document_tokens(data, 6) for data in (b"ab", b"c")])
    rows = targets(table)
    assert rows["documents_not_bytes_plus_one"]["value_count"] == 0
    assert rows["valid_targets"]["value_count"] == 5
    assert rows["heldout_valid_targets"]["value_count"] == 5
    assert rows["token_table"]["first_difference"] == ""


def test_a_missing_end_token_is_seen_in_counts_and_in_the_table() -> None:
    table = np.stack([tokenizer.document_tokens(data, 6) for data in (b"ab", b"c")])
    table[1, 2] = tokenizer.PAD
    rows = targets(table)
    assert rows["documents_not_bytes_plus_one"]["value_count"] == 1
    assert "index [1, 2]" in rows["token_table"]["first_difference"]
