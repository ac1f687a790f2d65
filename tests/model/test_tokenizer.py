"""The tokenizer loses no byte, refuses what does not fit, and shows text honestly."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model import tokenizer
from model.refusal import ReasonCode, Refused
from model.tokenizer import BOS, EOS, PAD


@given(st.binary(max_size=300))
@example(bytes(range(256)))
@example(b"\xed\xa0\x80\xff\xc0\x80")
def test_any_bytes_survive_encode_and_decode(data: bytes) -> None:
    tokens = tokenizer.encode(data)
    assert tokens.dtype == np.int32
    assert tokenizer.decode(tokens) == data


@given(st.text(max_size=60))
def test_any_text_survives_and_is_shown_unchanged(text: str) -> None:
    assert tokenizer.decode_text(tokenizer.encode(text.encode())) == text


@given(st.binary(max_size=20), st.integers(0, 5))
def test_a_document_is_begin_bytes_end_and_padding(data: bytes, room: int) -> None:
    context = len(data) + 1 + room
    row = tokenizer.document_tokens(data, context)
    assert row.shape == (context + 1,)
    assert row[0] == BOS
    assert row[len(data) + 1] == EOS
    assert (row[len(data) + 2 :] == PAD).all()
    assert int(np.sum(row[1:] != PAD)) == len(data) + 1
    assert tokenizer.decode(row) == data


def test_the_naughty_strings_survive(project: Path) -> None:
    """500 strings that broke other software: emoji, right-to-left, controls, nulls."""
    texts = json.loads((project / "tests/data/naughty_strings.json").read_bytes())
    assert len(texts) > 400
    changed = [
        text
        for text in texts
        if tokenizer.decode_text(tokenizer.encode(text.encode())) != text
    ]
    assert changed == []


def test_every_byte_has_a_token_of_its_own_above_the_special_ones() -> None:
    tokens = tokenizer.encode(bytes(range(256)))
    assert tokens.tolist() == list(range(3, 259))
    assert (PAD, BOS, EOS) == (0, 1, 2)
    assert tokenizer.VOCABULARY_TOKENS == 259


def test_composed_and_decomposed_letters_stay_different() -> None:
    composed = tokenizer.encode("é".encode())
    decomposed = tokenizer.encode("e\u0301".encode())
    assert composed.tolist() != decomposed.tolist()


def test_invalid_utf8_is_shown_as_a_replacement_while_the_tokens_keep_it() -> None:
    tokens = tokenizer.encode(b"ab\xffc")
    assert tokenizer.decode_text(tokens) == "ab\ufffdc"
    assert tokenizer.decode(tokens) == b"ab\xffc"


def test_a_split_character_is_whole_again_when_decoded_together() -> None:
    tokens = tokenizer.encode("€".encode())
    alone = "".join(tokenizer.decode_text([token]) for token in tokens)
    assert alone == "\ufffd" * 3
    assert tokenizer.decode_text(tokens) == "€"


def test_special_tokens_stand_for_no_byte() -> None:
    assert tokenizer.decode([BOS, 100, EOS, PAD, PAD]) == bytes([97])


@pytest.mark.parametrize("token", [-1, 259, 2**40])
def test_a_token_outside_the_vocabulary_is_refused_with_its_position(
    token: int,
) -> None:
    with pytest.raises(Refused, match=f"{token} at position 1") as refused:
        tokenizer.decode([3, token])
    assert refused.value.code is ReasonCode.TOKENS_MALFORMED


def test_a_document_of_exactly_the_context_fits_and_one_byte_more_does_not() -> None:
    row = tokenizer.document_tokens(b"x" * 11, 12)
    assert row[12] == EOS
    with pytest.raises(Refused, match=r"12 bytes, 13 tokens .* 11 bytes") as refused:
        tokenizer.document_tokens(b"x" * 12, 12)
    assert refused.value.code is ReasonCode.DOCUMENT_OVERLONG


def test_the_length_is_counted_in_bytes_and_not_in_letters() -> None:
    with pytest.raises(Refused, match="12 bytes"):
        tokenizer.document_tokens("é".encode() * 6, 12)


@given(st.binary(max_size=11))
def test_a_prompt_is_padded_to_the_context_and_knows_its_length(prompt: bytes) -> None:
    row, length = tokenizer.prompt_tokens(prompt, 12)
    assert row.shape == (12,)
    assert length == len(prompt) + 1
    assert row[0] == BOS
    assert EOS not in row
    assert tokenizer.decode(row[:length]) == prompt
    assert (row[length:] == PAD).all()


def test_a_prompt_beyond_the_context_is_refused_and_never_cut() -> None:
    with pytest.raises(Refused, match="12 bytes, 13 tokens") as refused:
        tokenizer.prompt_tokens(b"x" * 12, 12)
    assert refused.value.code is ReasonCode.PROMPT_OVERLONG


def test_the_description_holds_plain_values_that_survive_json() -> None:
    for value in (tokenizer.describe(), tokenizer.describe_preprocessing(12)):
        assert json.loads(json.dumps(value)) == value
    assert tokenizer.describe_preprocessing(12) != tokenizer.describe_preprocessing(13)
